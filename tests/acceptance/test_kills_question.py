"""Kill anything while a question is asked: one answer, whole, and nothing left behind."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from communitree_shared.broker import layout
from support.disturb import disturbed, meanwhile
from support.oracles import one_commit, sums_close
from support.provider import Provider
from support.stack import Stack


@pytest.fixture(scope="module")
def indexed(stack: Stack, topics: Path) -> None:
    stack.call_json("index", str(topics), "--corpus", "calm")


@pytest.mark.parametrize(
    ("name", "every", "times"),
    [("kill", 0.7, 4), ("freeze", 0.5, 1), ("connections", 0.7, 2), ("redis", 1.0, 1), ("flush", 1.0, 1)],
)
def test_a_disturbed_question_is_answered_once(
    stack: Stack, provider: Provider, indexed: None, name: str, every: float, times: int
) -> None:
    provider.reset(latency=1.0)
    answer, _ = disturbed(stack, name, every, times, "ask", "calm", f"What about {name}?", "--leaves")
    assert answer["status"] == "answered", (answer, stack.logs())
    sums_close(answer["account"])
    assert answer["account"]["batches"]["failed"] == 0
    one_commit(stack.call_json("job", answer["job_id"])["events"])


def test_at_rest_nothing_is_left_in_the_broker(stack: Stack, indexed: None) -> None:
    with stack.client() as client:
        redis = client._redis
        until = time.monotonic() + 30
        while redis.exists(layout.UNACKED) or redis.zcard("communitree:leases") or redis.zcard("communitree:sent"):
            assert time.monotonic() < until, list(redis.scan_iter("*"))
            time.sleep(0.5)
        assert redis.zcard("communitree:outbox") == 0
        assert redis.zcard("communitree:open") == 0


def test_sigterm_of_every_worker_in_turn_loses_nothing(stack: Stack, provider: Provider, indexed: None) -> None:
    provider.reset(latency=0.5)

    def roll(stack: Stack, rng: random.Random) -> None:
        for worker in stack.workers():
            worker.send_signal(signal.SIGTERM)

    with meanwhile(stack, roll, 1.0, 1) as done:
        answer = stack.json("ask", "calm", "What about a rolling restart?", "--leaves", timeout=240)
    assert done
    assert answer["status"] == "answered"
    assert answer["account"]["batches"]["failed"] == 0
