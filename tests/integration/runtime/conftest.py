from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.messages import Unit
from communitree_shared.ledger import Ledger, Stage, Step
from communitree_shared.ledger.entry import finish_spec
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

TESTS = Path(__file__).parents[2]
FAST = {
    "COMMUNITREE_VISIBILITY_TIMEOUT": "6",
    "COMMUNITREE_LEASE": "1.5",
    "COMMUNITREE_LEASE_RENEWAL": "0.4",
    "COMMUNITREE_RECONCILER_TICK": "0.3",
    "COMMUNITREE_CPU_SLOTS": "2",
    "COMMUNITREE_MODEL_SLOTS": "40",
}


def environment(settings: Settings) -> dict[str, str]:
    values = settings.model_dump()
    names = ["home", "redis_url", "s3_endpoint", "s3_access_key", "s3_secret_key", "s3_bucket", "s3_prefix"]
    plain = {n: getattr(values[n], "get_secret_value", lambda v=values[n]: str(v))() for n in names}
    own = {f"COMMUNITREE_{n.upper()}": v for n, v in plain.items()}
    return {**os.environ, **FAST, **own, "PYTHONPATH": str(TESTS)}


class Bench:
    """One job with one wide stage, and the worker processes that work on it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ledger = Ledger(redis_client(settings), patience=20)
        self.publisher = Publisher(settings, self.ledger)
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, kind: str, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "support.stub_worker", kind]
        worker = subprocess.Popen(command, env={**environment(self.settings), **more}, start_new_session=True)
        self.workers.append(worker)
        return worker

    def submit(
        self, job: str, task: str, units: list[dict[str, Any]], *, per_message: int = 1, reduce: float = 0.0
    ) -> None:
        """Submit a job of these units; the step after them takes `reduce` seconds."""
        first = Step("plan", "communitree.query.plan.v1")
        record = {"kind": "query", "corpus": "c", "on_failure": finish_spec("default", job)}
        self.ledger.submit("default", job, record, first)
        then = Step(
            "reduce", "communitree.query.reduce.v1", {"seconds": reduce}, local=task != "communitree.query.map.v1"
        )
        stage = Stage("wide", task, then, kind="map")
        made = [Unit(id=f"{job}-{n}", args=args) for n, args in enumerate(units)]
        local = task != "communitree.query.map.v1"
        messages = stage.messages("default", job, made, local=local, per_message=per_message)
        _, outgoing = self.ledger.open("default", job, stage, messages)
        self.publisher.publish(outgoing)

    def log(self) -> list[list[str]]:
        return [line.split() for line in self.ledger.redis.lrange("stub:log", 0, -1)]

    def wait(self, what: Callable[[], Any], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)

    def state(self, job: str) -> str:
        return self.ledger.record("default", job).get("state", "")


@pytest.fixture
def bench(settings: Settings) -> Iterator[Bench]:
    made = Bench(settings)
    yield made
    for worker in made.workers:
        worker.kill()
        worker.wait()
    made.publisher.close()
    made.ledger.redis.close()
