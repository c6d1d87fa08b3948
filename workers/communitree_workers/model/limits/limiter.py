"""Every try of a model call passes here: `acquire` waits until it may start, the permit's `settle` says what it used.

A process asks Redis for all its waiting calls at once, by (tenant, job), so five hundred waiting calls cost a few small
scripts a second and not five hundred. Fairness: the script grants the least served tenant first, and within a tenant
the least served job, over all processes; a process whose jobs are ahead steps back for a moment when another has one
behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.resources
import logging
import time
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import redis.asyncio
from redis.exceptions import RedisError

from communitree_shared import clock
from communitree_workers.model.limits.state import FEWEST_PROCESSES, SLACK, Decision, Demand, Limits, LocalState
from communitree_workers.model.link import Link

__all__ = ["Limiter", "Limits", "Permit"]

_log = logging.getLogger(__name__)

#: Milliseconds: how long a silent process's calls in flight still count; how long state is kept; who asked lately.
LEASE, TTL, KEEP = 15_000, 3_600_000, 600

#: Seconds: between two looks while calls wait; between two signs of life while calls run; before Redis is tried again.
LOOK, BEAT, AWAY = 0.2, 4.0, 2.0

#: Seconds between the end of a call and the look it causes.
BREATH = 0.004

#: Seconds to wait for Redis before the local limits decide.
PATIENCE = 2.0

#: Grants in one step, and token sizes that a flow names ahead.
MOST, HEADS = 64, 16

Flow = tuple[str, str]


class Permit:
    """The right to one call. `settle` must be called once, whatever came of it."""

    __slots__ = ("_gate", "tokens")

    def __init__(self, gate: _Gate, tokens: int) -> None:
        self._gate: _Gate | None = gate
        self.tokens = tokens

    def settle(self, used: int, *, cool_down: float = 0.0, ok: bool = True) -> None:
        """Give the place back. `used`: real tokens; `cool_down`: seconds for which the endpoint wants no calls."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.settle(used - self.tokens, cool_down, ok)


@dataclass(slots=True)
class _Waiter:
    future: asyncio.Future[Permit]
    tokens: int


class Limiter:
    """The limits of all endpoints this process calls."""

    def __init__(self, client: redis.asyncio.Redis | None, key_prefix: str) -> None:
        self._redis = client
        self._prefix = key_prefix
        self._gates: dict[str, _Gate] = {}
        self._script: Any = None
        if client is not None:
            source = importlib.resources.files(__package__) / "acquire.lua"
            self._script = client.register_script(source.read_text(encoding="utf-8"))

    async def acquire(self, limits: Limits, flow: Flow, tokens: int, deadline: float | None = None) -> Permit:
        """Wait until a call of about so many tokens may start.

        Raises:
            TimeoutError: the deadline (unix seconds) came first.
        """
        gate = self._gates.get(limits.identity)
        if gate is None:
            gate = self._gates[limits.identity] = _Gate(
                limits, self._script, f"{self._prefix}:limits:{limits.identity}"
            )
        return await gate.acquire(flow, tokens, deadline)

    async def close(self) -> None:
        """Stop looking, and tell Redis that nothing of this process is in flight."""
        for gate in self._gates.values():
            await gate.close()
        self._gates.clear()


