"""Rubbish from many seeds at queues and the intake for five minutes: every worker lives, every question is answered."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from communitree_shared.broker import layout
from communitree_shared.redis_server import rediskeys as rk
from support.fleet import until
from support.fuzz import entries, envelopes
from support.stack import FAST, running_stack
from support.topics import write_topics

MINUTES = 5

pytestmark = pytest.mark.timeout(60 * MINUTES + 600)


def test_rubbish_for_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_stack(tmp_path / "home", FAST) as stack, stack.client() as client:
        assert client.index(write_topics(tmp_path / "topics", 2), "sound").status == "published"
        redis, before = client._redis, {(w.pid, w.create_time()) for w in stack.workers()}
        end, seed, sent = time.monotonic() + 60 * MINUTES, 0, 0
        while time.monotonic() < end:
            seed += 1
            queues = set()
            for queue, envelope in envelopes(random.Random(seed), 20):
                redis.lpush(queue, envelope)
                queues.add(queue)
                sent += 1
            added = [redis.xadd(rk.requests("default"), dict(f)) for f in entries(random.Random(seed), 50)]
            until(lambda queues=queues: not any(redis.llen(q) for q in queues), 120, stack.logs)
            until(lambda: redis.xlen(rk.requests("default")) == 0, 120, stack.logs)
            told = [f["request"] for _, f in redis.xrange(rk.results("default")) if f.get("request") in set(added)]
            assert sorted(told) == sorted(added), seed
            answer = client.wait_answer(client.submit("sound", f"What of seed {seed}?").job, timeout=120)
            assert answer.status in {"answered", "no_data"}, (seed, answer)
            assert {(w.pid, w.create_time()) for w in stack.workers()} == before, (seed, stack.logs())
        until(lambda: not redis.exists(layout.UNACKED), 60, stack.logs)
    with capsys.disabled():
        print(f"\n{seed} seeds, {sent} envelopes, {50 * seed} requests: all workers live, every question answered")
