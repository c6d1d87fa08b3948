"""Delivery with real worker processes: every unit ends once, whatever dies on the way."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
import uuid
from collections import Counter
from typing import Any

from communitree_shared.broker import make_app

SUBTREE = "communitree.corpus.subtree.v1"
MAP = "communitree.query.map.v1"


def starts(bench: Any) -> Counter[str]:
    return Counter(unit for what, unit, *_ in bench.log() if what == "start")


def test_units_run_once_and_the_reduce_follows(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{} for _ in range(30)], per_message=4)
    bench.wait(lambda: bench.state("a") == "answered")
    assert starts(bench) == {f"a-{n}": 1 for n in range(30)}
    assert [line[0] for line in bench.log()].count("reduce") == 1


def test_a_killed_child_gives_its_unit_back_at_once(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"kill": 1} if n == 3 else {} for n in range(8)])
    bench.wait(lambda: bench.state("a") == "answered")
    assert starts(bench)["a-3"] == 2
    assert all(n == 1 for unit, n in starts(bench).items() if unit != "a-3")


def test_a_unit_that_kills_its_worker_every_time_is_dead_lettered(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"kill": 99}, {}, {}])
    bench.wait(lambda: bench.state("a") == "answered", 60)
    assert starts(bench)["a-0"] == bench.settings.max_attempts
    assert bench.ledger.outcomes("default", "a", "wide")["a-0"]["cause"] == "poison"
    ((_, letter),) = bench.ledger.redis.xrange("communitree:dead:default")
    assert "died" in letter["why"]


def test_a_killed_worker_loses_nothing(bench: Any) -> None:
    first = bench.start("models")
    bench.submit("a", MAP, [{"seconds": 1.0} for _ in range(60)], per_message=3)
    bench.wait(lambda: len(bench.log()) > 10)
    os.killpg(first.pid, signal.SIGKILL)
    bench.start("models")
    bench.wait(lambda: bench.state("a") == "answered", 40)
    ended = Counter(unit for what, unit, *_ in bench.log() if what == "end")
    assert set(ended) == {f"a-{n}" for n in range(60)}
    assert [line[0] for line in bench.log()].count("reduce") == 1


def test_a_long_unit_is_kept_alive_beyond_lease_and_visibility(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"seconds": 8}])
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert starts(bench) == {"a-0": 1}


def test_expected_errors_fail_the_unit_and_unexpected_ones_are_tried_again(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"fail": True}, {"error": 2}, {}])
    bench.wait(lambda: bench.state("a") == "answered", 30)
    outcomes = bench.ledger.outcomes("default", "a", "wide")
    assert outcomes["a-0"]["cause"] == "bad_input"
    assert outcomes["a-1"]["ok"]
    assert starts(bench) == {"a-0": 1, "a-1": 3, "a-2": 1}


def test_cancelling_stops_what_runs_and_starts_nothing_more(bench: Any) -> None:
    bench.start("models")
    bench.submit("a", MAP, [{"seconds": 30} for _ in range(60)])
    bench.wait(lambda: len(bench.log()) >= 40)
    bench.ledger.finish("default", "a", "cancelled", {}, 60)
    bench.wait(lambda: [line[0] for line in bench.log()].count("cancelled") == 40, 5)
    time.sleep(0.5)
    assert sum(starts(bench).values()) == 40


def raw(bench: Any, queue: str, body: str = "[[{}], {}, {}]", **headers: Any) -> None:
    """Push an envelope as a foreign producer might."""
    properties = {
        "delivery_tag": str(uuid.uuid4()), "delivery_mode": 2, "body_encoding": "utf-8",
        "delivery_info": {"exchange": "", "routing_key": queue}, "priority": 0,
    }  # fmt: skip
    envelope = {
        "body": body, "content-type": "application/json", "content-encoding": "utf-8", "headers": headers,
        "properties": properties,
    }  # fmt: skip
    bench.ledger.redis.lpush(queue, json.dumps(envelope))


def test_rubbish_in_a_queue_stops_nothing(bench: Any) -> None:
    bench.start("cpu")
    queue = "communitree.cluster"
    for body in ({}, {"v": 1}, {"v": 99, "task": SUBTREE}, [], {"v": 1, "task": "none", "units": "x"}):
        make_app(bench.settings).send_task(SUBTREE, args=[body], queue=queue, ignore_result=True)
    raw(bench, queue)
    raw(bench, queue, task=SUBTREE)
    raw(bench, queue, task=SUBTREE, id=7)
    raw(bench, queue, task="os.system", id="x")
    raw(bench, queue, task=SUBTREE, id="x", eta="2030-01-01T00:00:00Z")
    raw(bench, queue, body="{not json", task=SUBTREE, id="x")
    raw(bench, queue, body="[" + "1," * 600_000 + "1]", task=SUBTREE, id="x")
    raw(bench, queue, task="communitree.corpus.subtree.v9", id="y")
    bench.submit("a", SUBTREE, [{} for _ in range(3)])
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert starts(bench) == {f"a-{n}": 1 for n in range(3)}
    assert bench.ledger.redis.llen("communitree:parked:communitree.cluster") == 2
    whys = [letter["why"] for _, letter in bench.ledger.redis.xrange("communitree:dead:_broker")]
    assert len(whys) == 6
    assert {"it names no task", "it has no id", "its task 'os.system' is not ours"} < set(whys)
    bench.wait(lambda: not bench.ledger.redis.exists("unacked"), 5)


def test_a_parked_message_goes_to_a_worker_that_knows_it(bench: Any) -> None:
    bench.submit("a", SUBTREE, [{}])
    queue = "communitree.cluster"
    bench.wait(lambda: bench.ledger.redis.llen(queue) == 1)
    envelope = json.loads(bench.ledger.redis.rpop(queue))
    body = json.loads(base64.b64decode(envelope["body"]) if envelope["properties"]["body_encoding"] == "base64" else envelope["body"])  # fmt: skip  # noqa: E501
    bench.ledger.redis.lpush("communitree:parked:communitree.cluster", json.dumps(body[0][0]))
    bench.start("cpu")
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert bench.ledger.redis.llen("communitree:parked:communitree.cluster") == 0


def test_a_stopped_worker_that_comes_back_changes_nothing(bench: Any) -> None:
    zombie = bench.start("models")
    bench.submit("a", MAP, [{"seconds": 1.0} for _ in range(10)])
    bench.wait(lambda: len(bench.log()) >= 10)
    os.kill(zombie.pid, signal.SIGSTOP)
    bench.start("models")
    bench.wait(lambda: bench.state("a") == "answered", 40)
    os.kill(zombie.pid, signal.SIGCONT)
    time.sleep(2)
    assert [line[0] for line in bench.log()].count("reduce") == 1
    assert len(bench.ledger.outcomes("default", "a", "wide")) == 10
