"""Kills at named points, between two calls of a step: a sample, several in each job (`make soak` takes every point)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree_shared.crash import OTHERS, POINTS, SCRIPTS
from support.crashes import Crashes, crashing_stack

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(600)  # for machines that are busy; a quiet one needs a twentieth


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashes]:
    with crashing_stack(tmp_path_factory.mktemp("crashes")) as running:
        yield running


@pytest.mark.parametrize(
    ("job", "points"),
    [
        ("ask", ["open.after/query.plan", "take/query.map", "finish.after/query.reduce"]),
        ("ask", ["publish.before/query.plan", "publish.before/reconciler", "ack.before/query.map"]),
        ("index", ["publish.after/corpus.level", "swap.after/corpus.publish", "finish.after/corpus.publish"]),
    ],
)
def test_a_job_ends_as_if_nobody_had_been_killed(crashes: Crashes, job: str, points: list[str]) -> None:
    result = crashes.kill(job, *points)
    assert result.missed == []
    assert result.problems == []
    assert crashes.at_rest() == []


def test_a_job_whose_caller_died_in_the_middle_of_submitting_it_ends_without_him(crashes: Crashes) -> None:
    result = crashes.kill_caller("submit.after", "ask", "corpus", "What is a dead caller?", "--leaves", "--json")
    assert result.missed == []
    assert result.problems == []


def test_every_point_in_the_code_is_known_and_told_of() -> None:
    passed: set[str] = set()
    for folder in ("shared", "producer", "workers"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "point":
                    name = node.args[0]
                    passed |= {name.value} if isinstance(name, ast.Constant) else set()  # type: ignore[arg-type]
    scripts = {p.stem for p in (ROOT / "shared/communitree_shared/ledger/scripts").glob("*.lua")} - {"prelude"}
    assert scripts == set(SCRIPTS)
    assert passed == set(POINTS) - {f"{script}.{when}" for script in scripts for when in ("before", "after")}
    assert set(OTHERS) < passed
    told = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z_.]+)` \|", told, re.MULTILINE)) == set(POINTS)
