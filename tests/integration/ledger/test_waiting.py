"""Who waits for a job's end alone hears of it at once, whatever ends it, and whatever Redis has lost meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from communitree.events import ending
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.options import QueryOptions
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.rebuild import rebuild
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

T = "default"


@pytest.fixture
def jobs(settings: Settings) -> Iterator[Jobs]:
    store, ledger = Store(settings, patience=10), Ledger(redis_client(settings), patience=10)
    store.ensure_bucket()
    publisher = Publisher(settings, ledger)
    made = Jobs(settings, store, ledger, publisher)
    store.put_json(made.keys.current("c"), {"version": "v-1", "corpus": "c"})
    yield made
    publisher.close()
    ledger.redis.close()


def ask(jobs: Jobs) -> str:
    return jobs.submit_query("c", "What?", QueryOptions()).job


def finish(jobs: Jobs, job: str) -> None:
    jobs.ledger.finish(T, job, "answered", {"result": "r"}, 600)


@pytest.mark.parametrize("end", [finish, Jobs.cancel])
def test_an_end_wakes_who_waits_for_it(jobs: Jobs, end: Callable[[Jobs, str], object]) -> None:
    job = ask(jobs)
    assert not jobs.ledger.ended(T, job, 1)
    ending_it = threading.Timer(0.3, end, (jobs, job))
    ending_it.start()
    began = time.monotonic()
    assert jobs.ledger.ended(T, job, 20_000)
    assert time.monotonic() - began < 15
    ending_it.join()
    assert list(ending(jobs, job)) == []
    assert 0 < jobs.ledger.redis.pttl(rk.ended(T, job)) <= 60_000


def test_one_that_ended_long_ago_is_not_waited_for(jobs: Jobs) -> None:
    job = ask(jobs)
    finish(jobs, job)
    jobs.ledger.redis.delete(rk.ended(T, job))  # a minute later
    assert list(ending(jobs, job, timeout=20)) == []


def test_one_that_redis_has_lost_is_waited_for_until_it_ends(jobs: Jobs) -> None:
    job = ask(jobs)
    waiting = ending(jobs, job, timeout=60)
    assert next(waiting) is None
    jobs.ledger.redis.flushdb()
    assert next(waiting) is None
    assert rebuild(jobs.settings, jobs.store, jobs.ledger, jobs.publisher) == [f"{T}|{job}"]
    assert next(waiting) is None
    finish(jobs, job)
    assert list(waiting) == []
