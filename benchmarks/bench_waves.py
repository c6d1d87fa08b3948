"""Wall time of all levels of reports against the bound that latency and slots set, on a whole stack.

Reports of a level wait for all of the level below, so the least that a corpus job can need for its reports is the sum
over levels of ceil(reports / slots) x latency. Measured from the first level's opening to the last one's end, evidence
built in between included, with a provider that answers each call after exactly the latency.

    python benchmarks/bench_waves.py --entities 3000 --latency 2 --slots 100
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

GOAL = 1.25


def bound(plan: dict[str, Any], slots: int, latency: float) -> float:
    """Return the least seconds that the planned calls need."""
    return latency * sum(math.ceil(level["calls"] / slots) for level in plan["levels"].values())


def spent(events: list[dict[str, Any]]) -> float:
    """Return the seconds from the first `level.started` to the last `level.ended`."""
    started = [float(e["at"]) for e in events if e["type"] == "level.started"]
    ended = [float(e["at"]) for e in events if e["type"] == "level.ended"]
    return max(ended) - min(started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=3_000)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    from communitree_workers.tables.io import to_bytes
    from planted import planted
    from support.provider import fake_provider
    from support.stack import running_stack

    with tempfile.TemporaryDirectory(prefix="bench-waves-") as home, fake_provider(latency=args.latency) as provider:
        folder = Path(home, "graph")
        folder.mkdir()
        for name, table in planted(args.entities, args.seed).items():
            (folder / f"{name}.parquet").write_bytes(to_bytes(table))
        env = {
            **provider.settings("report"),
            "COMMUNITREE_MODEL_SLOTS": str(args.slots),
            "COMMUNITREE_LLM_CONCURRENCY": str(args.slots),
            "COMMUNITREE_WINDOW": str(4 * args.slots),
        }
        with running_stack(Path(home, "stack"), env, "--models", "1") as stack:
            words = ("index", str(folder), "--graph", "--corpus", "waves")
            plan = stack.json(*words, "--plan", timeout=600)
            result = stack.json(*words, timeout=600)
            seconds = spent(stack.json("job", result["job_id"])["events"])
            held = provider.stats().get("peak_in_flight", "?")
    least = bound(plan, args.slots, args.latency)
    print(f"{args.entities:,} entities, {args.slots} slots, {args.latency} s a call; at most {held} calls at a time")
    for level, row in plan["levels"].items():
        print(f"  level {level}: {row['communities']:,} communities, {row['calls']:,} calls")
    print(f"all levels: {seconds:.1f} s, bound {least:.1f} s, ratio {seconds / least:.3f}")
    print(f"goal: at most {GOAL} times the bound: {'met' if seconds <= GOAL * least else 'MISSED'}")
    made = result["reports"]["generated"]
    print(f"{made:,} reports generated, {result['reports']['extractive']:,} extractive, status {result['status']}")


if __name__ == "__main__":
    main()
