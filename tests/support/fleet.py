"""Real worker processes on given servers, and a client of the same: for tests that stand between the two."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from communitree.client import Client
from communitree_shared.settings import Settings
from support.stack import FAST

TESTS = Path(__file__).parents[1]

_SERVERS = ("home", "redis_url", "redis_ca_bundle", "redis_certificate", "redis_private_key", "redis_sentinel_password",
            "s3_endpoint", "s3_access_key", "s3_secret_key", "s3_bucket", "s3_prefix", "s3_secure", "s3_ca_bundle",
            "s3_region", "tenant")  # fmt: skip


def environment(settings: Settings, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a worker is started with to use the same servers as these settings."""
    plain: dict[str, str] = {}
    for name in _SERVERS:
        value: Any = getattr(settings, name)
        text = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
        if text:
            plain[f"COMMUNITREE_{name.upper()}"] = text
    clean = {n: v for n, v in os.environ.items() if not n.startswith(("COMMUNITREE_", "AWS_"))}
    return {**clean, **FAST, **plain, "PYTHONPATH": str(TESTS), **(more or {})}


class Fleet:
    """Workers that were started, with the log of each."""

    def __init__(self, folder: Path, settings: Settings, env: Mapping[str, str]) -> None:
        self.folder, self.settings, self.env = folder, settings, dict(env)
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, kind: str, module: str = "communitree_workers", **more: str) -> subprocess.Popen[bytes]:
        """Start one worker process for a kind of queues (or one queue)."""
        log = (self.folder / f"worker-{len(self.workers)}-{kind}.log").open("wb")
        words = ["worker", kind] if module == "communitree_workers" else [kind]
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *words], env={**self.env, **more}, start_new_session=True, stderr=log,
            stdout=log,
        )  # fmt: skip
        log.close()
        self.workers.append(worker)
        return worker

    def client(self, **changes: Any) -> Client:
        """Return a client of the same servers; the caller closes it."""
        return Client(self.settings.model_copy(update=changes))

    def cpu_seconds(self) -> float:
        """Return the CPU time that the workers have taken so far."""
        total = 0.0
        for worker in self.workers:
            with contextlib.suppress(psutil.Error):
                main = psutil.Process(worker.pid)
                for process in (main, *main.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        times = process.cpu_times()
                        total += times.user + times.system
        return total

    def logs(self) -> str:
        """Return all that the workers have logged."""
        return "\n".join(f"--- {p.name}\n{p.read_text(errors='replace')}" for p in sorted(self.folder.glob("*.log")))

    def ready(self, seconds: float = 30) -> None:
        """Wait until every worker serves."""
        until(lambda: self.logs().count(" serving ") >= len(self.workers), seconds, self.logs)

    def stop(self) -> None:
        """End all workers at once."""
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def until(what: Callable[[], Any], seconds: float = 30, why: Callable[[], str] = str) -> Any:
    """Wait until something is so, and return it."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, why()
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def running_fleet(
    folder: Path, settings: Settings, *kinds: str, env: Mapping[str, str] | None = None
) -> Iterator[Fleet]:
    """Run workers of these kinds until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    fleet = Fleet(folder, settings, environment(settings, env))
    try:
        for kind in kinds:
            fleet.start(kind)
        yield fleet
    finally:
        fleet.stop()
