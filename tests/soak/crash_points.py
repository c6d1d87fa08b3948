"""Kill a worker at every crash point, in every step that passes it; write what it did into docs/reliability.md.

`python tests/soak/crash_points.py [--only TEXT] [--minutes N] [--results FILE] [--write]`: goes on where the results
file ends; `--write` puts the table of the results into the page (`make soak` does all of it).
"""

from __future__ import annotations

import argparse
import json
import re
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
    ("late", "work.before/query.map", "expire.before/reconciler"),
    ("late", "work.before/query.map", "expire.after/reconciler"),
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
    "trim": "streams beyond their bound: `tests/integration/ledger/test_keeping.py`; one script does all of it",
    "unpark.published": "`tests/integration/runtime`: published twice, not lost",
}


def rounds(points: list[str]) -> list[list[str]]:
    """Return runs that kill once in each step, so that together they kill at each point of each step once.

    Each run mixes the points, so that few runs have met most of them.
    """
    by_step: dict[str, list[str]] = defaultdict(list)
    for point in points:
        by_step[point.split("/")[1]].append(point)
    number = max(map(len, by_step.values()), default=0)
    found = [
        [step[at] for n, step in enumerate(by_step.values()) if (at := (r + 5 * n) % number) < len(step)]
        for r in range(number)
    ]
    return [run for run in found if run]


def all_kills(crashes: Crashes, noted: Path) -> list[tuple[str, ...]]:
    """Return (job, points …) of every run (noted in a file once): each point that a step passes, then the chains."""
    if noted.exists():
        return [tuple(words) for words in json.loads(noted.read_text())]
    found: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for job in ("index", "walk", "converse", "ask", "look", "stream"):
        passed = [p for p in crashes.passed(job) if p.split("/")[1] not in {"heartbeat", "reconciler", "unparking"}]
        found += [(job, *points) for points in rounds([p for p in passed if p not in seen])]
        seen |= set(passed)
    found += CHAINS
    noted.write_text(json.dumps(found))
    return found


def run(crashes: Crashes, results: Path, only: str, seconds: float) -> int:
    """Make the runs that have no result yet until the time is up; return how many are left."""
    began = time.monotonic()
    done = {(r.job, *r.points) for r in load_results(results) if not r.problems}
    todo = [words for words in all_kills(crashes, results.with_suffix(".points")) if words not in done]
    todo += [words for words in CALLER if (words[1], f"{words[0]}/caller") not in done]
    todo = [words for words in todo if only in str(words)]
    print(f"{len(done)} done, {len(todo)} to do; {busy()}", flush=True)
    while todo and time.monotonic() - began < seconds:
        words = todo.pop(0)
        result = crashes.kill_caller(*words) if words in CALLER else crashes.kill(*words)
        store_results(results, [result])
        told = "; ".join(result.problems) + (f" NOT PASSED {result.missed}" if result.missed else "")
        where = f"{result.job:9} {result.points[0]} … {len(result.points)} kills"
        print(f"{result.seconds:6.1f} s {result.calls:+3} calls  {where}  {told}", flush=True)
    if left := crashes.at_rest():
        print(f"not at rest: {left}", flush=True)
        store_results(results, [Result(["at rest"], "all", problems=[f"still there: {left}"])])
    return len(todo)


def table(results: list[Result]) -> str:
    """Return the page's table: a line for each point."""
    by_point: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        for point in dict.fromkeys(p.split("/")[0] for p in result.points):
            by_point[point].append(result)
    lines = [
        "| point | killed while it acted for | kills | runs that ended the same | seconds, most | calls more, most |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for point in POINTS:
        found = by_point.get(point, [])
        if not found:
            why = ELSEWHERE.get(point) or ELSEWHERE.get(point.split(".")[0], "not among these runs")
            lines.append(f"| `{point}` | {why} | | | | |")
            continue
        kills = [p for r in found for p in r.points if p.split("/")[0] == point and p not in r.missed]
        who = sorted({p.split("/")[1] for p in kills})
        lines.append(
            f"| `{point}` | {', '.join(who)} | {len(kills)} | {sum(not r.problems for r in found)} of {len(found)} "
            f"| {max(r.seconds for r in found):.0f} | {max(0, *(r.calls for r in found))} |"
        )
    total = sum(len(r.points) - len(r.missed) for r in results)
    good = sum(not r.problems for r in results)
    lines += ["", f"{len(results)} runs with {total} kills; {good} runs ended as the undisturbed one."]
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
    return int(any(r.problems for r in results))


if __name__ == "__main__":
    sys.exit(main())
