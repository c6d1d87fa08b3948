"""A primary, a replica and the sentinel that watches them."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from support.valkey import Valkey, binary, free_port

MASTER, PASSWORD = "main", "of-the-test"


class Watched:
    """Both servers by role at the start, and the URL of the sentinel."""

    def __init__(self, folder: Path) -> None:
        for name in ("one", "two", "sentinel"):
            (folder / name).mkdir(parents=True)
        login = ("--requirepass", PASSWORD, "--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0")
        self.primary = Valkey(folder / "one", *login)
        self.replica = Valkey(folder / "two", *login, "--replicaof", f"127.0.0.1 {self.primary.port}")
        self._port = free_port()
        self._folder = folder / "sentinel"
        self._sentinel: subprocess.Popen[bytes] | None = None
        self.url = f"sentinel://:{PASSWORD}@127.0.0.1:{self._port}/0?master_name={MASTER}"

    def start(self) -> None:
        """Start all three and wait until the replica follows and the sentinel knows it."""
        self.primary.start()
        self.replica.start()
        self._sentinel = _sentinel(self._folder, self._port, self.primary.port)
        end = time.monotonic() + 20
        while not self._watched():
            if time.monotonic() > end:
                raise RuntimeError("the sentinel does not know the replica")
            time.sleep(0.1)

    def _watched(self) -> bool:
        with (
            contextlib.suppress(redis.RedisError),
            redis.Redis(port=self._port, decode_responses=True) as sentinel,
            redis.Redis(port=self.replica.port, password=PASSWORD) as replica,
        ):
            known = sentinel.sentinel_slaves(MASTER)
            return len(known) == 1 and replica.info("replication").get("master_link_status") == "up"
        return False

    def primary_port(self) -> int:
        """Return where the sentinel says the primary is now."""
        with redis.Redis(port=self._port) as sentinel:
            return int(sentinel.sentinel_get_master_addr_by_name(MASTER)[1])

    def stop(self) -> None:
        """End all three."""
        if self._sentinel is not None:
            self._sentinel.kill()
            self._sentinel.wait()
        self.replica.stop()
        self.primary.stop()


def _sentinel(folder: Path, port: int, primary: int) -> subprocess.Popen[bytes]:
    config = folder / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
        f"sentinel monitor {MASTER} 127.0.0.1 {primary} 1\nsentinel auth-pass {MASTER} {PASSWORD}\n"
        f"sentinel down-after-milliseconds {MASTER} 700\nsentinel failover-timeout {MASTER} 3000\n"
    )
    command = [binary(), str(config), "--sentinel"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def sentinel_of(folder: Path, primary: int) -> Iterator[int]:
    """Run a sentinel for the primary at a port of this machine; yields the sentinel's own port."""
    folder.mkdir(parents=True)
    port = free_port()
    process = _sentinel(folder, port, primary)
    try:
        end = time.monotonic() + 20
        with redis.Redis(port=port) as sentinel:
            while True:
                with contextlib.suppress(redis.ConnectionError):
                    sentinel.ping()
                    break
                if time.monotonic() > end:
                    raise RuntimeError("the sentinel does not answer")
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def watched_primary(folder: Path) -> Iterator[Watched]:
    """Run all three until the block ends."""
    made = Watched(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
