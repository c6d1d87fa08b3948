"""A ledger that was lost is told again of every open job, side by side, and no caller is left waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from communitree import looks
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.rebuild import rebuild
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

T = "default"


@pytest.fixture
def jobs(settings: Settings) -> Iterator[Jobs]:
    store, ledger = Store(settings, patience=5), Ledger(redis_client(settings), patience=5)
    store.ensure_bucket()
    store.put_json(Keys(T, settings.s3_prefix).current("c"), {"version": "v-1", "corpus": "c"})
    publisher = Publisher(settings, ledger)
    yield Jobs(settings, store, ledger, publisher)
    publisher.close()
    ledger.redis.close()


def ask(jobs: Jobs, question: str) -> str:
    return jobs.submit_query("c", question, QueryOptions()).job


def index(jobs: Jobs, corpus: str) -> str:
    return jobs.submit_index(corpus, [{"name": "a", "sha256": "0" * 64, "size": 1}], IndexOptions()).job


def again(jobs: Jobs) -> list[str]:
    return rebuild(jobs.settings, jobs.store, jobs.ledger, jobs.publisher)


def test_all_open_jobs_are_told_again_read_side_by_side(jobs: Jobs) -> None:
    open_jobs = {ask(jobs, f"Question {n}?") for n in range(40)} | {index(jobs, "d")}
    jobs.ledger.redis.flushdb()
    find, lock, now, most = jobs.store.find_json, threading.Lock(), 0, 0

    def counting(key: str) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        try:
            time.sleep(0.01)
            return find(key)
        finally:
            with lock:
                now -= 1

    jobs.store.find_json = counting  # type: ignore[method-assign]
    assert {member.split("|")[1] for member in again(jobs)} == open_jobs
    assert most > 4
    assert {jobs.ledger.record(T, job)["state"] for job in open_jobs} == {"queued"}
    assert again(jobs) == []


def test_what_was_admitted_once_is_not_refused_now(jobs: Jobs) -> None:
    job = ask(jobs, "What?")
    jobs.ledger.redis.flushdb()
    jobs.ledger.redis.hset(rk.WAITING, mapping={T: 50_000_000, "*": 50_000_000})
    assert again(jobs) == [f"{T}|{job}"]


def test_a_question_that_was_asked_again_meanwhile_is_answered_under_both_names(jobs: Jobs) -> None:
    lost = ask(jobs, "What?")
    jobs.ledger.redis.flushdb()
    newer = ask(jobs, "What?")
    assert newer != lost
    assert again(jobs) == [f"{T}|{lost}"]
    assert jobs.record(lost)["state"] == jobs.record(newer)["state"] == "queued"


def test_an_index_whose_corpus_another_job_has_taken_ends_with_the_reason(jobs: Jobs) -> None:
    lost = index(jobs, "d")
    jobs.ledger.redis.flushdb()
    newer = index(jobs, "d")
    assert again(jobs) == []
    assert jobs.record(lost)["state"] == "failed"
    result = jobs.result(lost) or {}
    assert result["error"]["code"] == "corpus_busy"
    assert newer in result["error"]["message"]
    assert not jobs.store.exists(jobs.keys.open_job(lost))


def test_a_look_that_ended_while_its_record_was_lost_is_done(jobs: Jobs) -> None:
    job = jobs.submit_look("c", "tree", {}).job
    jobs.ledger.redis.flushdb()
    assert jobs.record(job)["state"] == "lost"
    jobs.store.put_json(jobs.keys.job(job, "result.json"), {"result": {"communities": []}})
    assert jobs.record(job)["state"] == "done"


def test_who_waits_for_a_look_gets_its_answer_though_redis_has_lost_it(
    jobs: Jobs, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "_LOST_AFTER", 0.3)
    client = redis_client(settings)
    worker = Ledger(redis_client(settings), patience=5)
    asked: list[str] = []

    def answer() -> None:
        until = time.monotonic() + 60
        while len(asked) < 2 and time.monotonic() < until:
            new = [j for j in worker.jobs(T) if j not in asked]
            asked.extend(new)
            if new and len(asked) == 1:
                client.flushdb()
            elif new:
                key = jobs.keys.job(new[0], "result.json")
                jobs.store.put_json(key, {"result": {"found": 1}})
                worker.finish(T, new[0], "done", {"result": key}, 60)
            time.sleep(0.05)

    thread = threading.Thread(target=answer)
    thread.start()
    with looks.looking(jobs, "c", "tree", {}) as (job, found):
        assert (job, found) == (asked[1], {"found": 1})
    thread.join()
    assert not list(jobs.store.keys(jobs.keys.jobs()))
    client.close()
    worker.redis.close()
