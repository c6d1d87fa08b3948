"""The ledger's scripts on a real server: sealed stages, one close, first outcome wins, nothing without an owner."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import pytest
import redis

from communitree_shared.contract.messages import Unit
from communitree_shared.errors import IntegrityError
from communitree_shared.ledger import Ledger, Limits, Stage, Step
from communitree_shared.ledger.entry import finish_spec
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

T, J = "default", "job1"
NEXT = Step("reduce", "communitree.query.reduce.v1")


@pytest.fixture
def ledger(settings: Settings) -> Ledger:
    return Ledger(redis_client(settings), patience=5)


def submit(ledger: Ledger, job: str = J, **options: Any) -> list[Any]:
    record = {"kind": "query", "corpus": "c", "on_failure": finish_spec(T, job)}
    status, _, outgoing = ledger.submit(T, job, record, Step("plan", "communitree.query.plan.v1"), **options)
    assert status == "ok"
    return outgoing


def wide(ledger: Ledger, units: int, *, window: int = 256, per_message: int = 1, job: str = J) -> list[Any]:
    stage = Stage("map", "communitree.query.map.v1", NEXT, window=window)
    made = stage.messages(T, job, [Unit(id=f"u{i}") for i in range(units)], local=True, per_message=per_message)
    status, outgoing = ledger.open(T, job, stage, made)
    assert status == "ok"
    return outgoing


def arrive(ledger: Ledger, unit: str, ok: bool = True, stage: str = "map", job: str = J) -> tuple[str, list[Any]]:
    return ledger.arrive(T, job, stage, unit, ok=ok, outcome={"by": unit}, event={})


def begin(ledger: Ledger, outgoing: Any, allowed: int = 5, lease: float = 15.0) -> Any:
    body = json.loads(outgoing.body)
    units = [u["id"] for u in body["units"]]
    return ledger.begin(T, body["job"], body["stage"], body["id"], units, lease, allowed)


def types(ledger: Ledger, job: str = J) -> list[str]:
    return [fields["type"] for _, fields in ledger.events(T, job)]


def test_submit_puts_the_first_step_into_the_outbox(ledger: Ledger) -> None:
    (first,) = submit(ledger)
    assert first.queue == "communitree.query"
    assert json.loads(first.body)["task"] == "communitree.query.plan.v1"
    assert ledger.redis.zcard(rk.OUTBOX) == 1
    ledger.published([first])
    assert ledger.redis.zcard(rk.OUTBOX) == 0


def test_a_corpus_is_indexed_by_one_job_at_a_time(ledger: Ledger) -> None:
    submit(ledger, "one", lock=rk.corpus_lock(T, "c"))
    status, other, outgoing = ledger.submit(
        T, "two", {"kind": "corpus"}, Step("ingest", "communitree.corpus.ingest.v1"), lock=rk.corpus_lock(T, "c")
    )
    assert (status, other, outgoing) == ("busy", "one", [])
    ledger.finish(T, "one", "published", {}, 60)
    submit(ledger, "two", lock=rk.corpus_lock(T, "c"))


@pytest.mark.parametrize(
    ("left", "lane", "wanted", "status"),
    [
        (300, "i", 300, "shared"), (150, "i", 299, "shared"), (4, "i", 300, "ok"), (300, "i", 4, "shared"),
        (300, "b", 300, "ok"),
    ],
)  # fmt: skip
def test_a_question_joins_only_one_that_has_time_and_hurry_enough(
    ledger: Ledger, left: int, lane: str, wanted: int, status: str
) -> None:
    flight, step, now = rk.in_flight(T, "digest"), Step("plan", "communitree.query.plan.v1"), time.time()
    first = {"kind": "query", "deadline": f"{now + left:.3f}", "lane": lane}
    assert ledger.submit(T, "one", first, step, in_flight=flight)[0] == "ok"
    second = {"kind": "query", "deadline": f"{now + wanted:.3f}", "lane": "i"}
    assert ledger.submit(T, "two", second, step, in_flight=flight)[0] == status
    assert ledger.redis.get(flight) == ("one" if status == "shared" else "two")


def test_equal_questions_in_flight_share_a_job_until_the_last_caller_leaves(ledger: Ledger) -> None:
    flight = rk.in_flight(T, "digest")
    submit(ledger, "one", in_flight=flight)
    status, other, _ = ledger.submit(
        T, "two", {"kind": "query"}, Step("plan", "communitree.query.plan.v1"), in_flight=flight
    )
    assert (status, other) == ("shared", "one")
    assert ledger.cancel(T, "one", "first", 60) == ("detached", [])
    assert ledger.cancel(T, "one", "second", 60)[0] == "cancelled"
    assert ledger.record(T, "one")["state"] == "cancelled"


def test_a_call_whose_reply_was_lost_counts_its_caller_once(ledger: Ledger) -> None:
    flight, step = rk.in_flight(T, "digest"), Step("plan", "communitree.query.plan.v1")
    submit(ledger, "one", in_flight=flight)
    for _ in range(3):
        assert ledger.submit(T, "two", {"kind": "query"}, step, in_flight=flight)[:2] == ("shared", "one")
    assert ledger.record(T, "one")["callers"] == "2"
    for _ in range(3):
        assert ledger.cancel(T, "one", "a call", 60) == ("detached", [])
    assert ledger.record(T, "one")["callers"] == "1"
    assert ledger.cancel(T, "one", "another call", 60)[0] == "cancelled"
    assert ledger.cancel(T, "one", "another call", 60) == ("ended", [])


def test_too_many_open_jobs_are_refused(ledger: Ledger) -> None:
    submit(ledger, "one")
    reply = ledger.submit(T, "two", {"kind": "query"}, Step("plan", "communitree.query.plan.v1"), limits=Limits(jobs=1))
    assert reply[0] == "full"


def test_the_window_bounds_what_is_released(ledger: Ledger) -> None:
    submit(ledger)
    assert len(wide(ledger, 10, window=3)) == 3
    status, outgoing = arrive(ledger, "u0")
    assert status == "new"
    assert len(outgoing) == 1


def test_messages_of_several_units_count_by_unit(ledger: Ledger) -> None:
    submit(ledger)
    assert len(wide(ledger, 12, window=4, per_message=4)) == 1
    for i in range(3):
        _, outgoing = arrive(ledger, f"u{i}")
        assert len(outgoing) == (1 if i == 0 else 0)  # the first arrival makes room, its message fills it again


def test_a_stage_is_sealed_once(ledger: Ledger) -> None:
    submit(ledger)
    wide(ledger, 3)
    stage = Stage("map", "communitree.query.map.v1", NEXT)
    other = stage.messages(T, J, [Unit(id="x")], local=True)
    assert ledger.open(T, J, stage, other) == ("exists", [])
    assert ledger.stage_record(T, J, "map")["total"] == "3"


def test_a_large_stage_is_staged_in_parts(ledger: Ledger) -> None:
    submit(ledger)
    assert len(wide(ledger, 1300, window=5)) == 5
    assert ledger.stage_record(T, J, "map")["total"] == "1300"
    assert not list(ledger.redis.scan_iter("communitree:staging:*"))
    assert ledger.redis.ttl(rk.stage(T, J, "map") + ":messages") == -1


def test_a_part_that_was_staged_twice_counts_once(ledger: Ledger) -> None:
    """Its reply was lost: the client sends it again."""
    submit(ledger)
    run = ledger._run
    ledger._run = lambda *words: (run(*words) if words[0] == "stage" else None, run(*words))[1]  # type: ignore[method-assign]
    wide(ledger, 1300, window=5000)
    key = rk.stage(T, J, "map")
    assert ledger.redis.hlen(key + ":units") == ledger.redis.scard(key + ":active") == 1300
    released = [m for name in ledger.redis.scan_iter("communitree:ready:*") for m in ledger.redis.lrange(name, 0, -1)]
    assert len(released) == len(set(released)) == 1300 - 32


def test_parts_that_were_lost_before_the_seal_are_staged_again(ledger: Ledger) -> None:
    submit(ledger)
    run, lost = ledger._run, []

    def forgetful(name: str, *words: Any) -> Any:
        if name == "open" and not lost:
            lost.extend(ledger.redis.scan_iter("communitree:staging:*"))
            ledger.redis.delete(*lost)
        return run(name, *words)

    ledger._run = forgetful  # type: ignore[method-assign]
    wide(ledger, 1300)
    assert lost
    assert ledger.stage_record(T, J, "map")["total"] == "1300"


def test_a_unit_that_stands_twice_is_done_once_or_refused(ledger: Ledger) -> None:
    submit(ledger)
    stage = Stage("map", "communitree.query.map.v1", NEXT)
    assert len(stage.messages(T, J, [Unit(id="x"), Unit(id="x")], local=True)) == 1
    twice = stage.messages(T, J, [Unit(id="x")], local=True) + stage.messages(T, J, [Unit(id="x")], local=False)
    with pytest.raises(IntegrityError, match="x stands twice in the stage map"):
        ledger.open(T, J, stage, twice)


def commands(ledger: Ledger) -> int:
    """How many commands the server has carried out, those of scripts included."""
    return sum(kind["calls"] for kind in ledger.redis.info("commandstats").values())


@pytest.mark.parametrize("end", ["finish", "cancel", "expire", "open"])
def test_no_script_is_long_because_a_stage_is_large(ledger: Ledger, end: str) -> None:
    """A script holds up everybody: its commands are counted, which no busy machine changes."""
    submit(ledger)
    run, longest = ledger._run, 0

    def counting(*words: Any) -> Any:
        nonlocal longest
        before = commands(ledger)
        reply = run(*words)
        longest = max(longest, commands(ledger) - before)
        return reply

    if end == "open":
        ledger._run = counting  # type: ignore[method-assign]
    wide(ledger, 12_000, window=256)
    ledger._run = counting  # type: ignore[method-assign]
    if end == "finish":
        ledger.finish(T, J, "failed", {}, 60)
    elif end == "cancel":
        ledger.cancel(T, J, "call", 60)
    elif end == "expire":
        ledger.expire(T, J, "map", "deadline")
        assert len(ledger.outcomes(T, J, "map")) == 12_000
        assert ledger.stage_record(T, J, "map")["state"] == "closed"
    assert 0 < longest < (5_000 if end in {"expire", "open"} else 15_000), longest


def test_an_expiry_that_was_cut_off_is_taken_up_from_its_start(ledger: Ledger) -> None:
    submit(ledger)
    wide(ledger, 3_000)
    assert ledger._run("expire", T, J, "map", "deadline", "0", 250)[0] == "more"
    assert arrive(ledger, "u1")[1] == []  # late, or already expired: nothing more is released
    outgoing = ledger.expire(T, J, "map", "deadline")
    assert [json.loads(o.body)["stage"] for o in outgoing] == ["reduce"]
    assert len(ledger.outcomes(T, J, "map")) == types(ledger).count("unit.ended") == 3_000


def test_an_empty_stage_closes_at_once(ledger: Ledger) -> None:
    submit(ledger)
    (follow,) = wide(ledger, 0)
    assert json.loads(follow.body)["stage"] == "reduce"


def test_the_last_arrival_closes_once_and_opens_what_follows(ledger: Ledger) -> None:
    submit(ledger)
    wide(ledger, 2)
    assert arrive(ledger, "u0")[1] == []
    status, (follow,) = arrive(ledger, "u1", ok=False)
    assert status == "new"
    assert json.loads(follow.body)["stage"] == "reduce"
    assert arrive(ledger, "u1") == ("closed", [])
    assert types(ledger).count("reduce.started") == 1
    assert ledger.stage_record(T, J, "map")["failed"] == "1"


def test_the_first_outcome_wins(ledger: Ledger) -> None:
    submit(ledger)
    wide(ledger, 2)
    assert ledger.arrive(T, J, "map", "u0", ok=True, outcome={"by": "first"}, event={})[0] == "new"
    assert ledger.arrive(T, J, "map", "u0", ok=False, outcome={"by": "second"}, event={})[0] == "duplicate"
    assert ledger.outcomes(T, J, "map")["u0"]["by"] == "first"


def test_late_arrivals_never_make_keys_again(ledger: Ledger) -> None:
    submit(ledger)
    wide(ledger, 1)
    ledger.redis.flushdb()
    assert arrive(ledger, "u0")[0] == "gone"
    assert ledger.redis.dbsize() == 0


def test_a_live_lease_drops_a_second_delivery_and_a_dead_one_is_published_again(ledger: Ledger) -> None:
    submit(ledger)
    (message,) = wide(ledger, 1)
    ledger.published([message])
    assert begin(ledger, message, lease=0.05).attempts == {"u0": 1}
    assert begin(ledger, message).verdicts == {"u0": "leased"}
    time.sleep(0.06)
    assert [(why, o.member) for why, o in ledger.overdue(2, 10)] == [("lease", message.member)]
    assert begin(ledger, message).attempts == {"u0": 2}


def test_a_renewed_lease_stays_and_a_lost_one_is_told(ledger: Ledger) -> None:
    submit(ledger)
    (message,) = wide(ledger, 1)
    ledger.published([message])
    begin(ledger, message, lease=0.2)
    member = f"{T}|{J}|map|u0"
    assert ledger.renew([member], 10) == []
    time.sleep(0.25)
    assert ledger.overdue(2, 10) == []
    ledger.finish(T, J, "cancelled", {}, 60)
    assert ledger.renew([member], 10) == [member]


def test_given_back_units_keep_or_lose_their_attempt(ledger: Ledger) -> None:
    submit(ledger)
    (message,) = wide(ledger, 1)
    begin(ledger, message)
    ledger.give_back(T, J, "map", "u0", delay_s=0, refund=True)
    assert ledger.overdue(2, 10)
    assert begin(ledger, message).attempts == {"u0": 1}
    ledger.give_back(T, J, "map", "u0", delay_s=0, refund=False, why="ValueError: x")
    ledger.overdue(2, 10)
    assert begin(ledger, message).attempts == {"u0": 2}


def test_a_poisonous_unit_ends_after_its_attempts_and_is_kept(ledger: Ledger) -> None:
    submit(ledger)
    (message,) = wide(ledger, 1)
    for _ in range(3):
        assert begin(ledger, message, allowed=3).verdicts == {"u0": "go"}
        ledger.give_back(T, J, "map", "u0", delay_s=0, refund=False, why="it broke")
        ledger.overdue(2, 10)
    begun = begin(ledger, message, allowed=3)
    assert begun.verdicts == {"u0": "poison"}
    assert [json.loads(o.body)["stage"] for o in begun.outgoing] == ["reduce"]
    assert ledger.outcomes(T, J, "map")["u0"]["cause"] == "poison"
    ((_, letter),) = ledger.redis.xrange(rk.dead_letters(T))
    assert letter["why"] == "it broke"
    assert letter["attempts"] == "3"


def test_a_failed_critical_step_opens_the_finishing_step(ledger: Ledger) -> None:
    submit(ledger)
    _, (follow,) = ledger.arrive(T, J, "plan", "plan", ok=False, outcome={"cause": "bad_input"}, event={})
    assert json.loads(follow.body)["task"] == "communitree.job.finish.v1"


def test_expiry_ends_what_waits_and_closes(ledger: Ledger) -> None:
    submit(ledger)
    wide(ledger, 5, window=2)
    arrive(ledger, "u0")
    outgoing = ledger.expire(T, J, "map", "deadline")
    assert [json.loads(o.body)["stage"] for o in outgoing] == ["reduce"]
    outcomes = ledger.outcomes(T, J, "map")
    assert [o.get("cause") for o in outcomes.values()] == [None, *["deadline"] * 4]


def test_an_unpublished_message_is_found_in_the_outbox(ledger: Ledger) -> None:
    (first,) = submit(ledger)
    assert ledger.overdue(10, 60) == []
    time.sleep(0.02)
    assert ledger.overdue(0.01, 60) == [("outbox", first)]


def test_a_message_that_vanished_is_found_when_its_queue_is_empty_and_waits_longer_each_time(ledger: Ledger) -> None:
    (first,) = submit(ledger)
    ledger.published([first])
    time.sleep(0.06)
    assert ledger.overdue(2, 0.05) == [("lost", first)]
    time.sleep(0.06)
    assert ledger.overdue(2, 0.05) == []  # twice as long now
    time.sleep(0.06)
    assert ledger.overdue(2, 0.05) == [("lost", first)]


def test_a_message_that_waits_in_its_queue_is_not_lost(ledger: Ledger) -> None:
    (first,) = submit(ledger)
    ledger.published([first])
    ledger.redis.lpush(first.queue, "waiting")
    time.sleep(0.06)
    assert ledger.overdue(2, 0.05) == []


def test_an_ended_job_leaves_only_keys_that_expire(ledger: Ledger) -> None:
    submit(ledger, lock=rk.corpus_lock(T, "c"), in_flight=rk.in_flight(T, "d"))
    for message in wide(ledger, 4, window=2):
        begin(ledger, message)
    assert ledger.finish(T, J, "failed", {}, 60, "why")[0] == "ok"
    assert ledger.finish(T, J, "answered", {}, 60)[0] == "already"
    assert ledger.record(T, J)["state"] == "failed"
    # UNWRITTEN: until the reconciler has written the end down.
    owned = {rk.jobs(T), rk.results(T), rk.STREAMS, rk.WATERMARK, rk.WAITING, rk.LANES, rk.UNWRITTEN}
    for key in ledger.redis.scan_iter("*"):
        assert ledger.redis.ttl(key) > 0 or key in owned, key
    assert types(ledger)[-1] == "job.ended"


def test_what_was_begun_before_it_was_released_leaves_nothing_behind(ledger: Ledger) -> None:
    submit(ledger)
    stage = Stage("map", "communitree.query.map.v1", NEXT, window=1)
    made = stage.messages(T, J, [Unit(id=f"u{i}") for i in range(2)], local=True)
    ledger.open(T, J, stage, made)
    later, _, units, _ = made[1]  # a worker has it from before Redis was rolled back
    assert ledger.begin(T, J, "map", later, units, 0.01, 5).verdicts == {"u1": "go"}
    time.sleep(0.05)
    assert [(why, o.member) for why, o in ledger.overdue(9, 9)] == [("lease", f"{T}|{J}|map|{later}")]
    time.sleep(0.05)
    assert ("lost", f"{T}|{J}|map|{later}") in [(why, o.member) for why, o in ledger.overdue(9, 0.01)]
    assert ledger.begin(T, J, "map", later, units, 15, 5).verdicts == {"u1": "go"}
    ledger.finish(T, J, "failed", {}, 60)
    for key in (rk.LEASES, rk.OWNERS, rk.SENT, rk.OUTBOX, rk.REPUBLISHED):
        assert not ledger.redis.exists(key), key


def test_units_of_an_ended_job_are_not_begun(ledger: Ledger) -> None:
    submit(ledger)
    (message,) = wide(ledger, 1)
    ledger.finish(T, J, "cancelled", {}, 60)
    assert begin(ledger, message).verdicts == {"u0": "gone"}


def test_levels_are_told_in_order(ledger: Ledger) -> None:
    submit(ledger)
    for level in (1, 0):
        stage = Stage(f"report-{level}", "communitree.corpus.report.v1", Step(f"level-{level - 1}", "communitree.corpus.level.v1"), kind="report", level=level)  # fmt: skip  # noqa: E501
        ledger.open(T, J, stage, stage.messages(T, J, [Unit(id=f"r{level}")], local=True))
        arrive(ledger, f"r{level}", stage=f"report-{level}")
    told = [(f["type"], f["level"]) for _, f in ledger.events(T, J) if f["type"].startswith("level.")]
    assert told == [("level.started", "1"), ("level.ended", "1"), ("level.started", "0"), ("level.ended", "0")]


def test_a_server_that_is_away_is_waited_for_and_then_named(settings: Settings) -> None:
    from communitree_shared.errors import InfrastructureError

    away = Ledger(redis.Redis(port=1, decode_responses=True, socket_connect_timeout=0.1), patience=0.2)
    with pytest.raises(InfrastructureError, match="does not answer"):
        away.record(T, J)


def test_only_so_many_messages_of_a_queue_are_in_the_broker_and_each_start_lets_one_in(ledger: Ledger) -> None:
    submit(ledger)
    first = wide(ledger, 100)
    assert len(first) == 32
    assert len(begin(ledger, first[0]).outgoing) == 1
    assert len(begin(ledger, first[0]).outgoing) == 0


def lane(ledger: Ledger, tenant: str, job: str, units: int, bulk: bool = False) -> list[Any]:
    record = {"kind": "query", "corpus": "c", "lane": "b" if bulk else "i"}
    ledger.submit(tenant, job, record, Step("plan", "communitree.query.plan.v1"))
    stage = Stage("map", "communitree.query.map.v1", NEXT, window=1000)
    return ledger.open(tenant, job, stage, stage.messages(tenant, job, [Unit(id=f"{job}{i}") for i in range(units)], local=False))[1]  # fmt: skip  # noqa: E501


def drained(ledger: Ledger, outgoing: list[Any], steps: int) -> list[str]:
    """Start messages one by one, as workers would; return whose jobs they were."""
    queue, order = list(outgoing), []
    for _ in range(steps):
        message = queue.pop(0)
        tenant, job, stage, identity = message.member.split("|")
        order.append(job)
        units = [u["id"] for u in json.loads(message.body)["units"]]
        queue += ledger.begin(tenant, job, stage, identity, units, 15, 5).outgoing
    return order


def test_tenants_are_served_in_turn(ledger: Ledger) -> None:
    outgoing = lane(ledger, "big", "a", 200) + lane(ledger, "small", "b", 5)
    order = drained(ledger, outgoing, 50)
    assert order[:32] == ["a"] * 32
    assert order[32:42].count("b") == 5


def test_an_interactive_question_passes_a_bulk_backlog_which_keeps_a_share(ledger: Ledger) -> None:
    outgoing = lane(ledger, "t", "bulk", 200, bulk=True) + lane(ledger, "t", "ask", 40)
    order = drained(ledger, outgoing, 90)
    behind = order[32:]
    assert behind[:45].count("ask") >= 35
    assert 0 < behind[:45].count("bulk") <= 10


def test_waiting_units_are_counted_and_limit_admission(ledger: Ledger) -> None:
    lane(ledger, "t", "a", 10)
    assert ledger.redis.hget(rk.WAITING, "t") == "11"  # with the plan
    record = {"kind": "query", "corpus": "c"}
    step = Step("plan", "communitree.query.plan.v1")
    assert ledger.submit("t", "b", record, step, limits=Limits(units=11))[0] == "full"
    assert ledger.submit("other", "b", record, step, limits=Limits(units=11))[0] == "ok"
    ledger.finish("t", "a", "cancelled", {}, 60)
    assert ledger.redis.hget(rk.WAITING, "t") is None
    assert ledger.submit("t", "b", record, step, limits=Limits(units=11))[0] == "ok"


def test_a_cancelled_jobs_messages_make_room_for_others(ledger: Ledger) -> None:
    lane(ledger, "t", "a", 100)
    assert lane(ledger, "t", "b", 10) == []
    _, outgoing = ledger.finish("t", "a", "cancelled", {}, 60)
    assert [o.member.split("|")[1] for o in outgoing] == ["b"] * 10


def test_many_interleavings_close_once(settings: Settings) -> None:
    """Duplicate, late and racing arrivals from eight threads: one close, every unit one outcome."""
    rounds, units = 12, 40
    ledgers = [Ledger(redis_client(settings), patience=5) for _ in range(8)]
    for round_ in range(rounds):
        job = f"race{round_}"
        submit(ledgers[0], job)
        wide(ledgers[0], units, window=7, job=job)
        follows: list[str] = []

        def work(seed: int, ledger: Ledger, job: str = job, follows: list[str] = follows) -> None:
            rng = random.Random(seed)
            order = [f"u{i}" for i in range(units)] * 2
            rng.shuffle(order)
            for unit in order:
                _, outgoing = arrive(ledger, unit, ok=rng.random() < 0.9, job=job)
                follows.extend(o.member for o in outgoing if o.member.split("|")[2] == "reduce")

        threads = [threading.Thread(target=work, args=(round_ * 8 + i, each)) for i, each in enumerate(ledgers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(follows) == 1
        record = ledgers[0].stage_record(T, job, "map")
        assert (record["done"], record["state"]) == (str(units), "closed")
        assert len(ledgers[0].outcomes(T, job, "map")) == units
        assert types(ledgers[0], job).count("unit.ended") == units
