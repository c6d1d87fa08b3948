"""What the message transport keeps in Redis: the seam between it and the ledger.

A queue is the list of its name, new messages at its left (no priority steps): `overdue.lua` asks for its length, to
see whether it is empty. All else of the transport has our prefix, so that an application with Celery of its own may
live in the same database: kombu's default names would make each give back what the other's workers are working on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis

from communitree_shared.redis_server import rediskeys as rk

#: Hash: delivery tag of a message that was taken and not acknowledged → the message.
UNACKED = rk.PREFIX + "unacked"

#: Sorted set: the same tag → when its worker last marked it (seconds, by the clock of Redis).
TAKEN = rk.PREFIX + "unacked_index"

#: String: who looks just now for what was taken too long ago.
MUTEX = rk.PREFIX + "unacked_mutex"

#: Sets: the queues of an exchange; and those that are to stay.
BINDINGS = rk.PREFIX + "binding.%s"
LASTING_BINDINGS = rk.PREFIX + "binding_permanent.%s"


def mark(client: redis.Redis, tags: Iterable[str], now: float) -> None:
    """Mark messages as held; one that was acknowledged or given back meanwhile stays away."""
    client.zadd(TAKEN, dict.fromkeys(tags, now), xx=True)


def abandoned(client: redis.Redis, before: float, most: int) -> list[str]:
    """Return the tags of messages that nobody has marked since then, the oldest first."""
    found: Any = client.zrangebyscore(TAKEN, "-inf", before, 0, most)
    return [str(tag) for tag in found]
