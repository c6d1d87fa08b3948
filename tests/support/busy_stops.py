"""A model worker that is told to stop in the middle of its work, again and again: how does its process end?"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from communitree.client import Client
from communitree_shared.contract.options import QueryOptions
from communitree_shared.settings import Settings
from support.fleet import running_fleet, until
from support.provider import fake_provider
from support.topics import write_topics

#: What a process leaves in its log that did not end well.
SIGNS = ("Fatal Python error", "Segmentation fault", "Traceback", "core dumped", "terminate called")

_QUESTIONS = 30


def busy_stops(folder: Path, settings: Settings, times: int, seed: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Stop a busy worker so many times; yield each time its exit code and the lines of its log that tell of harm."""
    rng = random.Random(seed)
    with fake_provider(latency=0.1, latency_sigma=0.5) as provider:
        stages = {**provider.settings("map"), **provider.settings("reduce"), "PYTHONFAULTHANDLER": "1"}
        with running_fleet(folder / "logs", settings, "cpu", env=stages) as fleet, fleet.client() as client:
            index = client.index(write_topics(folder / "topics", 4), "busy")
            assert index.status == "published", fleet.logs()
            for number in range(times):
                log = folder / "logs" / f"worker-{len(fleet.workers)}-models.log"
                worker = fleet.start("models")
                jobs = _ask(client, number)
                before = provider.stats()["requests"]
                until(lambda before=before: provider.stats()["requests"] > before + 5, 60, fleet.logs)
                time.sleep(rng.random() * 0.4)
                code = _stop(worker)
                text = log.read_text(errors="replace")
                yield code, [line for line in text.splitlines() if any(sign in line for sign in SIGNS)]
                for job in jobs:
                    with contextlib.suppress(Exception):  # it may have ended
                        client.cancel(job)


def _ask(client: Client, number: int) -> list[str]:
    asked = range(_QUESTIONS)
    return [client.submit("busy", f"What of {number}, {n}?", QueryOptions(cache=False)).job for n in asked]


def _stop(worker: subprocess.Popen[bytes]) -> int:
    worker.send_signal(signal.SIGTERM)
    return worker.wait(60)
