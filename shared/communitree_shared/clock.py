"""The time of the Redis server: the one clock that all processes share.

A deadline is an absolute time. Were it compared with each machine's own clock, a worker whose clock is five minutes
ahead would call every question late. So each process measures once a minute what the server's clock says, and goes on
from there by its own monotonic clock, which nobody sets.
"""

from __future__ import annotations

import time
from typing import Any

import redis

#: Seconds after which the server is asked again.
_KEPT = 60.0

_measured: tuple[float, float] | None = None  # (server's time, our monotonic time) at the last look


def sync(client: redis.Redis) -> None:
    """Ask the server for its time, unless that was done a moment ago. A server that is away changes nothing."""
    global _measured
    if _measured is not None and time.monotonic() - _measured[1] < _KEPT:
        return
    began = time.monotonic()
    try:
        told: Any = client.time()
    except (redis.RedisError, OSError):
        return
    ended = time.monotonic()
    _measured = (told[0] + told[1] / 1e6, (began + ended) / 2)


def now() -> float:
    """Return the server's time (unix seconds); before it was ever asked, this machine's."""
    if _measured is None:
        return time.time()
    server, at = _measured
    return server + time.monotonic() - at


def now_of(client: redis.Redis) -> float:
    """Return the server's time, asking for it where that was not done lately."""
    sync(client)
    return now()
