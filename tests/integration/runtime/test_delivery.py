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

import psutil
import pytest

from communitree_shared.broker import layout
from communitree_shared.broker.app import make_app
from communitree_workers.runtime import aside
from communitree_workers.runtime.consume import Main, Worker

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
    assert "was killed (probably out of memory)" in letter["why"]


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


def reduces(bench: Any) -> list[int]:
    """Return the processes that began the reduce."""
    return [int(line[3]) for line in bench.log() if line[0] == "reduce"]


def test_a_step_that_its_worker_goes_on_with_is_kept_alive_like_any_other(bench: Any) -> None:
    one = bench.start("models")
    bench.start("models")
    bench.submit("a", MAP, [{} for _ in range(4)], per_message=4, reduce=5.0)
    bench.wait(lambda: bench.state("a") == "answered", 30)
    (pid,) = reduces(bench)  # three leases long, and nobody else took it
    assert {int(line[3]) for line in bench.log()} == {pid}
    assert one.poll() is None


def test_a_worker_that_dies_at_the_step_it_went_on_with_leaves_it_to_another(bench: Any) -> None:
    first = bench.start("models")
    bench.submit("a", MAP, [{} for _ in range(4)], per_message=4, reduce=4.0)
    bench.wait(lambda: reduces(bench))
    os.killpg(first.pid, signal.SIGKILL)
    second = bench.start("models")
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert reduces(bench) == [first.pid, second.pid]


def test_a_worker_that_is_told_to_stop_goes_on_with_nothing(bench: Any) -> None:
    first = bench.start("models")
    bench.submit("a", MAP, [{"seconds": 3.0}])
    bench.wait(lambda: bench.log())
    first.send_signal(signal.SIGTERM)
    assert first.wait(20) == 0
    assert not reduces(bench)
    second = bench.start("models")
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert reduces(bench) == [second.pid]


def test_a_worker_goes_on_only_with_what_it_serves(bench: Any) -> None:
    bench.start("map")
    other = bench.start("reduce")
    bench.submit("a", MAP, [{} for _ in range(4)], per_message=4)
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert reduces(bench) == [other.pid]


def test_a_long_unit_is_kept_alive_beyond_lease_and_visibility(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"seconds": 8}])
    bench.wait(lambda: bench.state("a") == "answered", 30)
    assert starts(bench) == {"a-0": 1}


@pytest.mark.parametrize(("kind", "task"), [("cpu", SUBTREE), ("models", MAP)])
def test_a_worker_that_is_told_to_stop_keeps_what_it_ends(bench: Any, kind: str, task: str) -> None:
    """For longer than a lease: nobody else may begin, and pay for, what still runs."""
    first = bench.start(kind)
    bench.submit("a", task, [{"seconds": 5}])
    bench.wait(lambda: bench.log())
    os.kill(first.pid, signal.SIGTERM)
    bench.start(kind)
    bench.wait(lambda: bench.state("a") == "answered", 40)
    assert starts(bench) == {"a-0": 1}
    assert first.wait(20) == 0
    bench.wait(lambda: not bench.ledger.redis.exists(layout.UNACKED), 10)


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
    assert len(whys) == 4 + 7  # of each kind one is of a newer worker
    assert {"it names no task", "its task 'os.system' is not ours"} < set(whys)
    assert any("larger than" in why for why in whys)
    assert any("asks for a time" in why for why in whys)
    bench.wait(lambda: not bench.ledger.redis.exists(layout.UNACKED), 5)


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


def test_a_step_that_computes_is_stopped_when_its_job_is_cancelled(bench: Any) -> None:
    """It may be inside a C library and hear nothing: its process ends, and the worker goes on with others."""
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"seconds": 600}, {"seconds": 600}])
    bench.wait(lambda: len(bench.log()) == 2)
    pids = [int(line[3]) for line in bench.log()]
    bench.ledger.finish("default", "a", "cancelled", {}, 60)
    bench.wait(lambda: not any(psutil.pid_exists(pid) for pid in pids), 20)
    bench.submit("b", SUBTREE, [{} for _ in range(4)])
    bench.wait(lambda: bench.state("b") == "answered", 30)
    assert starts(bench) == {"a-0": 1, "a-1": 1, **{f"b-{n}": 1 for n in range(4)}}
    bench.wait(lambda: not bench.ledger.redis.exists(layout.UNACKED), 10)


