"""Messages that ask for more than ours do, in headers, properties, options: each runs once or is kept with a reason."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import psutil
import pytest

from communitree_shared.broker import layout
from communitree_shared.broker.envelope import opened
from communitree_shared.redis_server import rediskeys as rk
from support.fuzz import hostile

MAP = ("models", "communitree.query.map.v1", "communitree.map")
SUBTREE = ("cpu", "communitree.corpus.subtree.v1", "communitree.cluster")


def taken_out(bench: Any, task: str, queue: str, number: int) -> list[Any]:
    """Submit a job, take its messages out of their queue, and return them and those that are to follow."""
    bench.submit("a", task, [{} for _ in range(number)])
    bodies = bench.ledger.redis.hvals(rk.stage("default", "a", "wide") + ":messages")
    assert len(bodies) == number
    bench.ledger.redis.delete(queue)
    return [json.loads(body) for body in bodies]


@pytest.mark.parametrize(("kind", "task", "queue"), [MAP, SUBTREE])
def test_whatever_is_sent_runs_once_or_is_kept_aside(bench: Any, kind: str, task: str, queue: str) -> None:
    rng = random.Random(5)
    sent = [hostile(rng, queue, body) for body in taken_out(bench, task, queue, 150)]
    aside = sum(bool(opened(entry).fault) for entry in sent)
    assert 10 < aside < len(sent) - 30
    bench.ledger.redis.lpush(queue, *sent)
    worker = bench.start(kind)
    bench.wait(lambda: bench.log(), 60)
    children = {child.pid for child in psutil.Process(worker.pid).children()}
    bench.wait(lambda: bench.state("a") == "answered", 90)
    ran = Counter(line[1] for line in bench.log() if line[0] == "start")
    assert ran == {f"a-{n}": 1 for n in range(150)}  # what was kept aside was published again
    letters = bench.ledger.redis.xrange(rk.dead_letters(rk.FOREIGN))
    assert len(letters) == aside
    assert all(fields["why"] for _, fields in letters)
    bench.wait(lambda: not bench.ledger.redis.exists(layout.UNACKED, layout.TAKEN), 10)
    assert worker.poll() is None
    assert {child.pid for child in psutil.Process(worker.pid).children()} == children


def test_a_time_limit_in_a_header_ends_no_main_process(bench: Any) -> None:
    """Celery gives it to the pool's timer, which cannot add a word to a time; and the message came back each time."""
    kind, task, queue = SUBTREE
    (body,) = taken_out(bench, task, queue, 1)
    where = {"exchange": "", "routing_key": queue}
    envelope = {
        "body": json.dumps([[body], {}, {}]), "content-type": "application/json", "content-encoding": "utf-8",
        "headers": {"lang": "py", "task": task, "id": "x", "timelimit": [1e9, "x"]},
        "properties": {"delivery_tag": "x", "body_encoding": "utf-8", "delivery_info": where},
    }  # fmt: skip
    bench.ledger.redis.lpush(queue, json.dumps(envelope))
    worker = bench.start(kind)
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert worker.poll() is None
    assert [line[1] for line in bench.log() if line[0] == "start"] == ["a-0"]
