"""What is done to a stack while it works: killing, freezing, cutting off, emptying."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

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


#: Every disturbance by its name.
ACTS: dict[str, Act] = {
    "kill": kill_a_worker,
    "freeze": freeze_a_worker,
    "connections": drop_connections,
    "redis": kill_redis,
    "s3": kill_s3,
    "flush": flush_redis,
}


def disturbed(stack: Stack, name: str, every: float, times: int, *words: str) -> tuple[Any, int]:
    """Run a command with `--json` while the stack is disturbed; return what it printed, and how often it was."""
    with meanwhile(stack, ACTS[name], every, times) as done:
        ended = stack.run(*words, "--json", timeout=240)
    assert done, "nothing was disturbed"
    return json.loads(ended.out), len(done)


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