def test_a_step_whose_job_failed_meanwhile_is_stopped_at_the_next_beats(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{"seconds": 600}])
    bench.wait(lambda: len(bench.log()) == 1)
    bench.ledger.finish("default", "a", "failed", {}, 60)
    bench.wait(lambda: not psutil.pid_exists(int(bench.log()[0][3])), 20)


def test_a_dead_child_gives_back_what_it_held_and_nothing_of_the_others(bench: Any) -> None:
    """A second copy of a message that is worked on meets the lease; that its child dies ends no lease of the first."""
    worker = Worker(bench.settings, ["cpu"], {})
    main = Main(worker, bench.ledger)
    bench.submit("a", SUBTREE, [{}])
    bench.ledger.token = f"{worker.token}:1"
    begun = bench.ledger.begin("default", "a", "wide", "m", ["a-0"], 15, 5)
    assert begun.verdicts == {"a-0": "go"}
    body = {"tenant": "default", "job": "a", "stage": "wide", "units": [{"id": "a-0"}]}
    for pid, still in ((2, 1), (1, 0)):
        request = type("Request", (), {"id": f"copy{pid}", "worker_pid": pid})()
        main.on_received(request)
        main.on_lost(task_id=f"copy{pid}", args=(body,), exception="killed")
        assert bench.ledger.redis.hget("communitree:owners", "default|a|wide|a-0") == (f"{worker.token}:1" if still else "")  # fmt: skip  # noqa: E501
    assert bench.ledger.renew(["default|a|wide|a-0"], 15) == ["default|a|wide|a-0"]


def test_what_newer_workers_wait_for_is_kept_once_bounded_and_for_a_time(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aside, "MOST_PARKED", 3)
    newer = [{"v": 99, "task": SUBTREE, "n": n} for n in range(5)]
    for body in [*newer, newer[0]]:
        aside.park(bench.ledger, "communitree.cluster", body, 60)
    assert bench.ledger.redis.llen("communitree:parked:communitree.cluster") == 3
    assert 0 < bench.ledger.redis.ttl("communitree:parked:communitree.cluster") <= 60
    assert [r.levelname for r in caplog.records].count("ERROR") == 2
    assert "Start newer workers" in caplog.text


def test_who_dies_while_it_puts_back_what_was_parked_loses_nothing(bench: Any) -> None:
    key = "communitree:parked:communitree.cluster"
    message = {"v": 1, "task": SUBTREE, "tenant": "t", "job": "j", "stage": "s", "id": "m", "units": [{"id": "u"}]}
    bench.ledger.redis.lpush(key, json.dumps({"v": 99}), json.dumps(message), "rubbish")

    class Died(Exception):
        pass

    class Dying:
        def publish(self, outgoing: Any) -> None:
            raise Died

    with pytest.raises(Died):
        aside.Unparking(bench.ledger, Dying(), ["cluster"]).look()  # type: ignore[arg-type]
    assert bench.ledger.redis.llen(key) == 3
    unparking = aside.Unparking(bench.ledger, bench.publisher, ["cluster"])
    assert unparking.look() == 1
    assert bench.ledger.redis.lrange(key, 0, -1) == [json.dumps({"v": 99})]
    assert bench.ledger.redis.llen("communitree.cluster") == 1
    assert unparking.look() == 0
    bench.ledger.redis.lpush(key, json.dumps(message))
    assert unparking.look() == 1  # older workers go on parking beside newer ones


def test_a_worker_finds_what_is_parked_while_it_runs(bench: Any) -> None:
    bench.start("cpu")
    bench.submit("a", SUBTREE, [{}])
    bench.wait(lambda: bench.state("a") == "answered", 30)
    message = {
        "v": 1, "task": SUBTREE, "tenant": "default", "job": "a", "stage": "wide", "id": "m", "units": [{"id": "u"}],
    }  # fmt: skip
    bench.ledger.redis.lpush("communitree:parked:communitree.cluster", json.dumps(message))
    bench.wait(lambda: not bench.ledger.redis.exists("communitree:parked:communitree.cluster"), 20)
