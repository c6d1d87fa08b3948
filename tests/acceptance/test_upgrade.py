"""Two releases side by side: messages, ledger and tables; a rolling upgrade under load loses nothing."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree.client import Client
from communitree.embedded.servers import Servers
from communitree_shared.contract.messages import QUEUE_PREFIX, QUEUES
from communitree_shared.contract.options import QueryOptions
from communitree_shared.errors import IntegrityError
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from support.fleet import Fleet, running_fleet, until
from support.provider import Provider
from support.topics import write_topics


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few of the documents: enough for what is looked at here."""
    return write_topics(tmp_path_factory.mktemp("few") / "topics", 5)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("upgrade")
    stages = {**provider.settings("report"), **provider.settings("map"), **provider.settings("reduce")}
    with Servers(folder / "servers") as endpoints:
        settings = endpoints.into(Settings(home=folder / "home"))
        with running_fleet(folder / "logs", settings, "models", "cpu", env=stages) as running:
            running.ready()
            yield running


@pytest.fixture(scope="module")
def client(fleet: Fleet) -> Iterator[Client]:
    with fleet.client() as made:
        yield made


def test_a_rolling_upgrade_under_load_loses_nothing(
    fleet: Fleet, client: Client, provider: Provider, topics: Path
) -> None:
    """Old and new workers take messages of both versions; the old ones then end, as an orchestrator ends them."""
    assert client.index(topics, "rolled").status == "published"
    provider.reset(latency=0.2)
    stop, asked = threading.Event(), list[str]()

    def ask() -> None:
        with fleet.client() as own:
            while not stop.wait(0.25):
                question = f"What is said of things, number {len(asked)}?"
                asked.append(own.submit("rolled", question, QueryOptions(deadline_seconds=120)).job)

    load = threading.Thread(target=ask)
    load.start()
    old = list(fleet.workers)
    indexed = client.submit_index(topics, "beside")
    try:
        for kind in ("models", "cpu"):
            fleet.start(kind, "support.newer_worker")
        fleet.ready()
        until(lambda: "parked for a newer worker" in fleet.logs(), 60)  # else nothing of this was seen
        for worker in old:
            worker.send_signal(signal.SIGTERM)
        time.sleep(2)
    finally:
        stop.set()
        load.join()
    result = client.wait_index(indexed, timeout=100)
    assert (result.status, result.reports.failed) == ("published", 0), fleet.logs()
    for job in asked:
        answer = client.wait_answer(job, timeout=100)
        assert answer.status == "answered", (answer, fleet.logs())
        assert answer.account.batches.failed == 0
    assert client._redis.xlen(rk.dead_letters("default")) == 0
    assert client._redis.xlen(rk.dead_letters(rk.FOREIGN)) == 0
    until(lambda: not any(client._redis.llen(rk.parked(QUEUE_PREFIX + q)) for q in QUEUES), 30, fleet.logs)
    for worker in old:
        assert worker.wait(30) == 0


def test_a_view_of_another_release_is_made_from_the_tables(fleet: Fleet, client: Client, topics: Path) -> None:
    client.index(topics / "assert.txt", "viewed")
    version = client._jobs.current("viewed")
    folder = client._jobs.keys.version("viewed", version)
    (view,) = [key for key in client._store.keys(folder) if "/view-" in key]
    client._store.delete(view)
    client._store.put(f"{folder}view-99.bin", b"of the next release")
    answer = client.ask("viewed", "What is an assertion?", QueryOptions(deadline_seconds=30))
    assert answer.status == "answered", (answer, fleet.logs())
    assert client._store.exists(view)


@pytest.mark.parametrize(("number", "remedy"), [(0, "communitree index"), (99, "Upgrade the workers")])
def test_tables_of_a_format_that_cannot_be_read_are_named(
    fleet: Fleet, client: Client, topics: Path, number: int, remedy: str
) -> None:
    corpus = f"of format {number}"
    client.index(topics / "assert.txt", corpus)
    key = client._jobs.keys.manifest(corpus, client._jobs.current(corpus))
    manifest = json.loads(client._store.get(key))
    client._store.put_json(key, {**manifest, "format": number})
    # A newer one is waited for, for some ticks of the reconciler: a worker that knows it may be about to start.
    with pytest.raises(IntegrityError, match=f"format {number}") as named:
        client.tree(corpus)
    assert remedy in named.value.hint
