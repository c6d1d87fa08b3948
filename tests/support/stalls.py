"""How long this machine, the loop and Redis stood still during a test: what no code can be blamed for."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

#: A round takes so many seconds on a quiet machine; what it takes beyond that is a stall.
_ROUND, _USUAL = 0.02, 0.06


class Stalls:
    """Seconds of all stalls together, and of the longest."""

    def __init__(self) -> None:
        self.total = self.longest = 0.0

    async def watch(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Go round for ever: a nap, and one command."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(_ROUND)
            await ask()
            lost = max(0.0, time.monotonic() - began - _USUAL)
            self.total += lost
            self.longest = max(self.longest, lost)


@contextlib.asynccontextmanager
async def stalls(ask: Callable[[], Awaitable[object]]) -> AsyncIterator[Stalls]:
    """Watch while the block runs; `ask` sends one command."""
    found = Stalls()
    watcher = asyncio.create_task(found.watch(ask))
    try:
        yield found
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
