"""What one small index and one question cost, in operations: a change that costs more has to say so here.

Ceilings, not goals. A figure above its ceiling fails; so does one far below it, because then the ceiling guards
nothing any more and is to be lowered.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis

from communitree.client import Client
from communitree.embedded.servers import Servers
from communitree_shared.settings import Settings
from support.counting_proxy import Requests, counting_proxy

TESTS = Path(__file__).parents[1]
QUIET = {  # nothing but the jobs themselves: no reconciler, no renewals while they run
    "COMMUNITREE_RECONCILER_TICK": "600",
    "COMMUNITREE_LEASE": "600",
    "COMMUNITREE_LEASE_RENEWAL": "600",
    "COMMUNITREE_VISIBILITY_TIMEOUT": "3600",
    "COMMUNITREE_CPU_SLOTS": "1",
    "COMMUNITREE_MODEL_SLOTS": "4",
}
#: Waiting and connecting, which depend on the clock.
WAITING = frozenset({
    "brpop", "xread", "xrange", "ping", "info", "auth", "select", "hello", "client", "client|setinfo",
    "client|setname", "client|id", "subscribe", "time", "zrevrangebyscore", "zrange", "zrangebyscore", "script|load",
    "command", "command|docs", "config|resetstat",
})  # fmt: skip
PEOPLE = ("Mara Lindqvist", "Oskar Petrov", "Ines Fontaine", "Tomas Okafor", "Hanna Weiss", "Paul Adeyemi")
PLACES = ("Port Alder", "Tallow Bay", "Grey Harbour", "Silver Point", "North Quay")
THINGS = ("container terminal", "sea wall", "fish market", "storm surge", "tugboats", "harbour railway", "salt works")

#: Measured, and a tenth on top. `messages` are exact.
INDEX = {"messages": 13, "redis": 1600, "requests": 260, "tokenised": 420_000}
QUESTION = {"messages": 3, "redis": 390, "requests": 20, "tokenised": 9_500}
NEXT_QUESTION = {"messages": 3, "redis": 390, "requests": 8, "tokenised": 1_150}
SAME_QUESTION = {"messages": 0, "redis": 15, "requests": 3, "tokenised": 0}

#: Figures so small are no measure of what was saved.
SMALL = 20


def write_corpus(folder: Path, documents: int = 24, sentences: int = 40) -> int:
    """Write documents of fixed text; returns their bytes."""
    folder.mkdir()
    size = 0
    for d in range(documents):
        lines = []
        for s in range(sentences):
            who, other = PEOPLE[(d + s) % 6], PEOPLE[(d * 5 + s * 3 + 1) % 6]
            where, what = PLACES[(d + s * 2) % 5], THINGS[(d * 3 + s) % 7]
            lines.append(f"{who} of {where} told {other} about the {what} in report {d * sentences + s}.")
        text = " ".join(lines)
        size += len(text)
        (folder / f"report-{d:02}.txt").write_text(text)
    return size


@dataclass
class Spent:
    """Operations between two looks."""

    messages: int
    redis: int
    requests: int
    tokenised: int
    details: dict[str, Counter[str]] = field(repr=False)


class Meter:
    """Reads the counters of the servers and of the workers."""

    def __init__(self, connection: redis.Redis, requests: Requests, counted: Path) -> None:
        self.connection, self.requests, self.counted = connection, requests, counted
        self._last = self._look()

    def _look(self) -> tuple[Counter[str], Counter[str], int]:
        stats: dict[str, dict[str, int]] = self.connection.info("commandstats")
        commands = Counter({name.removeprefix("cmdstat_"): value["calls"] for name, value in stats.items()})
        tokenised = sum(map(int, self.counted.read_text().split())) if self.counted.exists() else 0
        return commands, Counter(self.requests.counts), tokenised

    def spent(self) -> Spent:
        """Return what was spent since the last call."""
        before, self._last = self._last, self._look()
        commands = self._last[0] - before[0]
        requests = self._last[1] - before[1]
        own = Counter({name: n for name, n in commands.items() if name not in WAITING})
        return Spent(
            messages=commands["lpush"],
            redis=own.total(),
            requests=requests.total(),
            tokenised=self._last[2] - before[2],
            details={"redis": own, "s3": requests},
        )


@dataclass
class Bench:
    client: Client
    meter: Meter
    folder: Path


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("cost")
    counted = folder / "counted"
    with ExitStack() as stack:
        endpoints = stack.enter_context(Servers(folder / "servers"))
        relay, requests = stack.enter_context(counting_proxy(endpoints.s3_endpoint))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("COMMUNITREE_")}
        own = {**endpoints.environment(), "COMMUNITREE_S3_ENDPOINT": relay, "COMMUNITREE_HOME": str(folder / "home")}
        environment = {**clean, **QUIET, **own, "COUNTED": str(counted), "PYTHONPATH": str(TESTS)}
        for kind in ("cpu", "models"):
            log = stack.enter_context((folder / f"{kind}.log").open("wb"))
            command = [sys.executable, "-P", "-m", "support.counting_worker", kind]
            worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            stack.callback(worker.wait, 30)
            stack.callback(worker.terminate)
        settings = endpoints.into(Settings(home=folder / "home")).model_copy(update={"s3_endpoint": relay})
        connection = stack.enter_context(redis.Redis.from_url(endpoints.redis_url, decode_responses=True))
        end = time.monotonic() + 60
        while connection.info("clients")["blocked_clients"] < 2:
            assert time.monotonic() < end, "\n".join(log.read_text() for log in folder.glob("*.log"))
            time.sleep(0.1)
        client = stack.enter_context(Client(settings))
        yield Bench(client, Meter(connection, requests, counted), folder)


def check(what: str, spent: Spent, ceilings: dict[str, int]) -> None:
    """Compare with the ceilings; the message gives all figures, to be written above where the change is meant."""
    figures = {name: getattr(spent, name) for name in ceilings}
    above = {name: n for name, n in figures.items() if n > ceilings[name]}
    below = {name: n for name, n in figures.items() if n < 0.6 * ceilings[name] and ceilings[name] > SMALL}
    details = "\n".join(f"  {n:6} {name}" for counts in spent.details.values() for name, n in counts.most_common(12))
    assert not above, f"{what} costs more than its ceiling: {above}; all figures {figures}\n{details}"
    assert not below, f"lower the ceiling of {what}, it guards nothing: {below}; all figures {figures}\n{details}"


def test_an_index_and_questions_cost_no_more_than_they_did(bench: Bench) -> None:
    write_corpus(bench.folder / "corpus")
    bench.meter.spent()
    assert bench.client.index(bench.folder / "corpus", "cost").status == "published"
    check("the index", bench.meter.spent(), INDEX)
    first = bench.client.ask("cost", "What are the main themes?")
    assert first.status == "answered"
    check("the first question", bench.meter.spent(), QUESTION)
    assert bench.client.ask("cost", "What are the main themes?").job_id == first.job_id
    check("the same question", bench.meter.spent(), SAME_QUESTION)
    assert bench.client.ask("cost", "What is the most important topic?").status == "answered"
    check("another question", bench.meter.spent(), NEXT_QUESTION)