class _Gate:
    """The waiting calls of this process at one endpoint, and the task that asks for them."""

    def __init__(self, limits: Limits, script: Any, key: str) -> None:
        self._limits = limits
        self._script = script
        self._keys = [f"{key}:{part}" for part in ("state", "inflight", "alive", "turns", "asked")]
        self._process = uuid.uuid4().hex[:12]
        self._flows: dict[Flow, deque[_Waiter]] = {}
        self._in_flight = 0
        self._delta = 0.0
        self._ok = 0
        self._cool = 0.0
        self._limited = False  # a 429 was seen: the script then wants to hear of successes too
        self._local = LocalState()
        self._processes = 1
        self._away_until = 0.0
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._closed = False
        self._link = Link(1, PATIENCE)
        self._pump: asyncio.Task[None] | None = None

    async def acquire(self, flow: Flow, tokens: int, deadline: float | None) -> Permit:
        waiter = _Waiter(asyncio.get_running_loop().create_future(), tokens)
        self._flows.setdefault(flow, deque()).append(waiter)
        self._look()
        try:
            if deadline is None:
                return await waiter.future
            async with asyncio.timeout(max(0.0, deadline - clock.now())):
                return await waiter.future
        except BaseException:
            if waiter.future.done() and not waiter.future.cancelled():
                waiter.future.result().settle(0, ok=False)  # granted in the very moment of giving up
            else:
                waiter.future.cancel()
            raise

    def settle(self, delta: float, cool_down: float, ok: bool) -> None:
        self._in_flight -= 1
        if self._limits.tokens_per_minute:
            self._delta += delta
        self._ok += ok
        self._cool = max(self._cool, cool_down)
        if cool_down:
            self._limited = True
        if self._flows or cool_down or self._limits.any or self._limited:
            self._ended.set()
            self._look()

    async def close(self) -> None:
        self._closed = True
        if self._pump is not None:
            self._pump.cancel()
            # asyncio.wait_for of Python 3.11, which redis-py sends with, may swallow that: the pump looks itself, too.
            self._wake.set()
            self._ended.set()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pump
        if self._script is not None and (self._limits.any or self._delta):
            self._in_flight = 0
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._ask([], self._delta)

    # -- the pump

    def _look(self) -> None:
        self._wake.set()
        if (self._pump is None or self._pump.done()) and not self._closed:
            self._pump = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Ask while calls wait or run under a limit; one task for all of them."""
        while not self._closed:
            self._wake.clear()
            self._ended.clear()
            flows = self._demand()
            names = list(self._flows)
            decision = await self._decide(flows)
            self._grant(names, decision.grants)
            full = len(decision.grants) >= MOST
            if self._flows:
                pause = 0.0 if full else min(max(decision.wait / 1000, 0.002), LOOK)
            elif self._in_flight > 0 and (self._limits.any or self._limited):
                pause = BEAT
            elif self._delta or self._cool:
                pause = 0.02
            elif self._wake.is_set():
                pause = 0.0
            else:
                return
            # While calls wait, a new one cannot start before them; one that ends may make room at any time.
            event = self._ended if self._flows and not full else self._wake
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await event.wait()
            if event is self._ended and event.is_set():
                await asyncio.sleep(BREATH)  # others end with it: one look for all of them

    def _demand(self) -> list[Demand]:
        for flow in [flow for flow, waiters in self._flows.items() if not _alive(waiters)]:
            del self._flows[flow]
        return [
            (tenant, job, len(waiters), [waiter.tokens for waiter in _first(waiters, HEADS)])
            for (tenant, job), waiters in self._flows.items()
        ]

    def _grant(self, names: list[Flow], grants: list[int]) -> None:
        for index in grants:
            waiters = self._flows.get(names[index])
            waiter = waiters.popleft() if waiters and _alive(waiters) else None
            if waiter is None:
                continue  # it gave up while we asked; its place in flight is not taken, its turn is lost
            self._in_flight += 1
            waiter.future.set_result(Permit(self, waiter.tokens))
        for flow in set(names):
            if flow in self._flows and not _alive(self._flows[flow]):
                del self._flows[flow]

    async def _decide(self, flows: list[Demand]) -> Decision:
        now = time.monotonic()
        if self._script is not None and now >= self._away_until:
            delta, ok, cool = self._delta, self._ok, self._cool
            self._delta, self._ok, self._cool = 0.0, 0, 0.0
            try:
                return await self._ask(flows, delta, ok, cool)
            except (RedisError, OSError, TimeoutError) as error:
                self._delta, self._cool = self._delta + delta, max(self._cool, cool)
                self._away_until = time.monotonic() + AWAY
                _log.warning(
                    "Redis does not answer (%s); calls go on within a local share of the limits", type(error).__name__
                )
        limits = self._limits if self._script is None else self._limits.share(max(FEWEST_PROCESSES, self._processes))
        now = time.monotonic() * 1000
        self._local.settle(limits, self._delta, self._cool * 1000, now)
        self._delta, self._ok, self._cool = 0.0, 0, 0.0
        return self._local.decide(limits, flows, self._in_flight, now, MOST)

    async def _ask(self, flows: list[Demand], delta: float = 0.0, ok: int = 0, cool: float = 0.0) -> Decision:
        limits = self._limits
        payload = {
            "p": self._process, "inflight": self._in_flight, "delta": delta, "ok": ok, "cool": cool * 1000,
            "rpm": limits.requests_per_minute, "tpm": limits.tokens_per_minute, "conc": limits.concurrency,
            "lease": LEASE, "ttl": TTL, "slack": SLACK, "most": MOST, "keep": KEEP, "flows": flows,
        }  # fmt: skip
        wait, processes, adapting, *grants = await self._link.run(
            lambda: self._script(keys=self._keys, args=[orjson.dumps(payload)])
        )
        self._processes = int(processes)
        self._limited = bool(adapting)
        return Decision([int(index) for index in grants], float(wait), int(processes))


def _alive(waiters: deque[_Waiter]) -> bool:
    """Drop those at the head who gave up; whether anybody waits."""
    while waiters and waiters[0].future.done():
        waiters.popleft()
    return bool(waiters)


def _first(waiters: deque[_Waiter], n: int) -> Iterator[_Waiter]:
    return (waiters[i] for i in range(min(n, len(waiters))))
