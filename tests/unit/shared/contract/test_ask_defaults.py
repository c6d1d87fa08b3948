"""What a deployment sets for all questions stands below what a question says, and above what is built in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from communitree_shared.contract import ask_defaults
from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import QueryOptions
from communitree_shared.errors import UsageError
from communitree_shared.ledger.entry import question_digest
from communitree_shared.settings import Settings

#: A value for each setting that is none of its built-in one.
OTHER: dict[str, Any] = {
    "strategy": "relevant", "budget_tokens": 9000, "budget_reports": 9, "budget_usd": 0.5, "stable": True,
    "coverage": 0.5, "level": 1, "auto_tokens": 9000, "threshold": 2, "keep_parent": True, "num_repeats": 3,
    "rate_use_summary": True, "max_level": 4, "max_depth": 3, "max_rating_calls": 7, "candidates_per_call": 5,
    "audit_pruned": 0.1, "min_community_rank": 2.5, "max_context_tokens": 8000, "reserve_tokens": 500,
    "overview_tokens": 0, "anchors": 2, "shuffle_data": False, "random_state": 7, "use_community_summary": True,
    "include_community_rank": False, "include_community_weight": False, "normalize_community_weight": False,
    "context_name": "Dossiers", "column_delimiter": ";", "map_max_length": 300, "reduce_max_length": 400,
    "map_max_tokens": 900, "reduce_max_tokens": 901, "map_temperature": 0.5, "reduce_temperature": 0.25,
    "json_mode": False, "max_data_tokens": 9000, "overflow": "truncate", "response_type": "prioritized list",
    "language": "fr", "allow_general_knowledge": True, "history_turns": 2, "deadline_seconds": 60.0, "bulk": True,
    "concurrency": 4, "cache": False, "seed": 3,
}  # fmt: skip

#: Selections that take an option, where the default one would ignore it.
TAKES = {
    "budget_tokens": "budget", "budget_reports": "budget", "stable": "budget", "coverage": "coverage",
    "level": "levels", "keep_parent": "dynamic", "auto_tokens": "auto",
}  # fmt: skip


def value(options: QueryOptions, name: str) -> Any:
    found: Any = options
    for part in ask_defaults.NAMES[name]:
        found = getattr(found, part)
    return found


def test_the_list_above_is_whole() -> None:
    assert OTHER.keys() == ask_defaults.NAMES.keys()
    assert not {name for name, other in OTHER.items() if value(QueryOptions(), name) == other}


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("file", [False, True])
def test_every_option_can_be_set_for_all_questions(
    name: str, file: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    more = {} if name == "strategy" else {"strategy": TAKES.get(name, "relevant")}
    if file:
        written = {**more, name: OTHER[name]}
        lines = [f"{n} = {str(v).lower() if isinstance(v, bool) else repr(v)}" for n, v in written.items()]
        (tmp_path / "c.toml").write_text("\n".join(["[ask]", *lines]))
        monkeypatch.setenv("COMMUNITREE_CONFIG", str(tmp_path / "c.toml"))
    else:
        monkeypatch.setenv(f"COMMUNITREE_ASK_{name.upper()}", str(OTHER[name]))
        for other, text in more.items():
            monkeypatch.setenv(f"COMMUNITREE_ASK_{other.upper()}", text)
    filled = ask_defaults.fill(QueryOptions(), Settings().ask)
    assert value(filled, name) == OTHER[name]
    path = ask_defaults.NAMES[name]
    built_in = value(QueryOptions(), name)
    nested = {path[0]: {path[1]: built_in, **more}} if len(path) == 2 and path[0] == "selection" else None
    nested = nested or ({path[0]: {path[1]: built_in}} if len(path) == 2 else {name: built_in})
    said = ask_defaults.fill(QueryOptions.model_validate(nested), Settings().ask)
    assert value(said, name) == built_in


def test_the_environment_goes_before_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[ask]\nmap_max_length = 300\nreduce_max_length = 400\n")
    monkeypatch.setenv("COMMUNITREE_CONFIG", str(tmp_path / "c.toml"))
    monkeypatch.setenv("COMMUNITREE_ASK_MAP_MAX_LENGTH", "200")
    answer = ask_defaults.fill(QueryOptions(), Settings().ask).answer
    assert (answer.map_max_length, answer.reduce_max_length) == (200, 400)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("MAP_MAX_LENGTH", "0", "COMMUNITREE_ASK_MAP_MAX_LENGTH: 0 is out of range: 5 to 1,000,000"),
        ("SHUFFLE_DATA", "perhaps", "COMMUNITREE_ASK_SHUFFLE_DATA: Input should be a valid boolean"),
        ("MAP_MAX_LENGHT", "9", "COMMUNITREE_ASK_MAP_MAX_LENGHT: a question has no option"),
        ("AGAIN", "j", "a question has no option 'again'"),  # belongs to one question
    ],
)
def test_a_wrong_setting_is_named(name: str, text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"COMMUNITREE_ASK_{name}", text)
    with pytest.raises(UsageError) as caught:
        Settings()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "selection", "expected"),
    [
        ({"budget_tokens": 9000}, {}, {"strategy": "budget", "budget_tokens": 9000}),
        ({"budget_tokens": 9000}, {"strategy": "leaves"}, {"strategy": "leaves"}),
        ({"budget_tokens": 9000}, {"budget_reports": 5}, {"strategy": "budget", "budget_reports": 5}),
        ({"coverage": 0.5}, {"budget_tokens": 9000}, {"strategy": "budget", "budget_tokens": 9000}),
        ({"strategy": "leaves"}, {"auto_tokens": 9000}, {"strategy": "auto", "auto_tokens": 9000}),
        ({"budget_usd": 0.5}, {"strategy": "leaves"}, {"strategy": "leaves", "budget_usd": 0.5}),
        ({"budget_usd": 0.5}, {"auto_tokens": 9000}, {"strategy": "auto", "auto_tokens": 9000, "budget_usd": 0.5}),
        ({"threshold": 3}, {}, {"strategy": "auto"}),
        ({"threshold": 3}, {"strategy": "relevant"}, {"strategy": "relevant", "threshold": 3}),
    ],
)
def test_who_chooses_what_is_read_does_so_alone(
    settings: dict[str, Any], selection: dict[str, Any], expected: dict[str, Any]
) -> None:
    filled = ask_defaults.complete(QueryOptions.model_validate({"selection": selection}), settings).selection
    assert filled.model_dump(exclude_defaults=True, exclude={"strategy"}) | {"strategy": filled.strategy} == expected


def test_silent_reports_are_read_again_whatever_the_settings_read() -> None:
    filled = ask_defaults.fill(QueryOptions(again="j"), {"strategy": "leaves", "map_max_length": 300})
    assert filled.selection == QueryOptions().selection
    assert filled.answer.map_max_length == 300


def test_money_is_a_ceiling_beside_silent_reports_too() -> None:
    filled = ask_defaults.complete(QueryOptions(again="j"), {"budget_usd": 0.5, "coverage": 0.8})
    assert filled.selection.model_dump(exclude_defaults=True) == {"budget_usd": 0.5}


@pytest.mark.parametrize(
    ("settings", "selection", "strategy"),
    [
        ({"strategy": "relevant"}, {"threshold": 3}, "relevant"),
        ({"strategy": "dynamic"}, {"keep_parent": True}, "dynamic"),
        ({"budget_tokens": 9000}, {"stable": True}, "budget"),
        ({"strategy": "leaves"}, {"threshold": 3}, "--threshold is for --relevant or --dynamic"),
        ({"strategy": "texts"}, {"min_community_rank": 2}, "--min-community-rank is for reports"),
        ({"strategy": "budget"}, {}, "needs a budget"),
    ],
)
def test_whether_an_option_is_ignored_is_for_the_selection_of_the_settings_to_say(
    settings: dict[str, Any], selection: dict[str, Any], strategy: str
) -> None:
    options = QueryOptions.model_validate({"selection": selection})
    if " " not in strategy:
        assert ask_defaults.complete(options, settings).selection.strategy == strategy
        return
    with pytest.raises(UsageError) as caught:
        ask_defaults.complete(options, settings)
    assert strategy in caught.value.message


def test_plans_side_by_side_keep_the_settings_of_each() -> None:
    filled = ask_defaults.fill(QueryOptions(), {"threshold": 3, "auto_tokens": 9000}, side_by_side=True)
    assert (filled.selection.threshold, filled.selection.auto_tokens) == (3, 9000)


def test_settings_and_words_make_the_same_question() -> None:
    def digest(options: QueryOptions) -> str:
        return question_digest(
            QueryRequest(job="j", corpus="c", version="v", question="q", options=options.model_dump())
        )

    said = QueryOptions.model_validate({"answer": {"map_max_length": 300}})
    filled = ask_defaults.fill(QueryOptions(), {"map_max_length": 300, "threshold": 3, "concurrency": 2})
    assert digest(filled) == digest(said) != digest(QueryOptions())
    assert ask_defaults.fill(filled, {"map_max_length": 300}) == filled
    assert ask_defaults.fill(said, {}) is said


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ("budget_toknes = 9", "a question has no option 'budget_toknes'", "Did you mean 'budget_tokens'?"),
        ("map_max_length = 0", "0 is out of range: 5 to 1,000,000", ""),
        ("zzz = 1", "a question has no option 'zzz'", "questions.md"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_of_the_file(
    line: str, words: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.toml").write_text(f"[ask]\n{line}\n")
    monkeypatch.setenv("COMMUNITREE_CONFIG", str(tmp_path / "c.toml"))
    with pytest.raises(UsageError) as caught:
        Settings()
    assert caught.value.message == f"`{line.split(' ')[0]}` under [ask] in the file of settings: {words}."
    assert hint in caught.value.hint
