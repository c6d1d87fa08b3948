"""A thousand questions of twenty batches while workers are killed: jobs lost, double answers, stuck, calls wasted.

`python tests/soak/queries.py [--queries 1000] [--kills 40] [--batches 20] [--seed 1] [--at-once 24]`
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from communitree.client import Client
from communitree_shared.broker import layout
from communitree_shared.contract.options import BatchOptions, IndexOptions, QueryOptions, SelectionOptions
from support.provider import Provider, fake_provider
from support.stack import FAST, Stack, running_stack
from support.topics import write_topics

#: A question that has not ended after so many seconds is stuck.
STUCK = 240.0


@dataclass
class Figures:
    """What a run has shown."""

    queries: int = 0
    kills: int = 0
    batches: int = 0
    lost: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)
    needed: int = 0
    made: int = 0
    seconds: float = 0.0

    def told(self) -> str:
        """Return the figures in words. Of n trials without an event the rate is below 3/n, with 95 % confidence."""
        bound = f"(0 of {self.queries}: below {300 / max(1, self.queries):.2g} % at 95 %)"
        parts = [f"{self.queries} questions of {self.batches} batches, {self.kills} kills -9, {self.seconds:.0f} s:"]
        for name, found in (("jobs lost", self.lost), ("double answers", self.double), ("stuck", self.stuck)):
            parts.append(f"{name} {len(found)} {bound if not found else found[:5]};")
        parts.append(f"ended otherwise than answered: {dict(self.other) or 0};")
        wasted = self.made - self.needed
        parts.append(
            f"model calls {self.made}, needed {self.needed}, wasted {wasted} "
            f"({100 * wasted / max(1, self.needed):.2g} %, {wasted / max(1, self.kills):.1f} a kill)"
        )
        return "\n  ".join(parts)

    @property
    def good(self) -> bool:
        """Whether nothing was lost, answered twice, or stuck, and every question was answered."""
        return not (self.lost or self.double or self.stuck or self.other)


class Killer(threading.Thread):
    """Kills a random worker process, or child of one, whenever another part of the questions has ended."""

    def __init__(self, stack: Stack, kills: int, queries: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.stack, self.rng, self.ended, self.done = stack, random.Random(seed), 0, 0
        self.at = [queries * (n + 0.5) / kills for n in range(kills)]
        self.stop = threading.Event()

    def run(self) -> None:
        while self.at and not self.stop.wait(0.05):
            if self.ended < self.at[0]:
                continue
            with contextlib.suppress(psutil.Error, IndexError):
                workers = self.stack.workers()
                self.rng.choice([p for w in workers for p in (w, w, *w.children())]).kill()
                self.done += 1
                self.at.pop(0)


def batch_options(client: Client, batches: int) -> tuple[BatchOptions, int]:
    """Return options that cut the corpus into about so many batches, and how many they make."""
    choice, size = SelectionOptions(strategy="leaves"), 12_000
    found, best = 0, BatchOptions()
    for _ in range(8):
        best = BatchOptions(max_context_tokens=size)
        found = client.plan("corpus", "How many batches?", QueryOptions(selection=choice, batch=best)).batches
        if found == batches:
            break
        size = max(2_600, int(size * (0.5 + 0.5 * found / batches)))
    return best, found


def ask(client: Client, question: str, options: QueryOptions, figures: Figures, lock: threading.Lock) -> None:
    """Ask one question and note how it ended."""
    job = client.submit("corpus", question, options).job
    why = ""
    try:
        answer = client.wait_answer(job, STUCK)
        status = answer.status
    except TimeoutError:
        status, why = "stuck", "stuck"
    except Exception as error:
        status, why = "lost", f"{type(error).__name__}: {error}"
    types = Counter(e.type for e in client.events(job, timeout=5) if e) if not why else Counter[str]()
    with lock:
        if why == "stuck":
            figures.stuck.append(job)
        elif why:
            figures.lost.append(f"{job}: {why}")
        elif status != "answered":
            figures.other[status] += 1
        if not why and (types["reduce.committed"] != 1 or types["job.ended"] != 1):
            figures.double.append(f"{job}: {types['reduce.committed']} commits, {types['job.ended']} ends")


def run(stack: Stack, provider: Provider, folder: Path, asked: argparse.Namespace) -> Figures:
    """Ask all questions of one stack, killing as they end."""
    figures, lock = Figures(queries=asked.queries), threading.Lock()
    clients = [stack.client() for _ in range(asked.at_once)]
    clients[0].index(write_topics(folder / "topics", asked.documents), "corpus", IndexOptions())
    batch, figures.batches = batch_options(clients[0], asked.batches)
    options = QueryOptions(selection=SelectionOptions(strategy="leaves"), batch=batch)
    ask(clients[0], "What is a warm worker?", options, Figures(), lock)
    provider.reset(latency=asked.latency)
    killer = Killer(stack, asked.kills, asked.queries, asked.seed)
    killer.start()
    began = time.monotonic()
    free = list(clients)

    def one(n: int) -> None:
        if time.monotonic() - began > asked.minutes * 60:
            return
        with lock:
            client = free.pop()
        try:
            ask(client, f"What is the theme number {n} of run {asked.seed}?", options, figures, lock)
        finally:
            with lock:
                free.append(client)
                killer.ended += 1
                if killer.ended % 50 == 0:
                    print(f"  {killer.ended} ended, {killer.done} kills, {time.monotonic() - began:.0f} s", flush=True)

    with ThreadPoolExecutor(asked.at_once) as pool:
        list(pool.map(one, range(asked.queries)))
    killer.stop.set()
    killer.join()
    figures.seconds, figures.kills, figures.queries = time.monotonic() - began, killer.done, killer.ended
    figures.needed, figures.made = figures.queries * (figures.batches + 1), provider.stats()["requests"]
    redis: Any = clients[0]._redis
    until = time.monotonic() + 60
    while left := [
        k for k in (layout.UNACKED, "communitree:leases", "communitree:outbox", "communitree:open") if redis.exists(k)
    ]:
        if time.monotonic() > until:
            figures.stuck.append(f"not at rest: {left}")
            break
        time.sleep(0.2)
    for client in clients:
        client.close()
    return figures


def main(words: list[str] | None = None) -> Figures:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=24)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--minutes", type=float, default=60, help="ask no more after this time")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, fake_provider() as provider:
        stages = {**provider.settings("map"), **provider.settings("reduce")}
        env = {**FAST, "COMMUNITREE_LEASE": "4", "COMMUNITREE_LEASE_RENEWAL": "1", **stages}
        with running_stack(Path(folder) / "home", env, "--models", "2", "--cpu", "1") as stack:
            figures = run(stack, provider, Path(folder), asked)
            if not figures.good:
                print(stack.logs(), file=sys.stderr)
    print(figures.told(), flush=True)
    return figures


if __name__ == "__main__":
    sys.exit(0 if main().good else 1)
