"""How a worker's process ends, and what does not end it: refusals that pass, a primary that becomes a replica."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from pydantic import SecretStr

from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.settings import Settings
from support.fleet import Fleet, running_fleet, until
from support.relay import relay
from support.sentinel import PASSWORD, watched_primary
from support.topics import write_topics
from support.valkey import Valkey, running_valkey


@pytest.fixture
def own(settings: Settings, tmp_path: Path) -> Iterator[tuple[Settings, Valkey]]:
    with running_valkey(tmp_path / "valkey") as valkey:
        yield settings.model_copy(update={"redis_url": SecretStr(valkey.url)}), valkey


def born(fleet: Fleet) -> list[float]:
    return [psutil.Process(worker.pid).create_time() for worker in fleet.workers]


@pytest.mark.parametrize("kind", ["models", "cpu"])
def test_what_will_not_pass_ends_a_worker_with_a_code_that_says_so(
    own: tuple[Settings, Valkey], tmp_path: Path, kind: str
) -> None:
    """A key of another kind where a queue should be: no waiting helps."""
    settings, valkey = own
    with running_fleet(tmp_path / "logs", settings, kind) as fleet, redis.Redis(port=valkey.port) as client:
        fleet.ready()
        queue = "communitree.map" if kind == "models" else "communitree.cluster"
        client.set(queue, "not a list")
        (worker,) = fleet.workers
        assert worker.wait(60) == 1, fleet.logs()
        assert "WRONGTYPE" in fleet.logs()
        assert "without having been told to" in fleet.logs()


@pytest.mark.parametrize("kind", ["models", "cpu"])
def test_a_worker_that_is_told_to_stop_ends_with_0(own: tuple[Settings, Valkey], tmp_path: Path, kind: str) -> None:
    with running_fleet(tmp_path / "logs", own[0], kind) as fleet:
        fleet.ready()
        time.sleep(1)
        (worker,) = fleet.workers
        worker.terminate()
        assert worker.wait(30) == 0, fleet.logs()
        assert "Traceback" not in fleet.logs()


def test_a_redis_that_is_full_for_a_while_ends_no_worker(own: tuple[Settings, Valkey], tmp_path: Path) -> None:
    settings, valkey = own
    topics = write_topics(tmp_path / "topics", 3)
    with (
        running_fleet(tmp_path / "logs", settings, "models", "cpu") as fleet,
        redis.Redis(port=valkey.port) as admin,
        fleet.client() as caller,
    ):
        fleet.ready()
        job = caller.submit_index(topics, "full", IndexOptions())
        before = born(fleet)
        admin.config_set("maxmemory", "1mb")
        time.sleep(5)
        admin.config_set("maxmemory", "0")
        assert caller.wait_index(job, timeout=80).status == "published", fleet.logs()
        assert born(fleet) == before
        assert all(worker.poll() is None for worker in fleet.workers)


def ask(caller: Any, fleet: Fleet, corpus: str, question: str) -> None:
    job = caller.submit(corpus, question, QueryOptions(cache=False)).job
    until(lambda: caller.job(job).status in {"answered", "no_data"}, 60, fleet.logs)


def test_an_address_that_moves_to_a_new_primary_is_followed(settings: Settings, tmp_path: Path) -> None:
    """As managed services fail over: the old primary lives on as a replica, and connections to it stay open."""
    topics = write_topics(tmp_path / "topics", 3)
    fast = ("--repl-diskless-sync-delay", "0")
    with (
        running_valkey(tmp_path / "one", *fast) as one,
        running_valkey(tmp_path / "two", *fast, "--replicaof", f"127.0.0.1 {one.port}") as two,
        relay(f"127.0.0.1:{one.port}") as address,
        redis.Redis(port=one.port, decode_responses=True) as first,
        redis.Redis(port=two.port, decode_responses=True) as second,
    ):
        until(lambda: second.info("replication")["master_link_status"] == "up")
        own = settings.model_copy(update={"redis_url": SecretStr(f"redis://{address.endpoint}/0")})
        with running_fleet(tmp_path / "logs", own, "models", "cpu") as fleet, fleet.client() as caller:
            fleet.ready()
            assert caller.index(topics, "moved").status == "published"
            before = born(fleet)
            job = caller.submit_index(write_topics(tmp_path / "more", 5), "moving", IndexOptions())
            until(lambda: first.wait(1, 1000) == 1)
            second.replicaof("NO", "ONE")
            address.target = ("127.0.0.1", two.port)
            first.replicaof("127.0.0.1", two.port)  # nobody's connection is cut
            ask(caller, fleet, "moved", "What is said of tuples?")
            assert caller.wait_index(job, timeout=80).status == "published", fleet.logs()
            assert born(fleet) == before
            assert all(worker.poll() is None for worker in fleet.workers), fleet.logs()
            assert "Unrecoverable" not in fleet.logs()


def test_failovers_by_sentinel_in_a_row_end_no_worker(settings: Settings, tmp_path: Path) -> None:
    """Each makes the primary a replica that lives; two, so that the first one is the primary again."""
    topics = write_topics(tmp_path / "topics", 3)
    with watched_primary(tmp_path / "redis") as watched:
        own = settings.model_copy(update={"redis_url": SecretStr(watched.url)})
        with (
            running_fleet(tmp_path / "logs", own, "models", "cpu") as fleet,
            fleet.client() as caller,
            redis.Redis(port=watched.port, decode_responses=True) as sentinel,
        ):
            fleet.ready()
            assert caller.index(topics, "kept").status == "published"
            before = born(fleet)
            for number, port in enumerate((watched.replica.port, watched.primary.port)):
                job = caller.submit("kept", f"What is said of tuples, {number}?", QueryOptions(cache=False)).job
                _failover(sentinel)
                until(lambda port=port: watched.primary_port() == port, 40)
                ask(caller, fleet, "kept", f"What of lists, {number}?")
                assert caller.wait_answer(job, timeout=80).status in {"answered", "no_data"}, fleet.logs()
                until(lambda: _follows(watched), 40)
            assert born(fleet) == before
            assert all(worker.poll() is None for worker in fleet.workers), fleet.logs()


def _failover(sentinel: redis.Redis) -> None:
    def accepted() -> bool:
        try:
            sentinel.execute_command("SENTINEL", "FAILOVER", "main")
        except redis.ResponseError:  # the one before is not over, or it knows no good replica yet
            return False
        return True

    until(accepted, 40)


def _follows(watched: Any) -> bool:
    for port in (watched.primary.port, watched.replica.port):
        with redis.Redis(port=port, password=PASSWORD, decode_responses=True) as server:
            found = server.info("replication")
            if found["role"] == "slave":
                return bool(found["master_link_status"] == "up")
    return False
