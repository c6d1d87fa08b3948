"""Redis as hundreds of calls of one process use it: a few connections, some patience, and a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import MaxConnectionsError

_T = TypeVar("_T")

#: Commands under way at once by one part of this package: redis-py's pool refuses what is beyond its limit.
AT_ONCE = 20

#: Seconds for one command, all tries together.
PATIENCE = 3.0


class Link:
    """Runs commands: not more than a few at once, and again when a connection broke or none was free."""

    def __init__(self, at_once: int = AT_ONCE, patience: float = PATIENCE) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._patience = patience

    async def run(self, command: Callable[[], Awaitable[_T]]) -> _T:
        """Run a command that may be run twice.

        Raises:
            RedisError, OSError: Redis is away (TimeoutError, an OSError, when it does not answer in time).
        """
        async with self._places, asyncio.timeout(self._patience):
            broken = 0
            while True:
                try:
                    return await command()
                except MaxConnectionsError:
                    await asyncio.sleep(0.02)
                except NoConnection:
                    broken += 1
                    if broken > 2:
                        raise
                    await asyncio.sleep(0.03)
