"""The community tree beside GraphRAG's, on the same planted corpora, in one run.

Two steps are measured on each side, each in a process of its own that reads the same Parquet files:

- cluster: from edges in memory to the whole hierarchy (`graspologic_native.hierarchical_leiden` as GraphRAG calls it;
  `split_roots` and `subtrees` here);
- stage: from relationships and entities in memory to the communities table (`create_communities`, its rows kept in a
  list; `build` here).

Modularity is that of one graph for both sides: the relationships, parallel ones added up. Entities that a side leaves
outside count as communities of their own, which add nothing. CPU seconds are those of the step alone; the peak is the
highest resident memory of the whole process, tables and imports included.

    python benchmarks/bench_tree.py --sizes 1000 10000 100000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MAX_CLUSTER_SIZE = 10
SEED = 0xDEADBEEF

#: What the tree has to reach at 100,000 entities.
GOALS = {"q0_above": 0.010, "q_leaf_above": 0.0, "stage_share": 0.5, "peak_share": 0.5}


def _peak_mb() -> float:
    """Return the highest resident memory of this process; what it was forked from does not count."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _timed(step: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = step()
    return result, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def _tables(folder: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    return {file.stem: pq.read_table(file) for file in sorted(folder.glob("*.parquet"))}


def make(folder: Path, entities: int) -> dict[str, Any]:
    """Write a planted corpus."""
    from communitree_workers.tables.io import to_bytes
    from planted import planted

    for name, table in planted(entities, seed=1).items():
        (folder / f"{name}.parquet").write_bytes(to_bytes(table))
    return {}


def ours_cluster(folder: Path) -> dict[str, Any]:
    """Measure the clusterer: edges in memory to level-0 communities and subtrees."""
    from communitree_shared.contract.options import ClusterOptions
    from communitree_workers.cluster.core import prepare, split_roots
    from communitree_workers.cluster.tree import subtrees

    options = ClusterOptions(max_cluster_size=MAX_CLUSTER_SIZE, seed=SEED)
    prepared = prepare(_tables(folder), options)
    _, spent = _timed(lambda: subtrees(prepared, split_roots(prepared, options), options))
    return spent


def ours_stage(folder: Path) -> dict[str, Any]:
    """Measure the whole stage."""
    from communitree_shared.contract.options import ClusterOptions
    from communitree_workers.cluster.core import build

    tables = _tables(folder)
    made, spent = _timed(lambda: build(tables, ClusterOptions(max_cluster_size=MAX_CLUSTER_SIZE, seed=SEED)))
    stats = made.stats
    return {
        **spent,
        "peak": _peak_mb(),
        "q0": stats.modularity["0"],
        "q_leaf": stats.modularity["leaves"],
        "communities": made.communities.num_rows,
        "levels": len(stats.levels),
        "largest_leaf": int(made.communities.filter(made.communities["is_leaf"])["size"].to_numpy().max()),
        "entities_held": stats.coverage.entities,
        "text_units_held": stats.coverage.text_units,
    }


def peer_cluster(folder: Path) -> dict[str, Any]:
    """Measure GraphRAG's clusterer on its edge list, and the modularity it reaches."""
    import numpy as np
    import pandas as pd
    from graphrag.graphs.hierarchical_leiden import hierarchical_leiden
    from graphrag.index.operations.cluster_graph import cluster_graph

    from communitree_shared.contract.options import ClusterOptions
    from communitree_workers.cluster.core import prepare
    from communitree_workers.cluster.measure import modularity

    frame = pd.read_parquet(folder / "relationships.parquet", columns=["source", "target", "weight"])
    ends = np.sort(frame[["source", "target"]].to_numpy(dtype=object), axis=1)
    last = dict(zip(zip(ends[:, 0], ends[:, 1], strict=True), frame["weight"], strict=True))
    edges = sorted((a, b, float(w)) for (a, b), w in last.items())
    _, spent = _timed(lambda: hierarchical_leiden(edges, max_cluster_size=MAX_CLUSTER_SIZE, random_seed=SEED))
    clusters = cluster_graph(frame, MAX_CLUSTER_SIZE, False, seed=SEED)
    prepared = prepare(_tables(folder), ClusterOptions())
    titles = prepared.tables["entities"]["title"].take(prepared.rows[: prepared.clustered]).to_pylist()
    place = {title: i for i, title in enumerate(titles)}
    graph, real = prepared.graph, ~prepared.weak
    found: dict[str, float] = {}
    label = len(clusters) + np.arange(len(graph))
    for level in sorted({row[0] for row in clusters}):
        for _, cluster, _, members in (row for row in clusters if row[0] == level):
            label[[place[title] for title in members]] = cluster
        q = modularity(graph.low[real], graph.high[real], graph.weight[real], label)
        found = {"q0": found.get("q0", q), "q_leaf": q}
    return {**spent, **found}


def peer_stage(folder: Path) -> dict[str, Any]:
    """Measure GraphRAG's workflow step."""
    import pandas as pd
    from graphrag.index.workflows.create_communities import create_communities

    class Rows:
        """GraphRAG's table interface over a list."""

        def __init__(self, rows: list[dict[str, Any]]) -> None:
            self.rows = rows

        async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
            for row in self.rows:
                yield row

        async def write(self, row: dict[str, Any]) -> None:
            self.rows.append(row)

    relationships = pd.read_parquet(folder / "relationships.parquet")
    names = pd.read_parquet(folder / "entities.parquet", columns=["id", "title"]).to_dict("records")
    text_units = len(pd.read_parquet(folder / "text_units.parquet", columns=["id"]))
    out = Rows([])
    _, spent = _timed(
        lambda: asyncio.run(
            create_communities(out, Rows(names), relationships, MAX_CLUSTER_SIZE, use_lcc=False, seed=SEED)  # type: ignore[arg-type]
        )
    )
    peak = _peak_mb()
    parents = {row["parent"] for row in out.rows}
    roots = [row for row in out.rows if row["level"] == 0]
    return {
        **spent,
        "peak": peak,
        "communities": len(out.rows),
        "levels": len({row["level"] for row in out.rows}),
        "largest_leaf": max(row["size"] for row in out.rows if row["community"] not in parents),
        "entities_held": len({i for row in roots for i in row["entity_ids"]}) / len(names),
        "text_units_held": len({i for row in roots for i in row["text_unit_ids"]}) / text_units,
    }


STEPS = {step.__name__: step for step in (ours_cluster, ours_stage, peer_cluster, peer_stage)}


def _apart(*arguments: str) -> dict[str, Any]:
    """Run one step in a process of its own."""
    # GraphRAG imports a library that would ask the network for prices
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run([sys.executable, __file__, "--step", *arguments], capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {**runs[0], **{key: statistics.median(run[key] for run in runs) for key in ("cpu", "wall")}}


def compare(entities: int, repeat: int, peer: bool) -> dict[str, dict[str, Any]]:
    """Measure both sides at one size, side by side."""
    with tempfile.TemporaryDirectory(prefix="bench-tree-") as folder:
        _apart("make", folder, str(entities))
        sides = ("ours", "peer") if peer else ("ours",)
        found: dict[str, dict[str, Any]] = {}
        for side in sides:
            cluster = _median([_apart(f"{side}_cluster", folder) for _ in range(repeat)])
            stage = _median([_apart(f"{side}_stage", folder) for _ in range(repeat)])
            found[side] = {**cluster, **stage, "cluster_cpu": cluster["cpu"], "stage_cpu": stage["cpu"]}
            found[side]["stage_wall"] = stage["wall"]
    return found


ROWS = [
    ("cluster, CPU s", "cluster_cpu", ".3f"),
    ("stage, CPU s", "stage_cpu", ".3f"),
    ("stage, wall s", "stage_wall", ".3f"),
    ("peak memory, MB", "peak", ",.0f"),
    ("modularity, level 0", "q0", ".5f"),
    ("modularity, leaves", "q_leaf", ".5f"),
    ("communities", "communities", ",d"),
    ("levels", "levels", "d"),
    ("largest leaf", "largest_leaf", "d"),
    ("entities in the tree", "entities_held", ".2%"),
    ("text units in the tree", "text_units_held", ".2%"),
]


def main() -> None:
    """Measure, print side by side, and say whether the goals are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each step; 1 above 100,000 entities")
    parser.add_argument("--without-peer", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, folder, *rest = options.step
        print(json.dumps(make(Path(folder), int(rest[0])) if name == "make" else STEPS[name](Path(folder))))
        return
    peer = not options.without_peer and find_spec("graphrag") is not None
    if not peer and not options.without_peer:
        print(
            "graphrag is not installed: only this side is measured. For both: pip install 'communitree[bench,workers]'"
        )
    figures = {}
    for size in options.sizes:
        figures[size] = found = compare(size, options.repeat if size <= 100_000 else 1, peer)
        print(f"\n{size:,} entities{'':<16}{'communitree':>14}{'GraphRAG':>14}")
        for title, key, shape in ROWS:
            cells = "".join(f"{format(found[side][key], shape):>14}" for side in ("ours", "peer") if side in found)
            print(f"  {title:<28}{cells}")
        if "peer" in found:
            _judge(found["ours"], found["peer"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


def _judge(ours: dict[str, Any], peer: dict[str, Any]) -> None:
    reached = {
        "q0_above": ours["q0"] - peer["q0"],
        "q_leaf_above": ours["q_leaf"] - peer["q_leaf"],
        "stage_share": ours["stage_cpu"] / peer["stage_cpu"],
        "peak_share": ours["peak"] / peer["peak"],
    }
    words = {
        "q0_above": "level-0 modularity above GraphRAG's",
        "q_leaf_above": "leaf modularity above GraphRAG's",
        "stage_share": "share of GraphRAG's CPU for the stage",
        "peak_share": "share of GraphRAG's memory",
    }
    for key, goal in GOALS.items():
        met = reached[key] >= goal if key.endswith("above") else reached[key] <= goal
        print(f"  {words[key]}: {reached[key]:+.5f} (goal at 100,000: {goal:+.3f}, {'met' if met else 'NOT met'})")


if __name__ == "__main__":
    main()
