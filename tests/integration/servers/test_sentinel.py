"""A primary that dies in the middle of a job, and the replica that takes its place, perhaps without the last writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import redis
from pydantic import SecretStr

from communitree_shared.contract.options import IndexOptions
from communitree_shared.redis_server.connect import async_redis_client, check_server, close, redis_client
from communitree_shared.settings import Settings
from support.fleet import running_fleet, until
from support.sentinel import PASSWORD, watched_primary
from support.topics import write_topics


async def test_a_job_outlives_its_primary(settings: Settings, tmp_path: Path) -> None:
    """The replica has stopped following a while before, so that it comes up without the last writes."""
    topics = write_topics(tmp_path / "topics", 6)
    with watched_primary(tmp_path / "redis") as watched:
        own = settings.model_copy(update={"redis_url": SecretStr(watched.url)})
        client = redis_client(own)
        check_server(client)
        close(client)
        later = async_redis_client(own)
        assert await later.ping()
        manager: Any = later.connection_pool
        await later.aclose()
        for sentinel in manager.sentinel_manager.sentinels:
            await sentinel.aclose()
        with running_fleet(tmp_path / "logs", own, "cpu") as fleet, fleet.client() as caller:
            fleet.ready()
            job = caller.submit_index(topics, "kept", IndexOptions())
            until(lambda: _ended(caller, job) >= 2, 40, fleet.logs)
            with redis.Redis(port=watched.replica.port, password=PASSWORD) as replica:
                replica.replicaof("NO", "ONE")  # it follows nobody any more, until the sentinel takes note
                until(lambda: _ended(caller, job) >= 3, 40, fleet.logs)
            watched.primary.stop()
            until(lambda: watched.primary_port() == watched.replica.port, 30)
            result = caller.wait_index(job, timeout=80)
            assert result.status == "published", fleet.logs()
            assert result.coverage.entities == 1.0
            kinds = Counter(e["type"] for e in caller.job(job).events)
            assert kinds["job.ended"] == 1
            assert caller.ask("kept", "What is this about?").status == "answered"


def _ended(caller: Any, job: str) -> int:
    return sum(e["type"] == "stage.ended" for e in caller.job(job).events)
