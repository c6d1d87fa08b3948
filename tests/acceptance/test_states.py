"""Failed, partial, empty, late and cancelled are told apart: in the state, in words, in the exit code."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from support.oracles import sums_close
from support.provider import Provider
from support.stack import Stack


@pytest.fixture(scope="module", autouse=True)
def corpus(stack: Stack, topics: Path) -> None:
    stack.json("index", str(topics), "--corpus", "topics")


@pytest.fixture(autouse=True)
def _behaves(provider: Provider) -> None:
    provider.reset(error_rate=0.0, error_status=500, latency=0.0, reply="", hang_rate=0.0)


def ask(stack: Stack, question: str, *words: str) -> tuple[int, dict[str, Any]]:
    done = stack.run("ask", "topics", question, "--leaves", "--json", *words)
    answer: dict[str, Any] = json.loads(done.out)
    sums_close(answer["account"])
    return done.code, answer


def test_all_batches_fail(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=1.0, error_status=400)
    code, answer = ask(stack, "What fails?")
    assert (code, answer["status"]) == (4, "failed")
    assert answer["account"]["batches"]["failed"] == answer["account"]["batches"]["total"] > 0
    assert "error" in answer["answer"].lower()


def test_some_batches_fail(stack: Stack, provider: Provider) -> None:
    provider.reset(error_rate=0.5, error_status=400, seed=3)
    code, answer = ask(stack, "What fails in part?", "--max-context-tokens", "6000")
    batches = answer["account"]["batches"]
    assert 0 < batches["failed"] < batches["total"], "choose another seed"
    assert (code, answer["status"]) == (3, "partial")
    assert f"{batches['failed']} of {batches['total']}" in answer["answer"]


def test_nothing_found_makes_no_reduce_call(stack: Stack, provider: Provider) -> None:
    provider.reset(reply='{"points": []}')
    code, answer = ask(stack, "What about zebras?")
    assert (code, answer["status"]) == (0, "no_data")
    assert "reduce" not in answer["account"]["llm"]["by_stage"]
    assert answer["account"]["batches"]["empty"] == answer["account"]["batches"]["total"]


def test_a_deadline_gives_what_came_in_by_then(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=1.0)
    started = time.monotonic()
    code, answer = ask(stack, "What is late?", "--deadline", "5s")
    assert (code, answer["status"]) == (4, "failed")
    assert "deadline" in answer["answer"].lower()
    assert time.monotonic() - started < 60


def test_ctrl_c_stops_the_calls(stack: Stack, provider: Provider) -> None:
    provider.reset(hang_rate=1.0)
    running = stack.start("ask", "topics", "What is stopped?", "--leaves")
    until = time.monotonic() + 60
    while provider.stats()["in_flight"] == 0:
        assert time.monotonic() < until
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 4
    while provider.stats()["in_flight"]:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_reports_that_fail_are_written_by_hand_and_tried_again_by_resume(
    stack: Stack, provider: Provider, tmp_path: Path
) -> None:
    from support.topics import write_topics

    provider.reset(error_rate=0.3, error_status=400, seed=2)
    folder = write_topics(tmp_path / "few", 6)
    done = stack.run("index", str(folder), "--corpus", "mended", "--json")
    first = json.loads(done.out)
    assert (done.code, first["status"]) == (3, "partial")
    generated = first["reports"]["generated"]
    assert any("×" in warning for warning in first["warnings"])
    provider.reset(error_rate=0.0)
    job = stack.json("resume", first["job_id"])["job_id"]
    second = stack.json("job", job, "--follow")
    assert second["status"] == "published"
    # Only those that failed, and what stands on them, is asked again.
    assert second["reports"]["reused"] > 0
    assert provider.stats()["kinds"]["report"] == second["reports"]["generated"] < generated + 1
