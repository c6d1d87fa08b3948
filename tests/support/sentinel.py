"""A primary, a replica and the sentinel that watches them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import redis

from support.valkey import Valkey, binary, running_valkey, serve

MASTER, PASSWORD = "main", "of-the-test"


@dataclass
class Watched:
    """Both servers by role at the start, and the sentinel's port."""

    primary: Valkey
    replica: Valkey
    port: int

    @property
    def url(self) -> str:
        """The URL of the sentinel."""
        return f"sentinel://:{PASSWORD}@127.0.0.1:{self.port}/0?master_name={MASTER}"

    def complete(self) -> bool:
        """Whether the replica follows and the sentinel knows it."""
        with (
            contextlib.suppress(redis.RedisError),
            redis.Redis(port=self.port, decode_responses=True) as sentinel,
            redis.Redis(port=self.replica.port, password=PASSWORD) as replica,
        ):
            known = sentinel.sentinel_slaves(MASTER)
            return len(known) == 1 and replica.info("replication").get("master_link_status") == "up"
        return False

    def primary_port(self) -> int:
        """Return where the sentinel says the primary is now."""
        with redis.Redis(port=self.port) as sentinel:
            return int(sentinel.sentinel_get_master_addr_by_name(MASTER)[1])


@contextlib.contextmanager
def sentinel_of(folder: Path, primary: int) -> Iterator[int]:
    """Run a sentinel for the primary at a port of this machine; yields the sentinel's own port."""
    folder.mkdir(parents=True)
    config = folder / "sentinel.conf"

    def command(port: int) -> list[str]:
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor {MASTER} 127.0.0.1 {primary} 1\nsentinel auth-pass {MASTER} {PASSWORD}\n"
            f"sentinel down-after-milliseconds {MASTER} 700\nsentinel failover-timeout {MASTER} 3000\n"
        )
        return [binary(), str(config), "--sentinel"]

    process, port = serve(command)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def watched_primary(folder: Path) -> Iterator[Watched]:
    """Run all three until the block ends."""
    login = ("--requirepass", PASSWORD, "--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0")
    with (
        running_valkey(folder / "one", *login) as primary,
        running_valkey(folder / "two", *login, "--replicaof", f"127.0.0.1 {primary.port}") as replica,
        sentinel_of(folder / "sentinel", primary.port) as port,
    ):
        made = Watched(primary, replica, port)
        end = time.monotonic() + 20
        while not made.complete():
            if time.monotonic() > end:
                raise RuntimeError("the sentinel does not know the replica")
            time.sleep(0.1)
        yield made
