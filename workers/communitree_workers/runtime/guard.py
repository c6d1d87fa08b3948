"""What a queue may hold that is no message at all: the transport would end the worker's process over it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import redis

from communitree_shared import crash

log = logging.getLogger(__name__)

#: What the transport, Celery and our own reading raise over an envelope that is none. Not: a server that is away.
RUBBISH = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, redis.DataError)


def guard_reading(channel: Any, keep: Callable[[str], None]) -> None:
    """Make a channel of the transport skip what it cannot read. It is off its queue by then, and `keep` is told why.

    The channel looks up what reads a reply of its server in `handlers`, so that it may be wrapped there.
    """
    read = channel.handlers["BRPOP"]

    def guarded(*args: Any, **options: Any) -> Any:
        try:
            return read(*args, **options)
        except RUBBISH as error:
            keep(f"it is no message: {type(error).__name__}: {error}"[:300])
            return True

    channel.handlers["BRPOP"] = guarded


def text_of(value: Any) -> str:
    """Return anything as text, to be kept and looked at."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def acknowledge(message: Any) -> None:
    """Take a message off the transport's books, whatever its tag is."""
    try:
        message.ack_log_error(log, (redis.RedisError, OSError))
    except RUBBISH as error:
        log.error("a foreign message cannot be acknowledged: %s", error)


def watch_ack(message: Any) -> None:
    """Pass the crash points of a message, where there are any."""
    who, acknowledged = ".".join(message.headers["task"].split(".")[1:-1]), message.ack_log_error

    def watched(*args: Any, **options: Any) -> None:
        crash.point("ack.before", who)
        acknowledged(*args, **options)
        crash.point("ack.after", who)

    message.ack_log_error = watched
    crash.point("take", who)
