"""A process dies between taking a message and beginning it: real workers, killed at that point."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from communitree_shared.broker import layout
from communitree_shared.redis_server import rediskeys as rk

SUBTREE = "communitree.corpus.subtree.v1"
MAP = "communitree.query.map.v1"
QUEUE = "communitree.cluster"

#: As in earnest, the broker itself would hand a message out again long after the test.
LATE = {"COMMUNITREE_VISIBILITY_TIMEOUT": "90"}


def started(bench: Any, job: str) -> list[str]:
    return sorted(line[1] for line in bench.log() if line[0] == "start" and line[1].startswith(f"{job}-"))


@pytest.mark.parametrize(("kind", "task"), [("cpu", SUBTREE), ("models", MAP)])
def test_what_killed_workers_had_taken_is_begun_by_others_soon(bench: Any, kind: str, task: str) -> None:
    """Nothing else points to it: the queue is never empty, and nothing in it was published much later."""
    bench.submit("a", task, [{} for _ in range(3)])
    one = {"COMMUNITREE_CPU_SLOTS": "1", "COMMUNITREE_MODEL_SLOTS": "1", "COMMUNITREE_CRASH_AT": "take", **LATE}
    for worker in [bench.start(kind, **one) for _ in range(3)]:
        assert worker.wait(60) == -signal.SIGKILL
    assert bench.ledger.redis.hlen(layout.UNACKED) == 3
    bench.submit("b", task, [{"seconds": 0.4} for _ in range(120)])
    bench.start(kind, COMMUNITREE_MODEL_SLOTS="2", **LATE)
    bench.wait(lambda: started(bench, "b"), 60)
    bench.wait(lambda: started(bench, "a") == ["a-0", "a-1", "a-2"], 10)
    assert len(started(bench, "b")) < 120


def test_what_a_living_worker_cannot_begin_for_long_stays_with_it(bench: Any) -> None:
    bench.start("cpu", **LATE)
    bench.submit("a", SUBTREE, [{}])
    bench.wait(lambda: bench.state("a") == "answered")
    bench.wait(lambda: not bench.ledger.redis.exists(layout.UNACKED), 5)
    children = psutil.Process(bench.workers[0].pid).children()
    for child in children:
        child.suspend()
    bench.submit("b", SUBTREE, [{}, {}])
    bench.wait(lambda: bench.ledger.redis.hlen(layout.UNACKED) == 2, 10)
    end = time.monotonic() + 4  # two and a half leases
    while time.monotonic() < end:
        assert bench.ledger.redis.hlen(layout.UNACKED) == 2
        assert bench.ledger.redis.llen(QUEUE) == 0
        time.sleep(0.02)
    for child in children:
        child.resume()
    bench.wait(lambda: bench.state("b") == "answered")
    assert started(bench, "b") == ["b-0", "b-1"]


def test_what_a_killed_child_had_not_begun_is_begun_by_another_at_once(bench: Any, tmp_path: Path) -> None:
    """Celery acknowledges its message, and no lease tells of it: before, that was lost until its queue looked empty."""
    bench.start("cpu", COMMUNITREE_CRASH_AT=f"begin.before@{tmp_path / 'fired'}", **LATE)
    bench.wait(lambda: bench.ledger.redis.exists(rk.RECONCILER), 60)
    bench.submit("a", SUBTREE, [{}])
    bench.wait(lambda: started(bench, "a") == ["a-0"], 8)
    assert os.path.exists(tmp_path / "fired")
    ((attempt,),) = [[line[2]] for line in bench.log() if line[0] == "start"]
    assert attempt == "2"
