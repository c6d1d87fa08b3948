"""No call paid twice: results by key for a set time, and equal calls in flight wait for one.

Within a process the waiting is a future; between processes a lease in Redis that its owner renews. An owner that dies
blocks the others no longer than its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import redis.asyncio
from redis.exceptions import RedisError

from communitree_shared import clock
from communitree_shared.errors import DEADLINE_HINT, BudgetReached, Cancelled, DeadlinePassed
from communitree_workers.model.chat import CallContext, CutReply
from communitree_workers.model.together import Together

#: Of each item: stores the value unless a faster owner did, and gives the lease back if it is still ours.
_FINISH = """
local out = {}
for i = 1, #KEYS / 2 do
  local key, lease = KEYS[2 * i - 1], KEYS[2 * i]
  local token, value, ttl = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  if value ~= '' then redis.call('SET', key, value, 'NX', 'PX', ttl) end
  if redis.call('GET', lease) == token then redis.call('DEL', lease) end
  out[i] = 1
end
return out
"""

#: Of each item: {value, 0} where there is one, {false, 1} when the lease is ours now, {false, 0} when another has it.
#: In one step, so that nobody takes the lease of a call that ended a moment ago.
_TAKE = """
local out = {}
for i = 1, #KEYS / 2 do
  local token = ARGV[2 * i - 1]
  local value = redis.call('GET', KEYS[2 * i - 1])
  local ours = not value and (redis.call('SET', KEYS[2 * i], token, 'NX', 'PX', ARGV[2 * i])
    or redis.call('GET', KEYS[2 * i]) == token)
  out[i] = {value, ours and 1 or 0}
end
return out
"""

_RENEW = """
local out = {}
for i = 1, #KEYS do
  out[i] = 0
  if redis.call('GET', KEYS[i]) == ARGV[2 * i - 1] then out[i] = redis.call('PEXPIRE', KEYS[i], ARGV[2 * i]) end
end
return out
"""

#: These end one caller's wait, not the work: whoever waits for it takes it up.
_OF_THE_CALLER = (Cancelled, DeadlinePassed, BudgetReached, asyncio.CancelledError)


def result_key(*parts: Any) -> str:
    """Return the key of a result: the hash of all that it depends on (batch, question, prompt, model), JSON values."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


class CallCache:
    """Results of calls, by tenant and key. Without Redis, or while it is away, equal calls in flight are joined."""

    def __init__(self, client: redis.asyncio.Redis | None, key_prefix: str, *, lease: float = 15.0) -> None:
        self._prefix = key_prefix.rstrip(":")
        self._lease = lease
        self._running: dict[str, asyncio.Future[bytes | None]] = {}
        self._together = Together()
        self._held: dict[str, str] = {}  # by name, the tokens of the leases that are ours
        self._keeper: asyncio.Task[None] | None = None
        self._take_script: Any = client.register_script(_TAKE) if client is not None else None
        self._finish: Any = client.register_script(_FINISH) if client is not None else None
        self._renew: Any = client.register_script(_RENEW) if client is not None else None

    async def cached(
        self, key: str, ttl: float, compute: Callable[[], Awaitable[Any]],
        *, tenant: str = "default", enabled: bool = True, context: CallContext | None = None,
    ) -> tuple[Any, bool]:  # fmt: skip
        """Return a key's value, and whether it was made elsewhere.

        The value is JSON; None is never stored, nor a reply that was cut, nor an error of `compute`: those of this
        process who wait get the error too, unless it was the caller's own end (cancel, deadline, budget), then one of
        them computes.

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
            found, token = await self._take(name, context)
            if found is not None:
                outcome = found
                return orjson.loads(found), True
            try:
                value = await compute()
                outcome = None if value is None or isinstance(value, CutReply) else orjson.dumps(value)
            except BaseException:
                await self._finished(name, token, b"", 0)
                raise
            await self._finished(name, token, outcome or b"", ttl)
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

    async def _take(self, name: str, context: CallContext | None) -> tuple[bytes | None, str]:
        """Wait until there is a value, or the lease to make it is ours (its token). Without Redis there is neither."""
        if self._take_script is None:
            return None, ""
        token, pause = uuid.uuid4().hex, 0.03
        while True:
            try:
                found, ours = await self._run(self._take_script, [name, f"{name}:lease"], token, self._milliseconds)
            except (RedisError, OSError):
                return None, ""
            if found is not None:
                return found if isinstance(found, bytes) else str(found).encode(), ""
            if ours:
                self._held[name] = token
                if self._keeper is None or self._keeper.done():
                    self._keeper = asyncio.create_task(self._keep())
                return None, token
            _still_wanted(context)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.5)

    async def _finished(self, name: str, token: str, value: bytes, ttl: float) -> None:
        """Store a value that was made (b"": there is none) and give the lease back."""
        self._held.pop(name, None)
        if self._finish is not None and (token or value):
            with contextlib.suppress(RedisError, OSError):
                await self._run(self._finish, [name, f"{name}:lease"], token, value, max(1, int(ttl * 1000)))

    @property
    def _milliseconds(self) -> int:
        return int(self._lease * 1000)

    async def _run(self, script: Any, keys: list[str], *args: Any) -> Any:
        return await self._together.run(script, keys, *args)

    async def _keep(self) -> None:
        """Renew the leases of all calls under way: one task for all of them."""
        while True:
            await asyncio.sleep(self._lease / 3)
            if not self._held:
                return
            renewals = [
                self._run(self._renew, [f"{name}:lease"], token, self._milliseconds)
                for name, token in self._held.items()
            ]
            with contextlib.suppress(RedisError, OSError):
                await asyncio.gather(*renewals)


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
        raise DeadlinePassed("The deadline passed while an equal call was under way.", hint=DEADLINE_HINT)
