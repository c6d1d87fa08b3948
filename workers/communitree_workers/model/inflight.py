"""No call paid twice: results by key for a set time, and equal calls in flight wait for one.

Within a process the waiting is a future; between processes a lease in Redis that its owner renews. An owner that dies
blocks the others no longer than its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson
import redis.asyncio
from redis.exceptions import RedisError

from communitree_shared import clock
from communitree_shared.errors import BudgetReached, Cancelled, DeadlinePassed
from communitree_workers.model.chat import CallContext
from communitree_workers.model.link import Link
from communitree_workers.model.together import Together

#: Stores the value unless a faster owner did, and gives the lease back if it is still ours.
_FINISH = """
if ARGV[2] ~= '' then redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
"""

#: {value, 0} where there is one, {false, 1} when the lease is ours now, {false, 0} when another has it: in one step, so
#: that nobody takes the lease of a call that ended a moment ago.
_TAKE = """
local value = redis.call('GET', KEYS[1])
if value then return {value, 0} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {false, 1} end
return {false, redis.call('GET', KEYS[2]) == ARGV[1] and 1 or 0}
"""

_RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""

#: These end one caller's wait, not the work: whoever waits for it takes it up.
_OF_THE_CALLER = (Cancelled, DeadlinePassed, BudgetReached, asyncio.CancelledError)


def result_key(*parts: Any) -> str:
    """Return the key of a result: the hash of all that it depends on (batch, question, prompt, model), JSON values."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(slots=True)
class _Lease:
    """`found`: the value, if there was one. `held`: whether the right to make it is still ours."""

    token: str
    found: bytes | None
    held: bool


class CallCache:
    """Results of calls, by tenant and key. Without Redis, or while it is away, equal calls in flight are joined."""

    def __init__(self, client: redis.asyncio.Redis | None, key_prefix: str, *, lease: float = 15.0) -> None:
        self._prefix = key_prefix.rstrip(":")
        self._lease = lease
        self._running: dict[str, asyncio.Future[bytes | None]] = {}
        # Round trips are shared, so a place costs no connection.
        self._link = Link(at_once=1000)
        self._together = Together(client) if client is not None else None
        self._take_script: Any = client.register_script(_TAKE) if client is not None else None
        self._finish: Any = client.register_script(_FINISH) if client is not None else None
        self._renew: Any = client.register_script(_RENEW) if client is not None else None

    async def cached(
        self, key: str, ttl: float, compute: Callable[[], Awaitable[Any]],
        *, tenant: str = "default", enabled: bool = True, context: CallContext | None = None,
    ) -> tuple[Any, bool]:  # fmt: skip
        """Return a key's value, and whether it was made elsewhere.

        The value is JSON; None is never stored. An error of `compute` is stored neither: those of this process who wait
        get it too, unless it was the caller's own end (cancel, deadline, budget), then one of them computes.

        `ttl`: seconds. `enabled` False: compute, look nothing up. `context`: whose cancel and deadline end the wait.
        """
        if not enabled:
            return await compute(), False
        name = f"{self._prefix}:cache:{tenant}:{key}"
        while (running := self._running.get(name)) is not None:
            raw = await _outcome(running, context)
            if raw is not None:
                return orjson.loads(raw), True
        future: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._running[name] = future
        outcome: bytes | None = None
        try:
            async with self._leased(name, context) as lease:
                if lease.found is not None:
                    outcome = lease.found
                    return orjson.loads(lease.found), True
                value = await compute()
                if value is not None:
                    outcome = orjson.dumps(value)
                    await self._store(name, lease, outcome, ttl)
                return value, False
        except Exception as error:
            if not isinstance(error, _OF_THE_CALLER):
                future.set_exception(error)
                future.exception()  # seen: nobody may be waiting
            raise
        finally:
            del self._running[name]
            if not future.done():
                future.set_result(outcome)

    @contextlib.asynccontextmanager
    async def _leased(self, name: str, context: CallContext | None) -> AsyncIterator[_Lease]:
        """Wait until there is a value, or the lease to make it is ours. Without Redis: ours at once."""
        token = uuid.uuid4().hex
        found, ours = await self._take(name, token, context)
        lease = _Lease(token, found, ours)
        keeper = asyncio.create_task(self._keep(name, token)) if ours else None
        try:
            yield lease
        finally:
            if keeper is not None:
                keeper.cancel()
            if lease.held:
                await self._store(name, lease, b"", 0)

    async def _take(self, name: str, token: str, context: CallContext | None) -> tuple[bytes | None, bool]:
        if self._take_script is None:
            return None, False
        pause = 0.03
        while True:
            try:
                found, ours = await self._run(self._take_script, [name, f"{name}:lease"], token, self._milliseconds)
                if found is not None:
                    return found if isinstance(found, bytes) else str(found).encode(), False
                if ours:
                    return None, True
            except (RedisError, OSError):
                return None, False
            _still_wanted(context)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.5)

    async def _store(self, name: str, lease: _Lease, value: bytes, ttl: float) -> None:
        if self._finish is not None:
            with contextlib.suppress(RedisError, OSError):
                keys = [name, f"{name}:lease"]
                await self._run(self._finish, keys, lease.token, value, max(1, int(ttl * 1000)))
                lease.held = False

    @property
    def _milliseconds(self) -> int:
        return int(self._lease * 1000)

    async def _run(self, script: Any, keys: list[str], *args: Any) -> Any:
        together = self._together
        assert together is not None
        return await self._link.run(lambda: together.run(script, keys, *args))

    async def _keep(self, name: str, token: str) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            with contextlib.suppress(RedisError, OSError):
                await self._run(self._renew, [f"{name}:lease"], token, self._milliseconds)


async def _outcome(running: asyncio.Future[bytes | None], context: CallContext | None) -> bytes | None:
    """Wait for an equal call of this process; None when it ended without a value."""
    while not running.done():
        _still_wanted(context)
        await asyncio.wait({running}, timeout=0.5 if context is not None else None)
    return running.result()


def _still_wanted(context: CallContext | None) -> None:
    if context is None:
        return
    if context.is_cancelled():
        raise Cancelled("The job was cancelled.")
    if context.deadline is not None and clock.now() >= context.deadline:
        raise DeadlinePassed("The deadline passed while an equal call was under way.")
