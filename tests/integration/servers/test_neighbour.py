"""An application with Celery of its own, in one process with our client and in one Redis database with our workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from support.fleet import running_fleet
from support.topics import write_topics

TASKS = 8


def test_each_task_of_a_neighbour_runs_once(settings: Settings, tmp_path: Path) -> None:
    """Its tasks run for longer than our reconciler waits for a worker that is silent, and keep no heart of ours."""
    with running_fleet(tmp_path / "logs", settings, "models", "cpu") as fleet, fleet.client() as client:
        fleet.ready()
        assert client.index(write_topics(tmp_path / "topics", 3), "beside").status == "published"
        neighbour = subprocess.run(
            [sys.executable, "-P", "-m", "support.neighbour", "beside", str(TASKS)], env=fleet.env, timeout=120,
            capture_output=True, text=True,
        )  # fmt: skip
        own = redis_client(settings)
        runs = own.hgetall("neighbour:runs")
        assert own.get("neighbour:done") == "1", (neighbour.stderr, runs, fleet.logs())
        assert runs == {str(number): "1" for number in range(TASKS)}
        assert all(worker.poll() is None for worker in fleet.workers)
        own.close()
