"""`communitree worker --check` of real workers: one that waits for its servers lives, one that is stopped does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from communitree_shared.alive import SILENCE, look, run_folder
from communitree_shared.settings import Settings
from support.fleet import Fleet, running_fleet, until
from support.valkey import running_valkey


def checked(fleet: Fleet, *queues: str) -> int:
    words = [sys.executable, "-P", "-m", "communitree", "worker", *queues, "--check"]
    return subprocess.run(words, env=fleet.env, capture_output=True, check=False).returncode


@pytest.mark.parametrize("kind", ["models", "cpu"])
def test_a_worker_lives_while_redis_is_away_and_not_while_it_is_stopped(
    settings: Settings, tmp_path: Path, kind: str
) -> None:
    with running_valkey(tmp_path / "valkey") as valkey:
        own = settings.model_copy(update={"redis_url": SecretStr(valkey.url)})
        valkey.stop()
        with running_fleet(tmp_path / "logs", own, kind) as fleet:
            until(lambda: checked(fleet, kind) == 0, 20, fleet.logs)  # it waits for its first Redis
            valkey.start()
            fleet.ready()
            (path,) = run_folder(own.home).glob("worker-*.json")
            valkey.stop()
            away = time.time()
            until(lambda: path.stat().st_mtime > away + 11, 30, fleet.logs)  # three touches
            assert checked(fleet, kind) == 0
            assert checked(fleet, "corpus" if kind == "cpu" else "map") == 0
            assert checked(fleet, "map" if kind == "cpu" else "corpus") == 1

            (worker,) = fleet.workers
            os.kill(worker.pid, signal.SIGSTOP)
            time.sleep(0.5)
            old = time.time() - SILENCE - 1
            os.utime(path, (old, old))
            assert checked(fleet) == 1
            os.kill(worker.pid, signal.SIGCONT)
            until(lambda: checked(fleet) == 0, 20, fleet.logs)

            worker.kill()
            worker.wait()
            assert checked(fleet) == 1
            assert look(own.home) == []
