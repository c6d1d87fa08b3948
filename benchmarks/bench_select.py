"""Selecting reports and cutting batches, beside graphrag's `build_community_context` in the same run.

    python benchmarks/bench_select.py [--reports 10000] [--large 200000]

graphrag comes with the `bench` extra; without it only our own figures are printed. Both sides get the same reports and
12,000-token batches; ours count the whole prompt, so a batch of ours holds less of the table.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from communitree_shared.contract.options import AnswerOptions, BatchOptions, SelectionOptions
from communitree_shared.contract.tables import COMMUNITY_REPORTS
from communitree_shared.objects.keys import Keys
from communitree_shared.tokens import count, encoding
from communitree_workers.query.batches import cutting
from communitree_workers.query.batches.frame import Frame, static_tokens
from communitree_workers.query.batches.packing import make_batches
from communitree_workers.query.selection.coverage import fewest_tokens
from communitree_workers.query.selection.cut import cut
from communitree_workers.query.view.blocks import build_blocks
from communitree_workers.query.view.cells import default_tokens, rank_cell, weight_cell
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.runtime.cache import Cache
from support.questions import question_of, select
from support.views import TreeShape, report_rows, view_of

WORDS = [
    "harbour",
    "treaty",
    "ministry",
    "audit",
    "reservoir",
    "archive",
    "tariff",
    "council",
    "railway",
    "satellite",
    "orchard",
    "vessel",
    "contract",
    "bridge",
    "charter",
    "colony",
    "festival",
    "laboratory",
    "engine",
    "refinery",
    "museum",
    "pension",
    "regiment",
    "sensor",
    "statute",
    "turbine",
    "vaccine",
]


def tree(n: int, seed: int = 1) -> TreeShape:
    """Return a random tree of about n communities, by level, with costs around 640 tokens."""
    rng = random.Random(seed)
    parent = [-1] * max(1, n // 300)
    first = 0
    while len(parent) < n:
        width = len(parent) - first
        fresh: list[int] = []
        for node in range(first, first + width):
            children = rng.choice((0, 2, 3, 4, 6, 8))
            fresh += [node] * children
        if not fresh:
            fresh = [first] * 2
        first = len(parent)
        parent += fresh[: n - len(parent)]
    tokens = [max(20, int(rng.gauss(640, 150))) for _ in parent]
    mass = [int(rng.paretovariate(1.3) * 1_000_000) for _ in parent]
    return TreeShape(tuple(parent), tuple(tokens), tuple(mass))


def timed(label: str, work: Callable[[], Any], repeat: int = 5) -> float:
    """Print and return the median wall seconds, with CPU seconds beside."""
    wall, cpu = [], []
    for _ in range(repeat):
        a, b = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - a)
        cpu.append(time.process_time() - b)
    median = statistics.median(wall)
    print(f"  {label:<66} {median * 1000:10.2f} ms   (CPU {statistics.median(cpu) * 1000:10.2f} ms)")
    return median


def goal(text: str, met: bool) -> None:
    """Print a goal and whether it was met."""
    print(f"    goal {'met' if met else 'MISSED'}: {text}")


def selections(n: int) -> None:
    """Budget queries and the precomputation at n communities."""
    print(f"Selections over {n:,} communities")
    view = view_of(tree(n))
    keys = [f"{i:07d}" for i in range(len(view.community))]
    timed(
        "the cut's precomputation, once a version", lambda: build_blocks(view.parent, view.tokens, view.bits, keys), 3
    )
    base = cut(view, view.by_tokens, view.tokens, 10**12, stable=True)
    budgets = [int(base.spent * share) for share in (0.02, 0.1, 0.3, 0.6)]
    for budget in budgets:
        timed(f"budget query, {budget:,} tokens", lambda b=budget: cut(view, view.by_tokens, view.tokens, b))
    options = SelectionOptions(strategy="budget", budget_tokens=48_000)
    timed("select() of 48,000 tokens with its account", lambda: select(view, options, "q"))
    target = view.total_mass // 2
    direct = np.where(view.is_leaf, view.mass, view.mass // 8)
    timed("coverage 50 %", lambda: fewest_tokens(view, view.tokens, direct, target), 1)
    data = view.to_bytes()
    timed(f"load the stored view ({len(data) / 1e6:.1f} MB)", lambda: CorpusView.from_bytes(data))


def reports_of(n: int, seed: int = 2) -> tuple[CorpusView, dict[int, str]]:
    """Return a view with n reports of about 640 tokens, and their texts."""
    rng = random.Random(seed)
    bodies = []
    for _ in range(50):
        findings = [
            f"## {' '.join(rng.choices(WORDS, k=6))}\n\n"
            + " ".join(rng.choices(WORDS, k=80))
            + f" [Data: Entities ({k})]."
            for k in range(5)
        ]
        bodies.append("\n\n".join([" ".join(rng.choices(WORDS, k=60)), *findings]))
    contents = {i: f"# Report {i}\n\n{bodies[i % len(bodies)]}" for i in range(n)}
    shape = TreeShape((-1,) * n, (1,) * n, tuple(rng.randint(1, 10**7) for _ in range(n)))
    view = view_of(shape, titles=[f"Report {i}" for i in range(n)], rank=[float(i % 10) for i in range(n)])
    view.weight[:] = [1 + i % 97 for i in range(n)]
    default = BatchOptions()
    tails: dict[int, int] = {}
    for i in range(n):  # what publishing does; a body's tokens are counted once
        body = i % len(bodies)
        cells = (weight_cell(int(view.weight[i]), view.heaviest, default), rank_cell(float(view.rank[i])))
        whole = default_tokens(i, f"Report {i}", 0, *cells, contents[i], view.encoding) if body not in tails else 0
        head = count(f"{i}|Report {i}|0|{cells[0]}|{cells[1]}|# Report {i}", view.encoding)
        tails.setdefault(body, whole - head)
        view.tokens[i] = head + tails[body]
    return view, contents


def batches(n: int) -> None:
    """Cut n reports into batches, ours and graphrag's."""
    print(f"Batches of {n:,} reports, 12,000 tokens")
    view, contents = reports_of(n)
    options = BatchOptions()
    frame = Frame(static_tokens("", [], AnswerOptions(), {}, "Reports", view.encoding), encoding=view.encoding)
    utf8 = [text.encode() for text in contents.values()]  # as they stand in a table
    ids = list(range(n))
    made: list[Any] = []

    def ours() -> None:
        made[:] = make_batches(report_rows(view, ids, utf8, options), options, frame)

    mine = timed("communitree: rows and batches, token counts given", ours, 3)
    stored = [batch.to_bytes() for batch in made]
    timed("communitree: content hashes and stored bytes", lambda: [batch.hash for batch in made], 3)
    print(f"  communitree makes {len(made)} batches of {sum(map(len, stored)) / 1e6:.1f} MB")
    theirs(view, contents, mine)


