"""Questions through the whole line beside graphrag's global search: CPU, questions a second, time at latency.

Both sides answer from the same tables, one after the other on the same machine, with the same provider, in a process
of its own whose CPU is told apart. Ours is the whole stack: client, Valkey, object store, workers, everything counted.
Every question is another one, so no side finds an answer or a map result in a cache.

Ours counts the whole prompt and keeps room for the question, so by default it makes more batches of the same reports;
for the comparison its batches are made larger, until both sides make as many.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from communitree.client import Client
from communitree_shared.contract.options import BatchOptions, IndexOptions, QueryOptions, SelectionOptions
from queries import Provider, cpu_of, has_peer, peer, provider
from support.wards import write_index

#: Questions a second and CPU a call against the peer's; seconds of one question of 59 batches at 0.5 s latency.
GOALS = {"times": 4.0, "share": 0.25, "seconds": 1.15}


@dataclass
class Side:
    """What one side needed for some questions at one concurrency."""

    wall: float
    cpu: float
    questions: int
    calls: int
    median: float
    parts: dict[str, float]

    @property
    def rate(self) -> float:
        return self.questions / self.wall


@dataclass
class Ours:
    """A running stack that has the corpora, and what its processes have used."""

    stack: Any
    client: Client
    source: Provider

    def parts(self) -> dict[str, float]:
        """Return CPU seconds by kind of process, this one (the client) included."""
        found = {"client": time.process_time()}
        for process in self.stack.processes():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                line = " ".join(words)
                kind = next((k for k in ("worker models", "worker cpu") if k in line), "")
                kind = kind or ("valkey" if "valkey" in line else "weed" if "weed" in line else "supervisor")
                found[kind] = found.get(kind, 0.0) + cpu_of([process])
        return found

    def options(self, batch: BatchOptions) -> QueryOptions:
        return QueryOptions(selection=SelectionOptions(strategy="leaves"), batch=batch)

    def sized(self, corpus: str, batches: int) -> BatchOptions:
        """Return options that make so many batches of a corpus."""
        low, high = 3_000, 40_000
        while low < high:
            middle = (low + high) // 2
            made = self.client.plan(corpus, "How many?", self.options(BatchOptions(max_context_tokens=middle))).batches
            if made == batches:
                return BatchOptions(max_context_tokens=middle)
            low, high = (middle + 1, high) if made > batches else (low, middle)
        raise SystemExit(f"no size of a batch makes {batches} of {corpus}")

    def ask(self, corpus: str, batch: BatchOptions, questions: list[str], concurrent: int) -> Side:
        before, provided = self.parts(), self.source.cpu()
        begun = time.perf_counter()

        def one(question: str) -> tuple[float, int]:
            start = time.perf_counter()
            answer = self.client.ask(corpus, question, self.options(batch))
            seconds = time.perf_counter() - start
            assert answer.status == "answered", answer.answer
            assert not answer.account.llm.cached
            return seconds, answer.account.llm.calls

        with ThreadPoolExecutor(concurrent) as pool:
            found = list(pool.map(one, questions))
        wall = time.perf_counter() - begun
        after = self.parts()
        parts = {name: after[name] - before.get(name, 0.0) for name in after}
        calls = sum(n for _, n in found)
        seconds = statistics.median(s for s, _ in found)
        parts["(the provider)"] = self.source.cpu() - provided
        total = sum(v for name, v in parts.items() if not name.startswith("("))
        return Side(wall, total, len(questions), calls, seconds, parts)


@contextlib.contextmanager
def ours(folders: dict[str, Path], source: Provider) -> Iterator[Ours]:
    from support.stack import running_stack

    model = {"BASE_URL": source.url, "API_KEY": "sk-bench-000000", "MODEL": "lean"}
    with tempfile.TemporaryDirectory() as home:
        env = {f"COMMUNITREE_LLM_{name}": value for name, value in model.items()}
        with running_stack(Path(home), env) as stack, stack.client() as client:
            for name, folder in folders.items():
                done = client.index(folder, name, IndexOptions(graph=True))
                assert done.status == "published", done
            yield Ours(stack, client, source)


def questions(n: int, tag: str) -> list[str]:
    return [f"What do the wards report on, asked for the {i}th time in {tag}?" for i in range(n)]


def theirs(folder: Path, source: Provider, jobs: list[tuple[int, int]], python: str, tag: str) -> list[Side]:
    """Let the peer answer; each job is (questions, concurrent)."""
    asked = [{"questions": questions(n, f"{tag} {c}"), "concurrent": c} for n, c in jobs]
    return [
        Side(
            done["wall"], done["cpu"], len(done["answers"]), sum(a["batches"] + 1 for a in done["answers"]),
            statistics.median(a["seconds"] for a in done["answers"]), {},
        )
        for done in peer(folder, source.url, asked, python)
    ]  # fmt: skip


def show(concurrent: int, mine: Side, other: Side | None) -> None:
    for name, side in (("communitree", mine), ("graphrag", other)):
        if side is None:
            continue
        print(
            f"  {concurrent:3} at once  {name:12} {side.rate:7.1f} questions/s, median {side.median:.3f} s;  CPU: "
            f"{side.cpu / side.questions:.4f} s a question, {1000 * side.cpu / side.calls:.2f} ms a call "
            f"({side.calls // side.questions} a question)"
        )
    parts = ", ".join(f"{name} {1000 * v / mine.questions:.1f}" for name, v in sorted(mine.parts.items()))
    print(f"                ours by process, CPU ms a question: {parts}")
    if other is not None:
        times, share = mine.rate / other.rate, (mine.cpu / mine.calls) / (other.cpu / other.calls)
        print(
            f"                {times:.1f} times the questions ({_met(times >= GOALS['times'])}: {GOALS['times']:.0f}), "
            f"{share:.2f} of the CPU a call ({_met(share <= GOALS['share'])}: {GOALS['share']})"
        )


def _met(is_met: bool) -> str:
    return "goal met" if is_met else "goal MISSED"


def at_zero(args: argparse.Namespace, folders: dict[str, Path], has: bool) -> None:
    with provider("lean_provider") as source:
        jobs = [(args.questions, c) for c in args.concurrent]
        first = theirs(folders["small"], source, [(1, 1)], args.peer_python, "sizing")[0] if has else None
        batches = first.calls - 1 if first else 12
        with ours(folders, source) as line:
            batch = line.sized("small", batches)
            plain = line.client.plan("small", "How many?", line.options(BatchOptions())).batches
            print(
                f"{args.small} reports, no latency: {batches} batches each (ours by default {plain}: the whole prompt "
                f"counts, here up to {batch.max_context_tokens:,} tokens)"
            )
            line.ask("small", batch, questions(4, "warm"), 2)
            mine = [line.ask("small", batch, questions(n * args.more, f"ours {c}"), c) for n, c in jobs]
        others = theirs(folders["small"], source, jobs, args.peer_python, "peer") if has else [None] * len(jobs)
        for (_, c), side, other in zip(jobs, mine, others, strict=True):
            show(c, side, other)


def at_latency(args: argparse.Namespace, folders: dict[str, Path], has: bool) -> None:
    with provider("lean_provider", "--latency", "0.5") as source:
        other = theirs(folders["large"], source, [(3, 1)], args.peer_python, "latency")[0] if has else None
        batches = other.calls // other.questions - 1 if other else 59
        with ours(folders, source) as line:
            batch = line.sized("large", batches)
            line.ask("large", batch, questions(2, "warm"), 1)
            mine = line.ask("large", batch, questions(5, "latency"), 1)
        print(f"\n{args.large} reports, {batches} batches, latency 0.5 s (ideal 1.0 s)")
        print(f"  communitree {mine.median:.2f} s ({_met(mine.median <= GOALS['seconds'])}: {GOALS['seconds']} s)")
        if other:
            print(f"  graphrag    {other.median:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=200, help="reports of the questions without latency")
    parser.add_argument("--large", type=int, default=1000, help="reports of the question at latency; 0: left out")
    parser.add_argument("--questions", type=int, default=32, help="of each concurrency")
    parser.add_argument("--more", type=int, default=4, help="times as many of ours: they take less time")
    parser.add_argument("--concurrent", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has graphrag")
    args = parser.parse_args()
    has = has_peer(args.peer_python)
    if not has:
        print("graphrag is not installed: only our side is measured (pip install 'communitree[bench]').")
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as work:
        folders = {"small": write_index(Path(work) / "small", args.small)}
        at_zero(args, folders, has)
        if args.large:
            at_latency(args, {"large": write_index(Path(work) / "large", args.large)}, has)


if __name__ == "__main__":
    main()
