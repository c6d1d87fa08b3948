"""Kill a process at a named point of a job's life, and say whether the job ended as if nothing had happened."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from communitree.client import Client
from communitree_shared.broker import layout
from communitree_shared.contract.options import (
    BatchOptions,
    ClusterOptions,
    IndexOptions,
    QueryOptions,
    SelectionOptions,
    Turn,
)
from communitree_shared.contract.results import Answer
from communitree_shared.contract.tables import COLUMNS
from communitree_shared.ledger.jobs import ENDED
from communitree_shared.objects.keys import Keys
from communitree_shared.redis_server import rediskeys as rk
from support.oracles import levels_in_order, one_commit, reports_close, sums_close
from support.provider import Provider, fake_provider
from support.stack import FAST, Stack, running_stack

T = "default"

#: A killed process's work is taken over soon. A busy machine may miss leases of its own: these are not to end a unit.
QUICK = {
    **FAST, "COMMUNITREE_VISIBILITY_TIMEOUT": "5", "COMMUNITREE_LEASE_RENEWAL": "0.4", "COMMUNITREE_MAX_ATTEMPTS": "50",
    "COMMUNITREE_RECONCILER_TICK": "0.3",
}  # fmt: skip

#: So long a disturbed job may take, on however busy a machine.
PATIENCE = 240.0

Job = Callable[[], dict[str, Any]]


@dataclass
class Result:
    """One run with a kill at each of some points, one after another: which did not happen, what was wrong after it."""

    points: list[str]
    job: str
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    calls: int = 0
    problems: list[str] = field(default_factory=list)


class Crashes:
    """A stack whose workers pass crash points, and the jobs that are disturbed in it."""

    def __init__(self, stack: Stack, provider: Provider, folder: Path) -> None:
        self.stack, self.provider, self.folder = stack, provider, folder
        self.file = Path(stack.env["COMMUNITREE_CRASH_AT"].removeprefix("@"))
        self.client: Client = stack.client()
        self.redis: Any = self.client._redis
        self.documents = self._documents()
        self.number = 0
        self.calm: dict[str, tuple[Any, int, float]] = {}

    def _documents(self) -> Path:
        folder = self.folder / "documents"
        folder.mkdir()
        for name in ("integers", "booleans", "global", "return", "assert", "del", "power", "atom-identifiers"):
            (folder / f"{name}.txt").write_text(topics[name], encoding="utf-8")
        return folder

    # --- jobs: each returns what must be the same, disturbed or not -----------------------------------------

    def index(self) -> dict[str, Any]:
        """Index a new corpus: all steps, a large community in a message of its own."""
        self.number += 1
        corpus = f"corpus-{self.number}"
        options = IndexOptions(cluster=ClusterOptions(max_cluster_size=6, spread_above=3))
        job = self.client.submit_index(self.documents, corpus, options)
        result = self.client.wait_index(job, PATIENCE)
        assert result.status == "published", (result.status, result.warnings, self.stack.logs(1500))
        reports_close(result.model_dump())
        events = [e.as_json() for e in self.client.events(job) if e]
        levels_in_order(events)
        self._one_outcome_each(events)
        keys = Keys(T)
        tables = {
            name: hashlib.sha256(self.client._store.get(keys.table(corpus, result.version, name))).hexdigest()[:12]
            for name in COLUMNS
        }
        left = list(self.client._store.keys(keys.build(corpus, result.version)))
        assert not left, f"left of the making of a version: {left[:3]}"
        self._nothing_left(job)
        self.client.delete(corpus)
        return {"status": result.status, "counts": result.counts.model_dump(), "tables": tables}

    def _ask(self, question: str, **options: Any) -> Answer:
        job = self.client.submit("corpus", question, QueryOptions(cache=False, **options)).job
        answer = self.client.wait_answer(job, PATIENCE)
        assert answer.status == "answered", (answer.status, answer.account.warnings)
        sums_close(answer.account.model_dump())
        events = [e.as_json() for e in self.client.events(job) if e]
        one_commit(events)
        self._one_outcome_each(events)
        self._nothing_left(job)
        return answer

    def _same(self, answer: Answer) -> dict[str, Any]:
        batches = answer.account.batches
        return {"status": answer.status, "answer": answer.answer, "batches": (batches.total, batches.answered)}

    def ask(self) -> dict[str, Any]:
        """Ask a question over all leaves: plan, map, reduce."""
        batch = BatchOptions(max_context_tokens=3_400)
        return self._same(self._ask("What is an integer?", selection=SelectionOptions(strategy="leaves"), batch=batch))

    def walk(self) -> dict[str, Any]:
        """Ask with a relevance walk: rate, walk."""
        return self._same(self._ask("What is a boolean?", selection=SelectionOptions(strategy="dynamic")))

    def converse(self) -> dict[str, Any]:
        """Ask a question that follows another: rewrite."""
        before = [Turn(role="user", content="What is an integer?"), Turn(role="assistant", content="A number.")]
        return self._same(self._ask("And a boolean?", history=before, selection=SelectionOptions(strategy="leaves")))

    def look(self) -> dict[str, Any]:
        """Look at a tree."""
        return {"communities": [c.key for c in self.client.tree("corpus").communities]}

    def late(self) -> dict[str, Any]:
        """Ask what no model answers before the deadline: the reconciler expires the map."""
        self.provider.reset(hang_rate=1.0)
        try:
            job = self.client.submit("corpus", "What is late?", QueryOptions(cache=False, deadline_seconds=3)).job
            answer = self.client.wait_answer(job, PATIENCE)
            self._nothing_left(job)
        finally:
            self.provider.reset(hang_rate=0.0)
        return {"status": answer.status}

    def slow(self) -> dict[str, Any]:
        """Ask while every model call takes longer than a heartbeat."""
        self.provider.reset(latency=1.5)
        try:
            return self.ask()
        finally:
            self.provider.reset(latency=0.0)

    def stream(self) -> dict[str, Any]:
        """Ask through the stream of requests."""
        request = {"kind": "query", "corpus": "corpus", "question": "What is power?", "options": {"cache": False}}
        entry = str(self.redis.xadd(rk.requests(T), {"request": json.dumps(request)}))
        until = time.monotonic() + PATIENCE
        while not (told := [f for _, f in self.redis.xrange(rk.results(T)) if f.get("request") == entry]):
            assert time.monotonic() < until, "no outcome"
            time.sleep(0.05)
        answer = self.client.wait_answer(told[0]["job"], PATIENCE)
        told = [f for _, f in self.redis.xrange(rk.results(T)) if f.get("request") == entry]
        assert len(told) == 1, f"{len(told)} outcomes"
        self._nothing_left(told[0]["job"])
        return self._same(answer)

    def jobs(self) -> dict[str, Job]:
        """Return the jobs by name."""
        return {
            "index": self.index, "ask": self.ask, "walk": self.walk, "converse": self.converse, "look": self.look,
            "late": self.late, "slow": self.slow, "stream": self.stream,
        }  # fmt: skip

    # --- points ---------------------------------------------------------------------------------------------

    def prepare(self, name: str) -> None:
        """Index the corpus that is asked, and run a job undisturbed."""
        if name in self.calm:
            return
        if not any(c["name"] == "corpus" for c in self.client.corpora()):
            self.client.index(self.documents, "corpus", IndexOptions(cluster=ClusterOptions(max_cluster_size=6)))
        self.provider.reset()
        began = time.monotonic()
        found = self.jobs()[name]()
        self.calm[name] = (found, self.provider.stats()["requests"], time.monotonic() - began)

    def passed(self, name: str) -> list[str]:
        """Return the points that a job passes, in the order of first passes: `<point>/<who>`."""
        self.prepare(name)
        self.file.write_text("?")
        self.jobs()[name]()
        self.file.unlink()
        noted = Path(f"{self.file}.passed")
        found = dict.fromkeys(noted.read_text().splitlines())
        noted.unlink()
        return [p for p in found if p.split("/")[1] != "caller"]

    def kill(self, name: str, *points: str) -> Result:
        """Run a job, killing a process at each of these points, one after another."""
        for left in (self.file, Path(f"{self.file}.fired")):
            left.unlink(missing_ok=True)
        self.prepare(name)
        want, calls, _ = self.calm[name]
        result = Result(list(points), name)
        self.provider.reset()
        aside = self.file.with_suffix(".new")
        aside.write_text("\n".join(points))
        aside.rename(self.file)
        began = time.monotonic()
        try:
            got = self.jobs()[name]()
            if got != want:
                changed = {k: (got[k], want[k]) for k in want if got.get(k) != want[k]}
                result.problems.append(f"another result: {str(changed)[:600]}")
        except Exception as error:
            result.problems.append(f"{type(error).__name__}: {error}"[:600])
        result.seconds = round(time.monotonic() - began, 2)
        result.calls = self.provider.stats()["requests"] - calls
        result.missed = self.file.read_text().splitlines() if self.file.exists() else []
        self.file.unlink(missing_ok=True)
        return result

    def kill_caller(self, point: str, *words: str) -> Result:
        """Run a command that is killed at a point: what it has submitted by then ends well without it."""
        self.prepare("ask")
        marker = self.folder / f"caller-{point}"
        marker.unlink(missing_ok=True)
        before = set(self.client._ledger.jobs(T))
        result = Result([f"{point}/caller"], words[0])
        began = time.monotonic()
        env = {**self.stack.env, "COMMUNITREE_CRASH_AT": f"{point}@{marker}"}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "communitree", *words], env=env, capture_output=True, timeout=PATIENCE
        )
        result.missed = [] if done.returncode == -9 and marker.exists() else [point]
        try:
            for job in set(self.client._ledger.jobs(T)) - before:
                until = time.monotonic() + PATIENCE
                while self.client._jobs.record(job)["state"] not in ENDED:
                    assert time.monotonic() < until, f"job {job} has not ended"
                    time.sleep(0.05)
                state = self.client._jobs.record(job)["state"]
                assert state in {"answered", "published", "cancelled"}, state
                self._nothing_left(job)
        except Exception as error:
            result.problems.append(f"{type(error).__name__}: {error}"[:600])
        result.seconds = round(time.monotonic() - began, 2)
        return result

    # --- oracles --------------------------------------------------------------------------------------------

    def _one_outcome_each(self, events: list[dict[str, Any]]) -> None:
        ended = Counter((e["stage"], e["unit"]) for e in events if e["type"] == "unit.ended")
        assert set(ended.values()) <= {1}, f"several outcomes: {ended.most_common(3)}"

    def _nothing_left(self, job: str) -> None:
        """No key of an ended job without a time to live, none of its members in the sets of all jobs."""
        until = time.monotonic() + 20
        while (left := self._left(job)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not left, f"left in Redis: {left[:3]}"

    def _left(self, job: str) -> list[str]:
        found: list[str] = []
        for key in map(str, self.redis.scan_iter(f"{rk.PREFIX}*")):
            if f":{job}" in key:
                if self.redis.ttl(key) == -1:
                    found.append(key)
                continue
            kind = self.redis.type(key)
            read = {"zset": lambda k: self.redis.zrange(k, 0, -1), "hash": self.redis.hkeys,
                    "list": lambda k: self.redis.lrange(k, 0, -1)}.get(kind)  # fmt: skip
            if key.endswith(f":jobs:{T}"):
                continue  # its history
            found += [f"{key}: {m}" for m in (read(key) if read else []) if f"|{job}" in str(m)]
        if self.client._store.exists(self.client._jobs.keys.open_job(job)):
            found.append(f"the marker of {job}")
        return found

    def at_rest(self) -> list[str]:
        """Wait until the broker holds nothing any more; return what it still holds."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            left = [k for k in (layout.UNACKED, "communitree:leases", "communitree:sent", "communitree:outbox")
                    if self.redis.exists(k)]  # fmt: skip
            if not left:
                return []
            time.sleep(0.2)
        return left


@contextmanager
def crashing_stack(folder: Path) -> Iterator[Crashes]:
    """Run a stack with two workers of a kind whose processes can be killed at crash points."""
    with fake_provider() as provider:
        env = {**QUICK, **provider.settings(), "COMMUNITREE_CRASH_AT": f"@{folder / 'crash-at'}"}
        with running_stack(folder / "home", env, "--cpu", "2", "--models", "2") as stack:
            crashes = Crashes(stack, provider, folder)
            try:
                yield crashes
            finally:
                crashes.client.close()


def store_results(path: Path, results: Iterable[Result]) -> None:
    """Append results, a JSON object a line."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(r)) + "\n" for r in results)


def load_results(path: Path) -> list[Result]:
    """Return stored results; of equal runs the newest counts."""
    found: dict[tuple[str, ...], Result] = {}
    with suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8").splitlines():
            result = Result(**json.loads(line))
            found[result.job, *result.points] = result
    return list(found.values())


def busy() -> str:
    """Say how busy the machine is: what the seconds mean depends on it."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
