from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from communitree.cli import ask, index, selections
from communitree.cli.app import _joined, build, run
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.errors import StackNotRunning, UsageError


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
    by_flag = {".".join(path) for path in module.FLAGS.paths.values()}
    by_the_command = {".".join(path) for path in module.FLAGS.spelled} - by_flag
    assert by_flag | by_the_command == leaves(model)
    flags = {flag for command in build().registered_commands for flag in flags_of(command.callback)}
    named = [re.findall(r"--[a-z-]+", module.FLAGS.spelled[tuple(name.split("."))]) for name in by_the_command]
    assert all(named)
    assert {flag for some in named for flag in some} <= flags


def flags_of(command: Any) -> set[str]:
    return {"--" + name.replace("_", "-") for name in inspect.signature(command).parameters}


@pytest.mark.parametrize("module", [index, ask])
def test_every_flag_has_words_for_its_help(module: Any) -> None:
    helps = {p.name: p.annotation.__metadata__[0].help for p in module.FLAGS.parameters}
    assert not [name for name, text in helps.items() if not text.split("(default")[0].strip()]
    assert not set(module.FLAGS._help) - {".".join(path) for path in module.FLAGS.spelled}


def test_flags_become_nested_options_and_what_is_not_given_stays_default() -> None:
    given = {"chunk_tokens": 300, "resolution": None, "metadata_columns": [], "budget_usd": 1.5, "source": ["x"]}
    options = index.FLAGS.take(given)
    assert options == {"read": {"chunk_tokens": 300}, "budget_usd": 1.5}
    assert given == {"source": ["x"]}
    built = index.FLAGS.build(options)
    assert built == IndexOptions(read={"chunk_tokens": 300}, budget_usd=1.5)  # type: ignore[arg-type]


def test_a_value_out_of_range_names_its_flag() -> None:
    with pytest.raises(UsageError, match="--chunk-tokens: 3 is out of range: at least 16"):
        index.FLAGS.build({"read": {"chunk_tokens": 3}})


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"selection": {"num_repeats": 0}}, "--num-repeats: 0 is out of range: 1 to 100."),
        ({"history": [{"role": "nobody", "content": ""}]}, "--history: "),
        ({"deadline_seconds": 1e9}, "--deadline: "),
        ({"selection": {"level": -1}}, "--frontier: "),
    ],
)
def test_an_error_names_a_flag_that_exists(given: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask.FLAGS.build(given)
    assert str(caught.value).startswith(flag)


def test_a_level_below_every_tree_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "c", "q", "--frontier", "99999999999999999999"]) == 2
    assert "--frontier" in capsys.readouterr().err
    assert run(["ask", "c", "q", "--levels", "99999999999999999999"]) == 2
    assert "--levels" in capsys.readouterr().err


def test_what_no_flag_says_is_left_to_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def build(options: dict[str, Any]) -> Any:
        seen.append(QueryOptions.model_validate(options))
        raise UsageError("enough")

    monkeypatch.setattr(ask.FLAGS, "build", build)
    assert run(["ask", "c", "q"]) == run(["ask", "c", "q", "--stable", "--bulk", "--deadline", "9s"]) == 2
    assert not seen[0].model_fields_set - {"selection"}
    assert not seen[0].selection.model_fields_set
    assert seen[1].model_fields_set == {"selection", "bulk", "deadline_seconds"}
    assert seen[1].selection.model_fields_set == {"stable"}


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
    assert selections.take({**none, **given}) == expected


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


def test_an_option_of_the_selection_that_the_settings_choose_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMUNITREE_HOME", str(tmp_path))
    assert run(["ask", "c", "q", "--threshold", "3"]) == 2
    assert "--threshold is for --relevant" in capsys.readouterr().err
    monkeypatch.setenv("COMMUNITREE_ASK_STRATEGY", "relevant")
    assert run(["ask", "c", "q", "--threshold", "3"]) == StackNotRunning.exit_code
    assert "No stack is running" in capsys.readouterr().err


def test_levels_takes_a_number_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "c", "q", "--levels", "deep"]) == 2
    assert "neither `all` nor a number" in capsys.readouterr().err


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