def theirs(view: CorpusView, contents: dict[int, str], mine: float) -> None:
    """Measure graphrag on the same reports, its tokenizer the same vocabulary."""
    try:
        from graphrag.data_model.community_report import CommunityReport
        from graphrag.query.context_builder.community_context import build_community_context
        from graphrag_llm.tokenizer import Tokenizer
    except ImportError:
        print("  graphrag: not installed (pip install communitree[bench]); no comparison")
        return

    class Offline(Tokenizer):
        """The vocabulary that both sides count with; graphrag's own loader would ask the network."""

        def __init__(self, **_: Any) -> None:
            pass

        def encode(self, text: str) -> list[int]:
            return encoding(view.encoding).encode_ordinary(text)

        def decode(self, tokens: list[int]) -> str:
            return encoding(view.encoding).decode(tokens)

    n = len(contents)
    reports = [
        CommunityReport(
            id=str(i), short_id=str(i), title=f"Report {i}", community_id=str(i), summary="", full_content=contents[i],
            rank=float(view.rank[i]), attributes={"occurrence weight": float(view.weight[i]) / view.heaviest},
        )
        for i in range(n)
    ]  # fmt: skip
    made: list[Any] = []

    def run() -> None:
        context, _ = build_community_context(
            list(reports), tokenizer=Offline(), use_community_summary=False, include_community_rank=True,
            max_context_tokens=12_000, single_batch=False,
        )  # fmt: skip
        made[:] = context

    peer = timed("graphrag: build_community_context, at every query", run, 1)
    print(f"  graphrag makes {len(made)} batches; it takes {peer / mine:.1f} times as long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--reports", type=int, default=10_000, help="reports cut on both sides")
    parser.add_argument("--many", type=int, default=50_000, help="reports cut by communitree alone")
    parser.add_argument("--large", type=int, default=200_000, help="communities of the large tree")
    args = parser.parse_args()
    selections(30_000)
    selections(args.large)
    batches(args.reports)
    if args.many:
        many(args.many)


def many(n: int) -> None:
    """Cut n reports as a plan does: for the first time, and found again by the hash of what decides their batches."""
    print(f"Batches of {n:,} reports, 12,000 tokens, as a plan makes them (no object store)")
    view, contents = reports_of(n)
    table = pa.table({"community": list(contents), "full_content": list(contents.values())})
    del contents
    objects: dict[str, bytes] = {}
    store = SimpleNamespace(
        put=objects.__setitem__,
        put_json=lambda key, value: objects.__setitem__(key, orjson.dumps(value)),
        find_json=lambda key: orjson.loads(objects[key]) if key in objects else None,
    )
    selected = SimpleNamespace(kind="reports", ids=list(range(n)))
    question = question_of(view, corpus="c", version="v")

    def plan(cache: Cache) -> Callable[[], Any]:
        context: Any = SimpleNamespace(
            services=SimpleNamespace(store=store, value=cache.get), keys=Keys("default"),
            message=SimpleNamespace(tenant="default"), read=lambda *_: {COMMUNITY_REPORTS: table},
        )  # fmt: skip
        return lambda: cutting.cut(context, question, cast(Any, selected))

    def first() -> None:
        objects.clear()
        plan(Cache(2**30))()

    took = timed("for the first time: rows, batches, hashes, stored bytes", first)
    goal("below 0.5 s", took < 0.5)
    tracemalloc.start()
    first()
    held = sum(map(len, objects.values()))
    beside = (tracemalloc.get_traced_memory()[1] - held) / 1e6
    tracemalloc.stop()
    print(f"  {len(objects) - 1} batches of {held / 1e6:.0f} MB; at most {beside:.1f} MB beside these and the table")
    goal("at most 10 MB", beside <= 10)
    goal("below 10 ms", timed("found again by hash, by another process", lambda: plan(Cache(2**30))()) < 0.01)
    again = plan(Cache(2**30))
    again()
    goal("below 10 ms", timed("found again by hash, by the same process", again) < 0.01)


if __name__ == "__main__":
    main()
