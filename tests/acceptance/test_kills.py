"""Kill anything while a corpus is indexed and a question is asked: the same tree, one answer, no call paid twice."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.oracles import levels_in_order, one_commit, reports_close, shape, sums_close
from support.provider import Provider
from support.stack import Stack

Act = Callable[[Stack, random.Random], None]


def kill_a_worker(stack: Stack, rng: random.Random) -> None:
    processes = [p for w in stack.workers() for p in (w, *w.children())]
    if processes:
        rng.choice(processes).kill()


def freeze_a_worker(stack: Stack, rng: random.Random) -> None:
    """Beyond its lease: it comes back as a zombie whose units others have taken over."""
    workers = stack.workers()
    if workers:
        victim = rng.choice(workers)
        victim.suspend()
        time.sleep(3.5)
        victim.resume()


def drop_connections(stack: Stack, rng: random.Random) -> None:
    with stack.client() as client:
        client._redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def kill_redis(stack: Stack, rng: random.Random) -> None:
    server(stack, "valkey-server").kill()


def kill_s3(stack: Stack, rng: random.Random) -> None:
    server(stack, "weed").kill()


def flush_redis(stack: Stack, rng: random.Random) -> None:
    with stack.client() as client:
        client._redis.flushall()


def server(stack: Stack, name: str) -> psutil.Process:
    return next(p for p in stack.processes() if name in p.name())


@contextlib.contextmanager
def meanwhile(stack: Stack, act: Act, every: float, times: int) -> Iterator[list[float]]:
    """Do something again and again while the block runs; yields when it was done."""
    stop, done = threading.Event(), list[float]()

    def work() -> None:
        rng = random.Random(7)
        while len(done) < times and not stop.wait(every):
            with contextlib.suppress(psutil.Error, StopIteration):
                act(stack, rng)
                done.append(time.monotonic())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join(20)


@pytest.fixture(scope="module")
def calm(stack: Stack, topics: Path, provider: Provider) -> dict[str, Any]:
    """The undisturbed run: its result, tree, and how many calls it took."""
    provider.reset()
    result = stack.json("index", str(topics), "--corpus", "calm")
    calls = provider.stats()["requests"]
    return {"result": result, "tree": shape(stack.json("tree", "calm")), "calls": calls}


@pytest.mark.parametrize(
    ("name", "act", "every", "times"),
    [
        ("kill", kill_a_worker, 1.2, 6),
        ("freeze", freeze_a_worker, 0.8, 2),
        ("connections", drop_connections, 1.0, 3),
        ("redis", kill_redis, 1.0, 1),
        ("s3", kill_s3, 1.0, 1),
        ("flush", flush_redis, 1.0, 1),
    ],
)
def test_a_disturbed_index_is_the_same(
    stack: Stack, topics: Path, provider: Provider, calm: dict[str, Any], name: str, act: Act, every: float, times: int
) -> None:
    provider.reset(latency=0.8)
    with meanwhile(stack, act, every, times) as done:
        ended = stack.run("index", str(topics), "--corpus", name, "--json", timeout=240)
    result = json.loads(ended.out)
    assert done, "nothing was disturbed"
    assert result["status"] == "published", (result, stack.logs())
    reports_close(result)
    assert result["counts"] == calm["result"]["counts"]
    assert shape(stack.json("tree", name)) == calm["tree"]
    stats = provider.stats()
    cut = stats["outcomes"].get("cut_by_client", 0)
    lost = len(done) * 40  # at most what was in flight at each disturbance
    assert stats["requests"] - cut <= calm["calls"] + lost
    if name != "flush":
        levels_in_order(stack.json("job", result["job_id"])["events"])


@pytest.mark.parametrize(
    ("name", "act", "every", "times"),
    [
        ("kill", kill_a_worker, 0.7, 4),
        ("freeze", freeze_a_worker, 0.5, 1),
        ("connections", drop_connections, 0.7, 2),
        ("redis", kill_redis, 1.0, 1),
        ("flush", flush_redis, 1.0, 1),
    ],
)
def test_a_disturbed_question_is_answered_once(
    stack: Stack, provider: Provider, calm: dict[str, Any], name: str, act: Act, every: float, times: int
) -> None:
    provider.reset(latency=1.0)
    with meanwhile(stack, act, every, times) as done:
        ended = stack.run("ask", "calm", f"What about {name}?", "--leaves", "--json", timeout=240)
    answer = json.loads(ended.out)
    assert done, "nothing was disturbed"
    assert answer["status"] == "answered", (answer, stack.logs())
    sums_close(answer["account"])
    assert answer["account"]["batches"]["failed"] == 0
    one_commit(stack.json("job", answer["job_id"])["events"])


def test_at_rest_nothing_is_left_in_the_broker(stack: Stack, calm: dict[str, Any]) -> None:
    with stack.client() as client:
        redis = client._redis
        until = time.monotonic() + 30
        while redis.exists("unacked") or redis.zcard("communitree:leases") or redis.zcard("communitree:sent"):
            assert time.monotonic() < until, list(redis.scan_iter("*"))
            time.sleep(0.5)
        assert redis.zcard("communitree:outbox") == 0
        assert redis.zcard("communitree:open") == 0


def test_sigterm_of_every_worker_in_turn_loses_nothing(stack: Stack, provider: Provider, calm: dict[str, Any]) -> None:
    provider.reset(latency=0.5)

    def roll(stack: Stack, rng: random.Random) -> None:
        for worker in stack.workers():
            worker.send_signal(signal.SIGTERM)

    with meanwhile(stack, roll, 1.0, 1) as done:
        answer = stack.json("ask", "calm", "What about a rolling restart?", "--leaves", timeout=240)
    assert done
    assert answer["status"] == "answered"
    assert answer["account"]["batches"]["failed"] == 0
