"""Scripts of many calls in one round trip: what comes up while one is under way goes with the next."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import redis.asyncio
from redis.exceptions import NoScriptError, RedisError

#: Scripts in one round trip at most: the server shall not be held up by one client.
MOST = 200


@dataclass(slots=True)
class _Run:
    script: Any
    keys: list[str]
    args: tuple[Any, ...]
    future: asyncio.Future[Any]


class Together:
    """Runs registered scripts of one client, a round trip at a time. Used from one loop."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._client = client
        self._waiting: list[_Run] = []
        self._sending: asyncio.Task[None] | None = None

    async def run(self, script: Any, keys: list[str], *args: Any) -> Any:
        """Return a script's reply.

        Raises:
            RedisError, OSError: as the client does; all of a round trip get it, and each may run again.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_Run(script, keys, args, future))
        if self._sending is None or self._sending.done():
            self._sending = loop.create_task(self._send())
        return await future

    async def _send(self) -> None:
        while self._waiting:
            runs, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            try:
                await self._round(runs)
            except BaseException as error:
                for run in runs:
                    if not run.future.done():
                        run.future.set_exception(error if isinstance(error, Exception) else OSError(str(error)))
                if not isinstance(error, Exception):
                    raise

    async def _round(self, runs: list[_Run]) -> None:
        if len(runs) == 1:
            _tell(runs[0], await runs[0].script(keys=runs[0].keys, args=runs[0].args))
            return
        pipe = self._client.pipeline(transaction=False)
        for run in runs:
            pipe.evalsha(run.script.sha, len(run.keys), *run.keys, *run.args)
        for run, reply in zip(runs, await pipe.execute(raise_on_error=False), strict=True):
            if isinstance(reply, NoScriptError):  # the server was started anew: `script` loads it
                try:
                    reply = await run.script(keys=run.keys, args=run.args)
                except RedisError as error:
                    reply = error
            _tell(run, reply)


def _tell(run: _Run, reply: Any) -> None:
    if run.future.done():
        return  # who asked has gone
    if isinstance(reply, Exception):
        run.future.set_exception(reply)
    else:
        run.future.set_result(reply)
