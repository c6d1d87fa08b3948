"""Kill a worker at every crash point, in every step that passes it; write what it did into docs/reliability.md.

`python tests/soak/crash_points.py [--only TEXT] [--minutes N] [--results FILE] [--write]`: goes on where the results
file ends; `--write` puts the table of the results into the page (`make soak` does all of it).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from communitree_shared.crash import OTHERS, POINTS
from support.crashes import Crashes, Result, busy, crashing_stack, load_results, store_results

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reliability.md"
PART = re.compile(r"(<!-- measured: crash-points -->\n).*?(<!-- end -->)", re.DOTALL)

#: Points that lie after another fault: each is reached by a first kill.
CHAINS = (
    ("ask", "publish.before/query.plan", "overdue.before/reconciler"),
    ("ask", "publish.before/query.plan", "overdue.after/reconciler"),
    ("ask", "publish.before/query.plan", "publish.before/reconciler"),
    ("ask", "publish.before/query.plan", "publish.after/reconciler"),
    ("ask", "work.before/query.map", "outbox.after/reconciler"),
    ("index", "work.before/corpus.cluster", "give_back.before/heartbeat"),
    ("index", "work.before/corpus.cluster", "give_back.after/heartbeat"),
    ("late", "expire.before/reconciler"),
    ("late", "expire.after/reconciler"),
    ("slow", "renew.before/heartbeat"),
    ("slow", "renew.after/heartbeat"),
)  # fmt: skip

#: Points of a caller's own process, and the command that passes them; the question is a new one each time.
CALLER = tuple(
    (point, "ask", "corpus", f"What is a return after {point}?", "--leaves", "--json")
    for point in ("put_new.before", "put_new.after", "submit.before", "submit.after", "publish.before",
                  "publish.after", "outbox.after", "put.before", "put.after")
)  # fmt: skip

#: Points that no job of a small corpus passes, and the tests that are cut off there.
ELSEWHERE = {
    "stage": "a stage of more than 500 messages: `tests/integration/ledger`, parts lost and repeated",
    "put_file": "tables above 64 MB: written whole or not at all by the server; as `put`",
    "cancel": "`tests/integration/runtime`: the same call made again; one script does all of it",
    "park": "`tests/integration/runtime`: a message of a newer version; one script does all of it",
    "unpark.published": "`tests/integration/runtime`: published twice, not lost",
    "expire": "",
}


def all_kills(crashes: Crashes, noted: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return (job, points) of every kill: each point that a job passes (noted in a file once), then the chains."""
    if noted.exists():
        return [(job, tuple(points)) for job, points in json.loads(noted.read_text())]
    found: list[tuple[str, tuple[str, ...]]] = []
    seen: set[str] = set()
    for job in ("index", "ask", "walk", "converse", "look", "stream"):
        for point in crashes.passed(job):
            who = point.split("/")[1]
            if point not in seen and who not in {"heartbeat", "reconciler", "unparking"}:
                seen.add(point)
                found.append((job, (point,)))
    found += [(job, tuple(points)) for job, *points in CHAINS]
    noted.write_text(json.dumps(found))
    return found


def run(crashes: Crashes, results: Path, only: str, seconds: float) -> int:
    """Run the kills that have no result yet until the time is up; return how many are left."""
    began = time.monotonic()
    done = {(r.job, r.point) for r in load_results(results) if not r.problems and r.fired}
    open_ = [
        (j, p)
        for j, p in all_kills(crashes, results.with_suffix(".points"))
        if (j, " then ".join(p)) not in done and only in f"{j} {p}"
    ]
    callers = [c for c in CALLER if (c[1], f"{c[0]}/caller") not in done and only in f"caller {c[0]}"]
    print(f"{len(done)} done, {len(open_)} + {len(callers)} to do; {busy()}", flush=True)
    while (open_ or callers) and time.monotonic() - began < seconds:
        if open_:
            job, points = open_.pop(0)
            result = crashes.kill(job, *points)
        else:
            point, *words = callers.pop(0)
            result = crashes.kill_caller(point, *words)
        store_results(results, [result])
        told = "; ".join(result.problems) or ("" if result.fired else "did not happen")
        print(f"{result.seconds:6.1f} s {result.calls:+3} calls  {result.job:9} {result.point}  {told}", flush=True)
    if left := crashes.at_rest():
        print(f"not at rest: {left}", flush=True)
        store_results(results, [Result("at rest", "all", True, problems=[f"still there: {left}"])])
    return len(open_) + len(callers)


def table(results: list[Result]) -> str:
    """Return the page's table: a line for each point."""
    by_point: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_point[result.point.split(" then ")[-1].split("/")[0]].append(result)
    lines = [
        "| point | killed while it acted for | kills | same end | seconds, median and most | calls more, most |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for point in POINTS:
        found = by_point.get(point, [])
        if not found:
            why = ELSEWHERE.get(point) or ELSEWHERE.get(point.split(".")[0], "not passed by these jobs")
            lines.append(f"| `{point}` | {why} | | | | |")
            continue
        who = sorted({r.point.split("/")[-1] for r in found})
        good = sum(r.fired and not r.problems for r in found)
        spent = [r.seconds for r in found]
        lines.append(
            f"| `{point}` | {', '.join(who)} | {sum(r.fired for r in found)} | {good} "
            f"| {statistics.median(spent):.1f}, {max(spent):.1f} | {max(0, *(r.calls for r in found))} |"
        )
    fired = [r for r in results if r.fired]
    kills = sum(len(r.point.split(" then ")) for r in fired)
    bad = [r for r in results if r.problems or not r.fired]
    said = f"{len(results) - len(bad)} ended as the undisturbed run, {len(bad)} did not."
    lines += ["", f"{len(results)} runs with {kills} kills: {said}"]
    return "\n".join(lines)


def write(results: list[Result]) -> None:
    """Put the table of the results into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PART.sub(lambda m: m[1] + table(results) + "\n" + m[2], text), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--results", type=Path, default=ROOT / ".crash-points.jsonl")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    assert OTHERS
    if asked.minutes:
        with tempfile.TemporaryDirectory(prefix="crash-points-") as folder, crashing_stack(Path(folder)) as crashes:
            left = run(crashes, asked.results, asked.only, asked.minutes * 60)
            print(f"{left} left", flush=True)
    results = load_results(asked.results)
    if asked.write:
        write(results)
    return int(any(r.problems or not r.fired for r in results))


if __name__ == "__main__":
    sys.exit(main())
