"""Kill anything while a corpus is indexed: the same tree, and no call paid twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.disturb import disturbed
from support.oracles import levels_in_order, reports_close, shape
from support.provider import Provider
from support.stack import Stack


@pytest.fixture(scope="module")
def calm(stack: Stack, topics: Path, provider: Provider) -> dict[str, Any]:
    """The undisturbed run: its result, tree, and how many calls it took."""
    provider.reset()
    result = stack.call_json("index", str(topics), "--corpus", "calm")
    calls = provider.stats()["requests"]
    return {"result": result, "tree": shape(stack.call_json("tree", "calm")), "calls": calls}


@pytest.mark.parametrize(
    ("name", "every", "times"),
    [
        ("kill", 1.2, 6),
        ("freeze", 0.8, 2),
        ("connections", 1.0, 3),
        ("redis", 1.0, 1),
        ("s3", 1.0, 1),
        ("flush", 1.0, 1),
    ],
)
def test_a_disturbed_index_is_the_same(
    stack: Stack, topics: Path, provider: Provider, calm: dict[str, Any], name: str, every: float, times: int
) -> None:
    provider.reset(latency=0.8)
    result, often = disturbed(stack, name, every, times, "index", str(topics), "--corpus", name)
    assert result["status"] == "published", (result, stack.logs())
    reports_close(result)
    assert result["counts"] == calm["result"]["counts"]
    assert shape(stack.call_json("tree", name)) == calm["tree"]
    stats = provider.stats()
    cut = stats["outcomes"].get("cut_by_client", 0)
    lost = often * 40  # at most what was in flight at each disturbance
    assert stats["requests"] - cut <= calm["calls"] + lost
    if name != "flush":
        levels_in_order(stack.call_json("job", result["job_id"])["events"])
