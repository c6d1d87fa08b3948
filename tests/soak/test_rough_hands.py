"""What an operator may do to a running stack by mistake: each ends in a clear, true state, and nothing stays stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from communitree.client import Client
from communitree_shared.broker import layout
from communitree_shared.contract.options import QueryOptions, SelectionOptions
from communitree_shared.contract.results import IndexResult
from communitree_shared.errors import AdmissionRefused, CommunitreeError, CorpusNotFound, JobNotFound
from communitree_shared.redis_server import rediskeys as rk
from support.fleet import until
from support.oracles import one_commit, sums_close
from support.provider import Provider
from support.stack import FAST, Stack

LEAVES = QueryOptions(selection=SelectionOptions(strategy="leaves"), cache=False)


@pytest.fixture(scope="module")
def calm(client: Client, topics: Path) -> IndexResult:
    return client.index(topics, "calm")


@pytest.fixture(autouse=True)
def _leaves_nothing(client: Client, provider: Provider, calm: IndexResult) -> Iterator[None]:
    provider.reset(latency=0.0, hang_rate=0.0)
    yield
    provider.reset(latency=0.0, hang_rate=0.0)
    names = (rk.LEASES, rk.SENT, rk.OUTBOX, rk.OPEN_JOBS, rk.DEADLINES, rk.UNWRITTEN, layout.UNACKED)
    until(lambda: not [name for name in names if client._redis.exists(name)], 60)
    assert not list(client._redis.scan_iter("communitree:flight:*"))
    assert not list(client._redis.scan_iter("communitree:ready:*"))
    assert set(client._redis.hvals(rk.WAITING)) <= {"0"}
    assert not list(client._store.keys(client._jobs.keys.open_job("x")[:-1]))


def both(client: Client, topics: Path, calm: IndexResult, name: str) -> tuple[str, str]:
    """Start an index and a question that last a while."""
    indexed = client.submit_index(topics, name)
    asked = client.submit("calm", f"What about {name}?", LEAVES).job
    until(lambda: any(e["type"] == "unit.ended" for e in client.job(indexed).events), 60)
    return indexed, asked


def well(client: Client, calm: IndexResult, indexed: str, asked: str) -> None:
    result, answer = client.wait_index(indexed, 200), client.wait_answer(asked, 200)
    assert (result.status, result.counts) == ("published", calm.counts)
    assert (answer.status, answer.account.batches.failed) == ("answered", 0)
    sums_close(answer.account.model_dump())
    one_commit(client.job(asked).events)


def test_all_workers_are_frozen_for_longer_than_their_leases(
    stack: Stack, client: Client, provider: Provider, topics: Path, calm: IndexResult
) -> None:
    provider.reset(latency=0.6)
    jobs = both(client, topics, calm, "frozen")
    processes = [p for worker in stack.workers() for p in (worker, *worker.children())]
    for process in processes:
        process.suspend()
    time.sleep(3 * float(FAST["COMMUNITREE_LEASE"]))
    for process in processes:
        process.resume()
    well(client, calm, *jobs)


@pytest.mark.parametrize("tail", ["cut", "torn"])
def test_the_file_of_redis_ends_in_the_middle_of_a_command(
    stack: Stack, client: Client, provider: Provider, topics: Path, calm: IndexResult, tail: str
) -> None:
    """As after a power cut: some of the last writes are gone, or the last one is there in part."""
    provider.reset(latency=0.6)
    jobs = both(client, topics, calm, f"power {tail}")
    up = psutil.Process(stack.launched.pid)
    up.suspend()
    server = next(p for p in up.children() if "valkey-server" in p.name())
    server.kill()
    until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
    file = max((stack.home / "valkey" / "appendonlydir").glob("*.incr.aof"))
    size = file.stat().st_size
    with file.open("r+b") as log:
        if tail == "cut":
            log.truncate(size - min(size // 3, 20_000) - 7)
        else:
            log.seek(size)
            log.write(b"*3\r\n$300\r\nhalf a comm")
    up.resume()
    well(client, calm, *jobs)


def test_the_limit_of_open_jobs_is_filled_and_all_are_cancelled(
    stack: Stack, client: Client, provider: Provider
) -> None:
    provider.reset(hang_rate=1.0)
    with Client(client.settings.model_copy(update={"max_open_jobs": 12})) as limited:
        jobs = [limited.submit("calm", f"Which is number {n}?", LEAVES).job for n in range(12)]
        with pytest.raises(AdmissionRefused):
            limited.submit("calm", "One too many?", LEAVES)
        until(lambda: provider.stats()["in_flight"] > 0, 60)
        for job in jobs:
            limited.cancel(job)
        until(lambda: provider.stats()["in_flight"] == 0, 60)
        provider.reset(hang_rate=0.0)
        assert limited.ask("calm", "And now?", LEAVES).status == "answered"
    assert {client.job(job).status for job in jobs} == {"cancelled"}


def test_two_resume_the_same_jobs_at_once(stack: Stack, client: Client, provider: Provider, topics: Path) -> None:
    provider.reset(latency=1.0)
    indexed = client.submit_index(topics, "twice")
    asked = client.submit("calm", "Who resumes?").job
    client.cancel(indexed)
    client.cancel(asked)
    told: list[str | CommunitreeError] = []

    def resume(job: str) -> None:
        with stack.client() as own:
            try:
                told.append(own.resume(job))
            except CommunitreeError as error:
                told.append(error)

    threads = [threading.Thread(target=resume, args=(job,)) for job in (indexed, indexed, asked, asked)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs = {job for job in told if isinstance(job, str)}
    assert {error.code for error in told if isinstance(error, CommunitreeError)} <= {"corpus_busy"}
    assert sorted(str(client.wait(job, 100).status) for job in jobs) == ["answered", "published"]


def test_a_corpus_is_deleted_while_it_is_asked(client: Client, provider: Provider, topics: Path) -> None:
    client.index(topics, "deleted")
    provider.reset(latency=1.5)
    jobs = [client.submit("deleted", f"What is number {n}?", LEAVES).job for n in range(4)]
    until(lambda: provider.stats()["in_flight"] > 0, 60)
    client.delete("deleted")
    for job in jobs:
        with pytest.raises(JobNotFound):
            client.wait_answer(job, 30)
    with pytest.raises(CorpusNotFound):
        client.ask("deleted", "Anything left?")
    until(lambda: provider.stats()["in_flight"] == 0, 60)
    keys = client._jobs.keys
    assert not list(client._store.keys(keys.corpus("deleted")))
    assert not [key for job in jobs for key in client._store.keys(keys.job(job, ""))]
    assert not [key for key in client._redis.scan_iter("*") if any(job in str(key) for job in jobs)]


def test_objects_of_a_version_are_removed_by_hand(
    stack: Stack, client: Client, provider: Provider, topics: Path
) -> None:
    client.index(topics, "torn")
    keys, version = client._jobs.keys, client._jobs.current("torn")
    folder = keys.version("torn", version)
    victims = [key for key in client._store.keys(folder) if key.endswith((".bin", "community_reports.parquet"))]
    assert len(victims) == 2
    client._store.delete_all(victims)
    for worker in stack.workers():  # what they hold in memory goes, too
        for process in (*worker.children(), worker):
            process.kill()
    answer = client.ask("torn", "What is left?", LEAVES)
    assert answer.status == "failed"
    assert "community_reports.parquet is gone" in answer.answer
    assert client.index(topics, "torn").status == "published"
    assert client.ask("torn", "What is there again?", LEAVES).status == "answered"
