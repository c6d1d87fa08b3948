from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from communitree.cli import ask, index
from communitree.cli.app import _joined, build, run
from communitree_shared.errors import UsageError
from communitree_shared.options import IndexOptions, QueryOptions


def leaves(model: type[BaseModel], prefix: str = "") -> set[str]:
    found = set()
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= leaves(kind, f"{prefix}{name}.")
        else:
            found.add(prefix + name)
    return found


@pytest.mark.parametrize(("module", "model"), [(index, IndexOptions), (ask, QueryOptions)])
def test_every_option_of_a_job_can_be_set_from_the_command_line(module: Any, model: type[BaseModel]) -> None:
    by_flag = {".".join(path) for path in module.FLAGS._paths.values()}
    by_the_command = {
        index: {"graph", "prompts", "cluster.recluster", "plan_only"},
        ask: {
            "prompts", "again", "bulk", "history", "deadline_seconds", "plan_only", "selection.strategy",
            "selection.level", "selection.coverage", "selection.stable",
        },
    }[module]  # fmt: skip
    assert by_flag | by_the_command == leaves(model)
    assert not by_flag & by_the_command


@pytest.mark.parametrize("module", [index, ask])
def test_every_flag_has_words_for_its_help(module: Any) -> None:
    helps = {p.name: p.annotation.__metadata__[0].help for p in module.FLAGS.parameters}
    assert not [name for name, text in helps.items() if not text.split("(default")[0].strip()]
    unknown = set(module.FLAGS._help) - {".".join(path) for path in module.FLAGS._paths.values()}
    assert not unknown


def test_flags_become_nested_options_and_what_is_not_given_stays_default() -> None:
    given = {"chunk_tokens": 300, "resolution": None, "metadata_columns": [], "budget_usd": 1.5, "source": ["x"]}
    options = index.FLAGS.take(given)
    assert options == {"read": {"chunk_tokens": 300}, "budget_usd": 1.5}
    assert given == {"source": ["x"]}
    built = index.FLAGS.build(options)
    assert built == IndexOptions(read={"chunk_tokens": 300}, budget_usd=1.5)  # type: ignore[arg-type]


def test_a_value_out_of_range_names_its_flag() -> None:
    with pytest.raises(UsageError, match="--chunk-tokens: Input should be greater than or equal to 16"):
        index.FLAGS.build({"read": {"chunk_tokens": 3}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"leaves": True}, {"strategy": "leaves"}),
        ({"relevant": True}, {"strategy": "relevant"}),
        ({"coverage": 0.5}, {"strategy": "coverage", "coverage": 0.5}),
        ({"frontier": 0}, {"strategy": "frontier", "level": 0}),
        ({"levels": "2"}, {"strategy": "levels", "level": 2}),
        ({"levels": "all"}, {"strategy": "levels", "level": None}),
    ],
)
def test_selections(given: dict[str, Any], expected: dict[str, Any]) -> None:
    none: dict[str, Any] = {
        "leaves": False, "relevant": False, "dynamic": False, "texts": False,
        "coverage": None, "frontier": None, "levels": None,
    }  # fmt: skip
    assert ask._selection(**{**none, **given}) == expected


def test_two_selections_exclude_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "c", "q", "--leaves", "--levels", "1"]) == 2
    assert "--leaves, --levels exclude one another" in capsys.readouterr().err


@pytest.mark.parametrize(
    "choice", [["--leaves"], ["--levels", "1"], ["--frontier", "0"], ["--coverage", "0.8"], ["--texts"], ["--dynamic"]]
)
@pytest.mark.parametrize("flag", ["--budget-tokens", "--budget-reports"])
def test_a_budget_is_not_ignored_in_silence(choice: list[str], flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "c", "q", *choice, flag, "300"]) == 2
    said = capsys.readouterr().err
    assert f"{flag} goes not with {choice[0]}" in said
    assert f"Leave out {choice[0]}" in said


@pytest.mark.parametrize("choice", [["--leaves"], ["--coverage", "0.8"], ["--budget-tokens", "9000"]])
def test_again_reads_the_silent_reports_and_no_selection(choice: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "c", "--again", "j", *choice]) == 2
    assert f"{choice[0]} goes not with --again" in capsys.readouterr().err


def test_levels_takes_a_number_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "c", "q", "--levels", "deep"]) == 2
    assert "neither a number nor `all`" in capsys.readouterr().err


def test_plan_all() -> None:
    assert list(_joined(["ask", "c", "q", "--plan", "all"])) == ["ask", "c", "q", "--plan-all"]
    assert list(_joined(["ask", "c", "all", "--plan", "--json"])) == ["ask", "c", "all", "--plan", "--json"]
    assert list(_joined(["ask", "c", "--plan"])) == ["ask", "c", "--plan"]


def test_all_commands_of_the_contract_are_there() -> None:
    names = {command.name for command in build().registered_commands}
    assert names >= {
        "demo", "version", "up", "index", "ask", "tree", "report", "source", "jobs", "job", "resume", "cancel",
        "dead-letters", "export", "corpora", "delete", "gc", "worker",
    }  # fmt: skip
