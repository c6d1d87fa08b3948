"""Relevance walks with a model that rates: within their money, time and calls, and what that left unrated is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.oracles import sums_close
from support.provider import Provider
from support.stack import FAST, Stack, running_stack
from support.topics import write_topics

QUESTION = "What is said of assertions?"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Stack]:
    """A stack whose workers ask the fake provider for ratings, too; reports are extractive."""
    stages = {**provider.settings("map"), **provider.settings("reduce"), **provider.settings("rate")}
    stages |= {"COMMUNITREE_LLM_PRICE_INPUT": "1", "COMMUNITREE_LLM_PRICE_OUTPUT": "4"}
    with running_stack(tmp_path_factory.mktemp("home"), {**FAST, **stages}) as running:
        folder = write_topics(tmp_path_factory.mktemp("corpus") / "topics", 40)
        running.call_json("index", str(folder), "--corpus", "topics")
        yield running


@pytest.fixture(autouse=True)
def _behaves(provider: Provider) -> None:
    provider.reset(hang_rate=0.0, error_rate=0.0, rating=-1, seed=1)


def ask(stack: Stack, *words: str) -> tuple[int, dict[str, Any]]:
    """Ask, with nothing known from before."""
    done = stack.call("ask", "topics", QUESTION, "--no-cache", "--json", *words)
    answer: dict[str, Any] = json.loads(done.out)
    account = answer["account"]
    sums_close(account)
    selection = account["selection"]
    told = account["coverage"]["entities"] + selection["pruned"]["entities"] + selection["left_out"]["entities"]
    if account["batches"]["failed"]:  # what these held is named as unread, and covered by nothing
        assert told < 1
    else:
        assert told == pytest.approx(1.0, abs=1e-4), "all that is not read is named"
    assert selection["budget"]["calls"] == account["llm"]["by_stage"]["rate"]["calls"]
    return done.code, answer


@pytest.mark.parametrize("budget", [0.04, 0.08, 1.0])
def test_a_walk_reads_within_its_money(stack: Stack, budget: float) -> None:
    planned = stack.call_json("ask", "topics", QUESTION, "--relevant", "--budget-usd", f"{budget}", "--plan")
    assert 0 < planned["usd"] <= budget
    code, answer = ask(stack, "--relevant", "--budget-usd", f"{budget}")
    account, stages = answer["account"], answer["account"]["llm"]["by_stage"]
    assert (code, answer["status"]) == (0, "answered"), answer
    assert account["reports"]["selected"] > 0
    assert account["llm"]["usd"] <= budget
    assert stages["rate"]["usd"] <= budget / 2
    assert stages["reduce"]["calls"] == 1
    unrated = account["selection"]["budget"]["unrated_because"]
    assert set(unrated) == ({"money"} if budget < 0.05 else set())  # an outline takes few tokens
    said = [w for w in account["warnings"] if "the part of the budget that ratings may spend was used up" in w]
    assert len(said) == len(unrated)
    assert all(f"{count:,} communities kept without a rating" in said[0] for count in unrated.values())


@pytest.mark.parametrize("strategy", ["--relevant", "--dynamic"])
def test_ratings_that_hang_leave_time_to_read(stack: Stack, provider: Provider, strategy: str) -> None:
    provider.reset(hang_rate=0.2, seed=5)
    _, answer = ask(stack, strategy, "--deadline", "10s")
    account = answer["account"]
    assert account["batches"]["answered"] > 0, answer
    assert answer["status"] in ("answered", "partial")
    budget = account["selection"]["budget"]
    assert budget["rated"] > 0
    assert budget["unrated"] == budget["unrated_because"]["deadline"] > 0
    assert any("the time for ratings was over" in warning for warning in account["warnings"])


def test_a_walk_without_any_rating_reads_what_is_coarse(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=1.0)
    _, answer = ask(stack, "--relevant", "--deadline", "4s")
    selection = answer["account"]["selection"]
    assert set(selection["levels"]) == {"0"}
    assert selection["budget"]["rated"] == selection["budget"]["calls"] == 0
    assert "nothing rated" in selection["why"]


def test_a_limit_of_calls_holds_for_repeats_and_for_both_walks(stack: Stack, provider: Provider) -> None:
    for strategy, repeats, made in (("--relevant", 3, 9), ("--dynamic", 1, 10)):
        provider.reset()
        words = (strategy, "--num-repeats", str(repeats), "--max-rating-calls", "10", "--candidates-per-call", "2")
        _, answer = ask(stack, *words)
        assert answer["account"]["selection"]["budget"]["calls"] == provider.stats()["kinds"]["ratings"] == made
        assert set(answer["account"]["selection"]["budget"]["unrated_because"]) == {"calls"}


def test_limits_of_tokens_and_reports_hold_together_and_with_an_audit(stack: Stack) -> None:
    _, answer = ask(stack, "--relevant", "--budget-tokens", "8000", "--budget-reports", "5", "--audit-pruned", "50%")
    selection = answer["account"]["selection"]
    assert 0 < selection["reports"] <= 5
    assert 0 < selection["tokens"] <= 8000
    assert selection["left_out"]["count"] > 0
    assert "within 8,000 tokens and 5 reports" in selection["why"]
    _, one = ask(stack, "--relevant", "--budget-reports", "1", "--audit-pruned", "50%")
    said = "\n".join(one["account"]["warnings"])
    assert "sample was cut to 0 of" in said
    assert "no community was pruned" not in said
    done = stack.call("ask", "topics", QUESTION, "--relevant", "--budget-tokens", "1", "--no-cache")
    assert done.code == 2
    assert "A budget of 1 token is too small" in done.out + done.err
