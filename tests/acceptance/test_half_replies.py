"""What a question makes of replies that are cut, refused or misshapen, of reports that nobody may read: never a lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from communitree import Client
from communitree.events import Restart
from communitree_shared.contract.options import QueryOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from communitree_shared.ledger.entry import models_text
from support.oracles import sums_close
from support.provider import Provider
from support.stack import Stack

BATCHES = ("--max-context-tokens", "6000")
#: All that a test changes, as it was.
GOOD: dict[str, Any] = {
    "habit": "", "habit_kinds": [], "habit_match": "", "habit_limit": 2500, "habit_first": 0, "cut_rate": 0.0,
    "fault_kinds": [], "reply": "", "words": 60,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def corpus(stack: Stack, topics: Path) -> None:
    stack.call_json("index", str(topics), "--corpus", "topics")


@pytest.fixture(autouse=True)
def _behaves(provider: Provider) -> None:
    provider.reset(**GOOD)


def ask(stack: Stack, question: str, *words: str) -> tuple[int, dict[str, Any]]:
    done = stack.call("ask", "topics", question, "--leaves", "--json", *words)
    answer: dict[str, Any] = json.loads(done.out)
    sums_close(answer["account"])
    return done.code, answer


def test_a_cut_answer_is_asked_for_its_rest_and_is_whole(stack: Stack, provider: Provider) -> None:
    _, good = ask(stack, "What is cut once?")
    provider.reset(habit="finish_length", habit_kinds=["text"])
    code, answer = ask(stack, "What is cut once", "--seed", "1")
    assert (code, answer["status"]) == (0, "answered")
    assert good["status"] == "answered"
    assert answer["account"]["llm"]["endings"] == {"length": 1}


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_stays_cut_says_so_and_is_not_remembered(
    stack: Stack, provider: Provider, client: Client, streamed: bool
) -> None:
    provider.reset(cut_rate=1.0, fault_kinds=["text"])
    question = f"What stays cut, {streamed}?"
    if streamed:
        told: list[str] = []
        options = QueryOptions(selection=SelectionOptions(strategy="leaves"))
        for piece in client.stream("topics", question, options):
            if isinstance(piece, Answer):
                answer = piece.model_dump()
            elif isinstance(piece, Restart):
                told.clear()
            else:
                told.append(piece)
        assert "".join(told) == answer["answer"]
    else:
        code, answer = ask(stack, question)
        assert code == 3
    assert answer["status"] == "partial"
    assert "the answer breaks off here (it ended with 'length', and so did its continuation)" in answer["answer"]
    assert answer["account"]["llm"]["by_stage"]["reduce"]["calls"] == 2
    provider.reset(**GOOD)
    _, again = ask(stack, question)
    assert (again["status"], again["cached"]) == ("answered", False)


@pytest.mark.parametrize("habit", ["refusal", "refusal_chinese", "finish_safety"])
def test_a_refusal_is_no_answer(stack: Stack, provider: Provider, habit: str) -> None:
    provider.reset(habit=habit, habit_kinds=["text"])
    code, answer = ask(stack, f"What is refused, {habit}?")
    assert (code, answer["status"]) == (3, "partial")
    assert answer["answer"].startswith("> The model that writes the answer failed (")
    assert "refuse" in answer["answer"].splitlines()[0]
    assert "[Data: Reports (" in answer["answer"]


@pytest.mark.parametrize("habit", ["fenced", "in_an_object"])
def test_what_stands_around_an_answer_is_taken_off(
    stack: Stack, provider: Provider, client: Client, habit: str
) -> None:
    provider.reset(habit=habit, habit_kinds=["text"])
    options = QueryOptions(selection=SelectionOptions(strategy="leaves"))
    pieces = list(client.stream("topics", f"What is wrapped, {habit}?", options))
    answer = pieces[-1]
    assert isinstance(answer, Answer)
    assert answer.status == "answered"
    assert not answer.answer.startswith(("`", "{"))
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == answer.answer


def test_one_filtered_report_is_named_and_costs_no_other(stack: Stack, provider: Provider) -> None:
    _, whole = ask(stack, "What is filtered?", *BATCHES)
    victim = next(c for c in whole["citations"] if c["verified"])
    provider.reset(habit="filtered", habit_kinds=["map"], habit_match=f"(?m)^{victim['report']}\\|")
    code, answer = ask(stack, "What is filtered", "--seed", "2", *BATCHES)
    account = answer["account"]
    assert (code, answer["status"]) == (3, "partial")
    assert account["batches"]["failed"] == 0
    assert account["batches"]["split"] == 1
    assert account["reports"]["unread"] == [victim["report"]]
    (row,) = account["reports"]["unread_because"]
    assert row["report"] == victim["report"]
    assert "content management policy" in row["cause"]
    assert account["coverage"]["text_units_read"] <= whole["account"]["coverage"]["text_units_read"]
    assert account["coverage"]["entities"] < whole["account"]["coverage"]["entities"]
    assert f"1 of {account['reports']['selected']} reports could not be read whole" in answer["answer"]


@pytest.mark.parametrize("habit", ["too_long", "too_long_413", "too_long_chinese"])
def test_what_is_too_long_is_read_in_parts(stack: Stack, provider: Provider, habit: str) -> None:
    provider.reset(habit=habit, habit_kinds=["map"], habit_limit=4000)
    code, answer = ask(stack, f"What is too long, {habit}?")
    assert (code, answer["status"]) == (0, "answered")
    assert answer["account"]["batches"]["split"] > 0
    assert answer["account"]["reports"]["unread"] == []


def test_reports_that_are_too_long_even_alone_are_named(stack: Stack, provider: Provider) -> None:
    provider.reset(habit="too_long", habit_kinds=["map"], habit_limit=2050)
    _, answer = ask(stack, "What is too long alone?")
    reports = answer["account"]["reports"]
    assert answer["account"]["batches"]["split"] > 0
    assert answer["status"] == "partial"
    named = {row["report"] for row in reports["unread_because"]}
    assert named
    assert set(reports["unread"]) <= named


def test_a_prompt_that_the_server_cuts_is_read_in_parts(stack: Stack, provider: Provider) -> None:
    provider.reset(habit="truncates", habit_kinds=["map"], habit_limit=2200)
    _, answer = ask(stack, "What does the server cut?")
    assert answer["account"]["batches"]["split"] > 0
    assert answer["account"]["llm"]["endings"]["prompt_cut"] > 0


def test_a_refusal_without_a_cause_is_tried_in_halves_once_a_job(stack: Stack, provider: Provider) -> None:
    provider.reset(habit="unexplained", habit_kinds=["map"])
    code, answer = ask(stack, "What is unexplained?", *BATCHES)
    batches = answer["account"]["batches"]["total"]
    assert (code, answer["status"]) == (4, "failed")
    assert batches > 2
    refused = provider.stats()["outcomes"]["refused_400"]
    provider.reset(habit="unexplained", habit_kinds=["map"])
    ask(stack, "What is unexplained", "--seed", "3", *BATCHES)  # the ladder knows the endpoint by now
    assert provider.stats()["outcomes"]["refused_400"] <= min(refused, batches + 2)


def test_a_question_that_cannot_be_rewritten_is_asked_as_it_is(
    stack: Stack, provider: Provider, tmp_path: Path
) -> None:
    turns = [{"role": "user", "content": "Who built it?"}, {"role": "assistant", "content": "The council."}]
    (tmp_path / "history.json").write_text(json.dumps(turns))
    provider.reset(habit="refusal", habit_kinds=["text"], habit_match="Reply with the question only")
    _, answer = ask(stack, "And when?", "--history", str(tmp_path / "history.json"))
    assert answer["status"] == "answered"
    assert answer["standalone_question"] == "And when?"
    assert any("could not be made to stand without the conversation" in line for line in answer["account"]["warnings"])
    provider.reset(**GOOD, planted="")
    _, again = ask(stack, "And when?", "--history", str(tmp_path / "history.json"))
    assert again["cached"] is False


def test_points_that_cannot_be_used_are_asked_for_once_more(stack: Stack, provider: Provider) -> None:
    provider.reset(habit="strings", habit_kinds=["map"], habit_first=1)
    code, answer = ask(stack, "What is a string?", "--max-context-tokens", "60000")
    assert (code, answer["status"]) == (0, "answered")
    assert answer["account"]["points"]["dropped"] == 0
    assert answer["account"]["llm"]["by_stage"]["map"]["repaired"] == 1


def test_an_answer_in_another_language_is_said(stack: Stack, provider: Provider) -> None:
    provider.reset(habit="chinese", habit_kinds=["text"])
    _, answer = ask(stack, "Which language?")
    assert "The answer is in another language than was asked for." in answer["account"]["warnings"]
    provider.reset(**GOOD)
    _, answer = ask(stack, "Which language is it?")
    assert not any("another language" in warning for warning in answer["account"]["warnings"])


def test_the_job_says_with_which_models_it_was_planned(stack: Stack) -> None:
    _, answer = ask(stack, "Which models?")
    view = stack.call_json("job", answer["job_id"])
    assert view["models"] == {"rate": "extractive", "map": "fake", "reduce": "fake"}


def test_after_a_change_of_model_no_old_answer_is_given(stack: Stack, client: Client) -> None:
    _, first = ask(stack, "Whose answer?")
    _, again = ask(stack, "Whose answer?")
    assert (first["cached"], again["cached"]) == (False, True)
    client._jobs.ledger.tell_models(models_text({"map": "another", "rate": "another", "reduce": "another"}))
    _, other = ask(stack, "Whose answer?")
    assert other["cached"] is False
    _, third = ask(stack, "Whose answer?")  # the worker that planned has said which model it has
    assert third["cached"] is True


def test_a_prompt_without_its_placeholders_is_refused_by_name(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Read all in {language}.")
    done = stack.call("ask", "topics", "Why?", "--leaves", "--prompt", f"map={tmp_path / 'mine.md'}")
    assert done.code == 2
    assert "'map' has no {max_length}" in done.err
