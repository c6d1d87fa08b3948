"""A job that ended while the object store refused us has ended for good: not even a loss of Redis brings it back."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.contract.results import Answer, IndexResult
from communitree_shared.errors import ServerRefuses
from communitree_shared.ledger import Ledger, Step
from communitree_shared.ledger.ends import without_result
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.reconciler import Reconciler
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from support.relay import Relay, relay

T = "default"
_numbers = itertools.count()
FULL = {"code": "refused", "message": "The object store is full.", "hint": "Give it space."}


@pytest.fixture
def wire(settings: Settings) -> Iterator[Relay]:
    with relay(settings.s3_endpoint) as made:
        yield made


@pytest.fixture
def jobs(settings: Settings, wire: Relay) -> Iterator[Jobs]:
    through = settings.model_copy(update={"s3_endpoint": wire.endpoint})
    store, ledger = Store(through), Ledger(redis_client(through), patience=5)
    store.ensure_bucket()
    store.put_json(Keys(T, through.s3_prefix).current("c"), {"version": "v-1", "corpus": "c"})
    publisher = Publisher(through, ledger)
    yield Jobs(through, store, ledger, publisher)
    publisher.close()
    ledger.redis.close()


def ticking(jobs: Jobs) -> Reconciler:
    """A reconciler that has looked for what Redis had lost before."""
    reconciler = Reconciler(jobs.settings, jobs.store, jobs.ledger, jobs.publisher)
    reconciler.tick()
    ended(reconciler.mender)
    return reconciler


def ended(thread: threading.Thread | None) -> None:
    if thread is not None:
        thread.join(30)
        assert not thread.is_alive()


def index(jobs: Jobs) -> str:
    return jobs.submit_index("d", [{"name": "a", "sha256": "0" * 64, "size": 1}], IndexOptions()).job


def tick(jobs: Jobs, reconciler: Reconciler) -> None:
    """Let the store's next turn come; then one tick, and what it has begun."""
    jobs.store.trouble._next = 0.0
    reconciler.tick()
    ended(reconciler.writer)


def failed(jobs: Jobs) -> str:
    """A corpus job that a server's refusal has ended."""
    job = jobs.submit_index(f"d{next(_numbers)}", [{"name": "a", "sha256": "0" * 64, "size": 1}], IndexOptions()).job
    jobs.ledger.finish(T, job, "failed", {"error": json.dumps(FULL)}, 60, FULL["message"])
    return job


def test_a_job_that_a_full_store_ended_is_written_down_when_it_has_room(jobs: Jobs, wire: Relay) -> None:
    reconciler = ticking(jobs)
    asked, indexed = jobs.submit_query("c", "What?", QueryOptions()).job, index(jobs)
    wire.reply(507, "XMinioStorageFull", spares=lambda method, path: method in {"GET", "HEAD"})
    for job in (asked, indexed):
        jobs.ledger.finish(T, job, "failed", {"error": json.dumps(FULL)}, 60, FULL["message"])
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zcard(rk.UNWRITTEN) == 2
    wire.up()
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zcard(rk.UNWRITTEN) == 0
    jobs.ledger.redis.flushdb()
    ticking(jobs)  # another one
    assert jobs.ledger.redis.zcard(rk.OPEN_JOBS) == 0
    for job, kind in ((asked, Answer), (indexed, IndexResult)):
        assert jobs.record(job)["state"] == "failed"
        raw = jobs.result(job) or {}
        assert raw["error"] == FULL
        result = kind.model_validate(raw)  # type: ignore[attr-defined]
        assert (result.status, result.job_id) == ("failed", job)
        assert not jobs.store.exists(jobs.keys.open_job(job))


def test_a_job_that_was_cancelled_while_the_store_refused_stays_cancelled(jobs: Jobs, wire: Relay) -> None:
    reconciler = ticking(jobs)
    job = index(jobs)
    wire.reply(403, "AccessDenied")
    with pytest.raises(ServerRefuses):
        jobs.cancel(job)
    tick(jobs, reconciler)
    wire.up()
    tick(jobs, reconciler)
    assert not jobs.store.exists(jobs.keys.open_job(job))
    assert jobs.result(job) is None
    assert jobs.record(job)["reason"] == "cancelled by its caller"
    jobs.ledger.redis.flushdb()
    ticking(jobs)
    assert jobs.record(job)["state"] == "lost"  # it can be resumed; nobody does so by himself


def test_an_answer_that_was_written_first_stays(jobs: Jobs) -> None:
    reconciler = ticking(jobs)
    job = jobs.submit_query("c", "What?", QueryOptions()).job
    answer = without_result(job, "answered", "", {}, {"kind": "query", "corpus": "c"})
    jobs.store.put_json(jobs.keys.job(job, "result.json"), answer.model_dump())
    jobs.ledger.finish(T, job, "failed", {}, 60, "its end could not be written")
    tick(jobs, reconciler)
    assert (jobs.result(job) or {})["status"] == "answered"
    assert jobs.record(job)["state"] == "answered"
    assert not {"error", "reason"} & jobs.record(job).keys()
    assert jobs.ledger.redis.ttl(rk.job(T, job)) > 0


