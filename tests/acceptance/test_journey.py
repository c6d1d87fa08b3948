"""From text to a cited answer, on real servers and worker processes, with a provider that answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.oracles import levels_in_order, one_commit, reports_close, sums_close
from support.provider import Provider
from support.stack import FAST, Stack, running_stack

QUESTION = "What are the main themes?"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Stack]:
    """A stack with long leases: nothing is disturbed here, and the last test looks whether the workers knew it."""
    slots = {name: FAST[name] for name in ("COMMUNITREE_CPU_SLOTS", "COMMUNITREE_MODEL_SLOTS")}
    slots["COMMUNITREE_LEASE"] = "60"  # no pause of a busy machine looks like a death
    stages = {**provider.settings("report"), **provider.settings("map"), **provider.settings("reduce")}
    with running_stack(tmp_path_factory.mktemp("home"), {**slots, **stages}) as running:
        yield running


@pytest.fixture(scope="module")
def result(stack: Stack, topics: Path) -> dict[str, Any]:
    return stack.call_json("index", str(topics), "--corpus", "topics")


def test_the_result_adds_up(stack: Stack, result: dict[str, Any]) -> None:
    assert result["status"] == "published"
    reports_close(result)
    assert result["llm"]["by_stage"]["report"]["calls"] == result["reports"]["generated"] > 0
    assert result["llm"]["usd"] is None  # the price of `fake` is unknown, which is not 0


def test_levels_are_reported_bottom_up(stack: Stack, result: dict[str, Any]) -> None:
    levels_in_order(stack.call_json("job", result["job_id"])["events"])


def test_an_answer_and_its_account(stack: Stack, result: dict[str, Any], provider: Provider) -> None:
    answer = stack.call_json("ask", "topics", QUESTION, "--leaves")
    sums_close(answer["account"])
    assert answer["status"] == "answered"
    assert answer["account"]["coverage"]["text_units_assigned"] == 1.0
    one_commit(stack.call_json("job", answer["job_id"])["events"])
    # The same question again costs nothing, and is the same job.
    provider.reset()
    again = stack.call_json("ask", "topics", QUESTION, "--leaves")
    assert again["job_id"] == answer["job_id"]
    assert provider.stats()["requests"] == 0


def test_the_same_batches_of_another_job_are_taken_from_the_cache(
    stack: Stack, result: dict[str, Any], provider: Provider
) -> None:
    provider.reset()
    first = stack.call_json("ask", "topics", "What is an exception?", "--leaves")
    total = first["account"]["batches"]["total"]
    assert provider.stats()["kinds"]["map"] == total
    provider.reset()
    other = stack.call_json("ask", "topics", "What is an exception?", "--leaves", "--response-type", "single paragraph")
    assert other["job_id"] != first["job_id"]
    assert other["account"]["batches"]["cached"] == total
    assert "map" not in provider.stats()["kinds"]


def test_every_verified_citation_leads_to_text(stack: Stack, result: dict[str, Any]) -> None:
    answer = stack.call_json("ask", "topics", QUESTION, "--budget-tokens", "20000")
    assert answer["account"]["selection"]["tokens"] <= 20_000
    verified = [c for c in answer["citations"] if c["verified"]]
    assert verified
    for citation in verified[:3]:
        assert stack.call_json("source", "topics", citation["text_units"][0])["text"]
        held = stack.call_json("report", "topics", str(citation["report"]))["text_units"]
        assert set(citation["text_units"]) <= set(held)


def test_an_index_of_the_same_documents_reuses_every_report(
    stack: Stack, result: dict[str, Any], topics: Path, provider: Provider
) -> None:
    provider.reset()
    again = stack.call_json("index", str(topics), "--corpus", "topics")
    assert again["version"] != result["version"]
    assert again["reports"]["reused"] == again["counts"]["communities"]
    assert provider.stats()["requests"] == 0


def test_chinese_through_to_the_answer(stack: Stack, tmp_path: Path) -> None:
    people = ["林岚", "周平", "陈素", "何远"]
    places = ["青石镇", "北码头", "旧书院"]
    (tmp_path / "故事.txt").write_text(
        "".join(
            f"{people[n % 4]}在{places[n % 3]}遇见了{people[(n + 1) % 4]}，两人谈起{places[(n + 1) % 3]}的旧事。"
            for n in range(60)
        ),
        encoding="utf-8",
    )
    indexed = stack.call_json("index", str(tmp_path), "--corpus", "故事")
    reports_close(indexed)
    answer = stack.call_json("ask", "故事", "主要人物有哪些？")
    assert answer["status"] == "answered"
    sums_close(answer["account"])


def test_without_faults_the_reconciler_publishes_nothing_again(stack: Stack, result: dict[str, Any]) -> None:
    with stack.client() as client:
        assert int(client._redis.get("communitree:epoch") or 0) > 0, "the reconciler never ticked"
        events = [event for job in client.jobs() for event in client.job(job.job_id).events]
    assert len(events) > 100
    assert [event for event in events if event["type"] == "unit.retried"] == []
    logs = "".join(log.read_text(errors="replace") for log in (stack.home / "logs").glob("worker*.log"))
    assert "serving" in logs
    assert "publishing again" not in logs
