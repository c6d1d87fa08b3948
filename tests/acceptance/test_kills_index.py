"""Kill anything while a corpus is indexed: the same tree, and no call paid twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.disturb import (
    Act,
    drop_connections,
    flush_redis,
    freeze_a_worker,
    kill_a_worker,
    kill_redis,
    kill_s3,
    meanwhile,
)
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
    ("name", "act", "every", "times"),
    [
        ("kill", kill_a_worker, 1.2, 6),
        ("freeze", freeze_a_worker, 0.8, 2),
        ("connections", drop_connections, 1.0, 3),
        ("redis", kill_redis, 1.0, 1),
        ("s3", kill_s3, 1.0, 1),
        ("flush", flush_redis, 1.0, 1),
    ],
)
def test_a_disturbed_index_is_the_same(
    stack: Stack, topics: Path, provider: Provider, calm: dict[str, Any], name: str, act: Act, every: float, times: int
) -> None:
    provider.reset(latency=0.8)
    with meanwhile(stack, act, every, times) as done:
        ended = stack.run("index", str(topics), "--corpus", name, "--json", timeout=240)
    result = json.loads(ended.out)
    assert done, "nothing was disturbed"
    assert result["status"] == "published", (result, stack.logs())
    reports_close(result)
    assert result["counts"] == calm["result"]["counts"]
    assert shape(stack.call_json("tree", name)) == calm["tree"]
    stats = provider.stats()
    cut = stats["outcomes"].get("cut_by_client", 0)
    lost = len(done) * 40  # at most what was in flight at each disturbance
    assert stats["requests"] - cut <= calm["calls"] + lost
    if name != "flush":
        levels_in_order(stack.call_json("job", result["job_id"])["events"])