def test_a_job_given_up_while_its_answer_was_stored_has_one_end(jobs: Jobs, wire: Relay) -> None:
    """One worker is refused for too long, another gets through just then: ledger and result must not differ."""
    reconciler = ticking(jobs)
    job = jobs.submit_query("c", "What?", QueryOptions()).job
    wire.reply(403, "AccessDenied")
    jobs.ledger.finish(T, job, "failed", {"error": json.dumps(FULL)}, 60, FULL["message"])
    tick(jobs, reconciler)
    wire.up()
    answer = without_result(job, "no_data", "", {}, {"kind": "query", "corpus": "c"})
    assert jobs.store.put_new(jobs.keys.job(job, "result.json"), json.dumps(answer.model_dump()).encode())
    status, _ = jobs.ledger.finish(T, job, "no_data", {"result": "x"}, 60)
    assert status == "already"
    tick(jobs, reconciler)
    assert jobs.record(job)["state"] == (jobs.result(job) or {})["status"] == "no_data"


def test_a_job_that_was_deleted_meanwhile_leaves_nothing(jobs: Jobs) -> None:
    reconciler = ticking(jobs)
    job = index(jobs)
    jobs.ledger.finish(T, job, "failed", {}, 60, "its end could not be written")
    jobs.ledger.redis.delete(rk.job(T, job))
    jobs.store.delete_all(list(jobs.store.keys(jobs.keys.job(job, ""))))
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zcard(rk.UNWRITTEN) == 0
    assert not list(jobs.store.keys(jobs.keys.jobs()))
    assert not jobs.store.exists(jobs.keys.open_job(job))


def test_a_store_that_takes_requests_and_answers_none_holds_up_no_tick(jobs: Jobs, wire: Relay) -> None:
    reconciler = ticking(jobs)
    failed(jobs)
    wire.silent()
    reconciler.tick()
    writer = reconciler.writer
    assert writer is not None
    end = time.monotonic() + 20
    while not wire.tries:
        assert time.monotonic() < end
        time.sleep(0.01)
    reconciler.tick()  # while that request hangs
    assert writer.is_alive()
    assert reconciler.writer is writer  # one at a time
    wire.up()
    writer.join(20)
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zcard(rk.UNWRITTEN) == 0


def test_what_redis_has_lost_is_taken_up_again_while_other_work_goes_on(jobs: Jobs, wire: Relay) -> None:
    """The store hangs: a tick does all that needs Redis alone meanwhile, and another loss is not forgotten."""
    reconciler = ticking(jobs)
    job = index(jobs)
    jobs.ledger.redis.flushdb()
    wire.silent()
    reconciler.tick()
    mender = reconciler.mender
    assert mender is not None
    end = time.monotonic() + 20
    while not wire.tries:
        assert time.monotonic() < end
        time.sleep(0.01)
    first = jobs.ledger.submit(T, "other", {"kind": "query", "corpus": "c"}, Step("plan", "communitree.query.plan.v1"))[
        2
    ]
    jobs.ledger.redis.zadd(rk.OUTBOX, {first[0].member: 0})  # its caller died long ago
    began = time.monotonic()
    reconciler.tick()
    assert time.monotonic() - began < 5
    assert jobs.ledger.redis.llen(first[0].queue) == 1
    assert mender.is_alive()
    assert reconciler.mender is mender  # one at a time
    jobs.ledger.redis.flushdb()
    reconciler.tick()
    wire.up()
    ended(mender)
    tick(jobs, reconciler)
    ended(reconciler.mender)
    assert reconciler.mender is not mender  # what was lost while it ran
    assert jobs.record(job)["state"] == "queued"


def test_an_end_that_the_store_does_not_take_keeps_no_other_waiting_and_is_told_of_once(
    jobs: Jobs, wire: Relay, caplog: pytest.LogCaptureFixture
) -> None:
    reconciler = ticking(jobs)
    refused, taken, later = failed(jobs), failed(jobs), failed(jobs)
    wire.reply(403, "AccessDenied", spares=lambda method, path: refused not in path)
    caplog.set_level(logging.WARNING, logger="communitree_shared.ledger.reconciler")
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zrange(rk.UNWRITTEN, 0, -1) == [f"{T}|{job}" for job in (taken, later, refused)]
    tick(jobs, reconciler)
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zrange(rk.UNWRITTEN, 0, -1) == [f"{T}|{refused}"]
    assert [(jobs.result(job) or {})["error"] for job in (taken, later)] == [FULL, FULL]
    (told,) = [r.message for r in caplog.records if r.message.startswith("writing the ends of jobs waits: ")]
    assert "AccessDenied" in told
    wire.up()
    tick(jobs, reconciler)
    assert jobs.ledger.redis.zcard(rk.UNWRITTEN) == 0
