"""A Redis whose memory is full in the middle of a job: workers wait, the caller is told, and it goes on."""

from __future__ import annotations

import contextlib
import time
import uuid
from pathlib import Path

import redis
from pydantic import SecretStr

from communitree_shared.settings import Settings
from support.fleet import running_fleet, until
from support.topics import write_topics
from support.valkey import running_valkey


def fill(admin: redis.Redis, size: int) -> None:
    """Write values of this size until there is no room for another."""
    with contextlib.suppress(redis.exceptions.OutOfMemoryError):
        while True:
            admin.set(f"junk:{uuid.uuid4().hex}", bytes(size))


def test_a_full_redis_ends_no_worker_and_no_job(settings: Settings, tmp_path: Path) -> None:
    topics = write_topics(tmp_path / "topics", 6)
    with (
        running_valkey(tmp_path / "valkey", "--maxmemory", "64mb", "--maxmemory-policy", "noeviction") as valkey,
        redis.Redis(port=valkey.port) as admin,
    ):
        own = settings.model_copy(update={"redis_url": SecretStr(valkey.url)})
        with running_fleet(tmp_path / "logs", own, "cpu") as fleet, fleet.client() as client:
            fleet.ready()
            job = client.submit_index(topics, "full")
            until(lambda: any(e["type"] == "stage.ended" for e in client.job(job).events), 40, fleet.logs)
            fill(admin, 2**18)
            waits = until(lambda: client.job(job).waits, 10, fleet.logs)
            assert "is full" in waits["message"]
            end = time.monotonic() + 3
            while time.monotonic() < end:  # what the workers give back is taken at once
                fill(admin, 2**10)
                time.sleep(0.02)
            assert client.job(job).status == "running"
            assert all(worker.poll() is None for worker in fleet.workers), fleet.logs()
            admin.unlink(*admin.scan_iter("junk:*"))
            result = client.wait_index(job, timeout=90)
            assert result.status == "published", fleet.logs()
            assert all(worker.poll() is None for worker in fleet.workers), fleet.logs()
