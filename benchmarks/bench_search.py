"""Planted facts: where each of them ends up, ours beside graphrag's, with a provider that keeps to its word limits.

Every report holds one fact that no other has. The provider reads a batch as told: one point a fact, until the words of
the reply are used up; it writes the answer as told: point by point, until the words of the answer are used up. So each
side must lose facts, and the question is whether it says which.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from communitree.client import Client
from communitree_shared.contract.options import IndexOptions, QueryOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from queries import has_peer, peer, provider
from support.stack import running_stack
from support.wards import FACT, facts, write_index

QUESTION = "How many sealed ledgers does each vault hold?"


def wards(text: str, planted: dict[int, str]) -> set[int]:
    """Return the wards whose fact stands in a text, whole and unharmed."""
    return {int(n) for n in re.findall(FACT, text) if planted[int(n)] in text}


def ours(client: Client, planted: dict[int, str]) -> bool:
    """Ask, then ask again for what is silent; returns whether every fact can be accounted for."""
    first = client.ask("wards", QUESTION, QueryOptions(selection=SelectionOptions(strategy="leaves")))
    good = told("communitree", first, planted)
    if first.account.reports.silent:
        again = client.ask("wards", QUESTION, QueryOptions(again=first.job_id))
        before, after = found(first, planted), found(again, planted)
        good &= told("communitree, --again", again, planted, only=set(planted) - before)
        good &= before < after
        print(f"  known after --again: {len(after)} of {len(planted)} (before: {len(before)})")
    return good


def found(answer: Answer, planted: dict[int, str]) -> set[int]:
    """Return the facts in an answer or among its points."""
    return wards(answer.answer, planted) | {w for p in answer.points for w in wards(p.text, planted)}


def told(name: str, answer: Answer, planted: dict[int, str], only: set[int] | None = None) -> bool:
    """Print where facts are; returns whether each is in the answer, in a listed point or in a silent report."""
    said = wards(answer.answer, planted)
    listed = {w for p in answer.points if not p.in_answer and p.why_not for w in wards(p.text, planted)} - said
    reports = answer.account.reports
    silent = {*reports.silent, *reports.unread} - said - listed
    wanted = only if only is not None else set(planted)
    lost = wanted - said - listed - silent
    print(
        f"{name}: {answer.status}, {answer.account.batches.total} batches\n"
        f"  in the answer: {len(said)}; in points listed with a reason: {len(listed)}; in silent reports named: "
        f"{len(silent)}; lost without a word: {len(lost)}"
    )
    return not lost


def theirs(folder: Path, url: str, planted: dict[int, str], python: str) -> None:
    (done,) = peer(folder, url, [{"questions": [QUESTION], "concurrent": 1}], python)
    (answer,) = done["answers"]
    with urllib.request.urlopen(url.removesuffix("/v1") + "/bodies", timeout=10) as reply:
        prompt = json.load(reply)[-1]["messages"][-1]["content"]  # the last request is the reduce
    mapped = {w for point in answer["points"] for w in wards(point, planted)}
    reduced, said = wards(prompt, planted), wards(answer["answer"], planted)
    named = {int(n) for n in re.findall(r"\b(?:ward|report)s? (\d+)", answer["answer"], re.IGNORECASE)} - said
    print(
        f"graphrag: {answer['batches']} batches\n"
        f"  in the points of the map: {len(mapped)}; in the reduce prompt: {len(reduced)}; in the answer: {len(said)}; "
        f"lost: {len(planted) - len(said)}, of these named: {len(named)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=200)
    parser.add_argument("--words", type=int, default=90, help="of a fact")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has graphrag")
    args = parser.parse_args()
    planted = facts(args.facts, args.words)
    with tempfile.TemporaryDirectory() as work:
        folder = write_index(Path(work) / "wards", args.facts, facts=planted)
        with provider("support.fake_provider", "--obey-words", "--planted", FACT) as source:
            names: dict[str, Any] = {"BASE_URL": source.url, "API_KEY": "sk-bench-000000", "MODEL": "fake"}
            env = {f"COMMUNITREE_LLM_{name}": value for name, value in names.items()}
            print(f"{len(planted)} facts of {args.words} words, one in each report")
            with running_stack(Path(work) / "home", env) as stack, stack.client() as client:
                assert client.index(folder, "wards", IndexOptions(graph=True)).status == "published"
                good = ours(client, planted)
            if has_peer(args.peer_python):
                theirs(folder, source.url, planted, args.peer_python)
            else:
                print("graphrag is not installed: only our side is measured (pip install 'communitree[bench]').")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
