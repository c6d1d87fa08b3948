"""Scripts for many at once: what comes up while a round trip is under way goes with the next, each script in one call.

A script that is run here takes the keys and arguments of any number of items, one item after the other, and returns a
list with one reply for each of them. Most of what a command costs, here and in the server, is the call.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from communitree_workers.model.link import Link

#: Items in one round trip at most: the server shall not be held up by one client.
MOST = 200


@dataclass(slots=True)
class _Item:
    script: Any
    keys: list[str]
    args: tuple[Any, ...]
    future: asyncio.Future[Any]


class Together:
    """Runs registered scripts, a round trip at a time. Used from one loop."""

    def __init__(self) -> None:
        self._waiting: list[_Item] = []
        self._sending: asyncio.Task[None] | None = None
        self._link = Link(1)

    async def run(self, script: Any, keys: list[str], *args: Any) -> Any:
        """Return a script's reply for one item.

        Raises:
            RedisError, OSError: Redis is away; all items of a round trip get it, and each may run again.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_Item(script, keys, args, future))
        if self._sending is None or self._sending.done():
            self._sending = loop.create_task(self._send())
        return await future

    async def _send(self) -> None:
        while self._waiting:
            items, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            groups: dict[int, list[_Item]] = {}
            for item in items:
                groups.setdefault(id(item.script), []).append(item)
            for group in groups.values():
                await self._round(group)

    async def _round(self, items: list[_Item]) -> None:
        keys = [key for item in items for key in item.keys]
        args = [arg for item in items for arg in item.args]
        try:
            replies = await self._link.run(lambda: items[0].script(keys=keys, args=args))
        except BaseException as error:
            for item in items:
                if not item.future.done():
                    item.future.set_exception(error if isinstance(error, Exception) else OSError(str(error)))
            if not isinstance(error, Exception):
                raise
            return
        for item, reply in zip(items, replies, strict=True):
            if not item.future.done():  # else who asked has gone
                item.future.set_result(reply)
