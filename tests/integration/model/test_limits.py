"""The shared limits on a real server: several limiters stand for several processes, as each has a name of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from communitree_shared.redis_server.connect import async_redis_client
from communitree_shared.settings import Settings
from communitree_workers.model.limits import limiter as module
from communitree_workers.model.limits.limiter import Limiter, Limits
from communitree_workers.model.limits.state import BULK
from support.stalls import Stalls, stalls
from support.valkey import running_valkey

_numbers = itertools.count()


@pytest.fixture
async def shared(valkey_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    client = redis.asyncio.Redis.from_url(valkey_url, socket_timeout=None)
    yield client
    await client.aclose()


MakeLimiter = Callable[..., Limiter]


@pytest.fixture
async def process(shared: redis.asyncio.Redis) -> AsyncIterator[MakeLimiter]:
    """Makes what one process has; all are closed when the test ends."""
    made: list[Limiter] = []

    def make(client: redis.asyncio.Redis | None = None) -> Limiter:
        made.append(Limiter(client or shared, "communitree"))
        return made[-1]

    yield make
    for limiter in made:
        await limiter.close()


@pytest.fixture
async def still(shared: redis.asyncio.Redis) -> AsyncIterator[Stalls]:
    """How long the machine stood still: a lower bound of what was let through is lower by that."""
    async with stalls(shared.ping) as found:
        yield found


@pytest.fixture
def name() -> str:
    return f"endpoint-{next(_numbers)}-{time.time_ns()}"


class Worker:
    """Calls that take `seconds`, as fast as the limits let them; `starts` are the times at which they began."""

    def __init__(
        self, limiter: Limiter, limits: Limits, *, seconds: float = 0.0, tokens: int = 0, used: int | None = None
    ) -> None:
        self.limiter, self.limits = limiter, limits
        self.seconds, self.tokens, self.used = seconds, tokens, used
        self.starts: list[tuple[float, str, str]] = []
        self.in_flight = self.peak = 0

    async def call(self, tenant: str = "t", job: str = "j") -> None:
        permit = await self.limiter.acquire(self.limits, (tenant, job), self.tokens)
        self.starts.append((time.monotonic(), tenant, job))
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        await asyncio.sleep(self.seconds)
        self.in_flight -= 1
        permit.settle(self.tokens if self.used is None else self.used)


async def run(seconds: float, *calls: asyncio.Task[None]) -> None:
    """Let calls run for a time, then stop what still waits."""
    await asyncio.wait(calls, timeout=seconds)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


def lost(still: Stalls) -> float:
    """Return the seconds that stalls may have cost: one that looks like a Redis that is away costs more than itself."""
    return still.total + (module.AWAY + 1.0 if still.longest > 0.8 * module.PATIENCE else 0.0)


def spawn(worker: Worker, n: int, tenant: str = "t", job: str = "j") -> list[asyncio.Task[None]]:
    return [asyncio.create_task(worker.call(tenant, job)) for _ in range(n)]


async def test_three_processes_keep_one_limit_and_never_idle(process: MakeLimiter, name: str, still: Stalls) -> None:
    limits = Limits(name, requests_per_minute=3000)
    workers = [Worker(process(), limits, seconds=0.01) for _ in range(3)]
    started = time.monotonic()
    await run(4.0, *(call for worker in workers for call in spawn(worker, 300)))
    times = sorted(start - started for worker in workers for start, _, _ in worker.starts if start - started < 4.0)
    assert 0.95 * 200 - 50 * lost(still) <= len(times) <= 1.05 * 200 + 15
    assert all(worker.starts for worker in workers)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert max(gaps) < 0.35 + lost(still)


async def test_tokens_are_reserved_and_settled(process: MakeLimiter, name: str, still: Stalls) -> None:
    limits = Limits(name, tokens_per_minute=60_000)  # 1,000 a second
    worker = Worker(process(), limits, tokens=500, used=100)
    started = time.monotonic()
    await run(3.0, *spawn(worker, 200))
    # By the estimate it were 6 in three seconds; each gives 400 of its 500 tokens back.
    n = sum(start - started < 3.0 for start, _, _ in worker.starts)
    assert 20 - 10 * lost(still) <= n <= 36


async def test_a_call_larger_than_the_limit_starts_and_is_paid_off(
    process: MakeLimiter, name: str, still: Stalls
) -> None:
    worker = Worker(process(), Limits(name, tokens_per_minute=60_000), tokens=1500)
    await run(2.6, *spawn(worker, 4))
    first, *later = (start for start, _, _ in worker.starts)
    assert later or lost(still) > 0.5
    for n, start in enumerate(later, 1):  # each owes 500 more tokens than a second gives
        assert 0.5 + 1.5 * (n - 1) - 0.1 <= start - first <= 0.5 + 1.5 * n + lost(still)


async def test_calls_in_flight_are_bounded_over_all_processes(process: MakeLimiter, name: str, still: Stalls) -> None:
    limits = Limits(name, concurrency=10)
    workers = [Worker(process(), limits, seconds=0.1) for _ in range(3)]
    peak = 0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, sum(worker.in_flight for worker in workers))
            await asyncio.sleep(0.005)

    watcher = asyncio.create_task(watch())
    started = time.monotonic()
    await asyncio.gather(*(call for worker in workers for call in spawn(worker, 50)))
    watcher.cancel()
    assert peak == 10
    assert time.monotonic() - started < 1.5 * 150 / 10 * 0.1 + 1.0 + 2 * lost(still)


async def test_a_dead_process_gives_its_places_back(
    process: MakeLimiter, name: str, monkeypatch: pytest.MonkeyPatch, still: Stalls
) -> None:
    monkeypatch.setattr(module, "LEASE", 1000)
    limits = Limits(name, concurrency=2)
    dead = process()
    for _ in range(2):
        await dead.acquire(limits, ("t", "j"), 0)
    for gate in dead._gates.values():
        assert gate._pump is not None
        gate._pump.cancel()
    started = time.monotonic()
    permit = await process().acquire(limits, ("t", "j"), 0)
    assert 0.5 < time.monotonic() - started < 2.0 + lost(still)
    permit.settle(0)


async def test_a_429_stops_all_processes_then_they_come_back_slowly(
    process: MakeLimiter, name: str, still: Stalls
) -> None:
    limits = Limits(name)
    one, other = process(), process()
    permits = [await one.acquire(limits, ("t", "j"), 0) for _ in range(20)]
    started = time.monotonic()
    for permit in permits:
        permit.settle(0, cool_down=1.0, ok=False)
    await asyncio.sleep(0.1)
    worker = Worker(other, limits, seconds=0.2)
    running = asyncio.create_task(run(30.0, *spawn(worker, 200)))
    while not worker.starts:
        await asyncio.sleep(0.01)
    first = worker.starts[0][0] - started
    await asyncio.sleep(0.5)
    running.cancel()
    assert 0.95 <= first <= 1.6 + lost(still)
    assert worker.peak < 20
    await one.close()


async def test_tenants_share_evenly_however_many_calls_each_has(process: MakeLimiter, name: str) -> None:
    limits = Limits(name, requests_per_minute=3000)
    workers = [Worker(process(), limits) for _ in range(2)]
    calls = [
        *spawn(workers[0], 300, "big", "a"),
        *spawn(workers[0], 100, "big", "b"),
        *spawn(workers[1], 100, "small", "c"),
    ]
    await run(3.0, *calls)
    by_tenant = Counter(tenant for worker in workers for _, tenant, _ in worker.starts)
    by_job = Counter(job for worker in workers for _, _, job in worker.starts)
    assert abs(by_tenant["big"] - by_tenant["small"]) < 0.25 * by_tenant["small"]
    assert abs(by_job["a"] - by_job["b"]) < 0.35 * by_job["b"]


async def test_bulk_calls_stand_back_where_others_wait_and_have_all_where_none_does(
    process: MakeLimiter, name: str
) -> None:
    limits = Limits(name, requests_per_minute=3000)
    workers = [Worker(process(), limits) for _ in range(2)]
    bulk = [call for worker in workers for call in spawn(worker, 400, "t", BULK)]
    await asyncio.sleep(1.0)
    alone = sum(len(worker.starts) for worker in workers)
    now = [*spawn(workers[0], 200, "t", "a"), *spawn(workers[1], 200, "t", "b")]
    await run(2.0, *bulk, *now)
    jobs = Counter(job for worker in workers for _, _, job in worker.starts)
    shared = jobs[BULK] - alone
    assert alone > 20
    assert 0 < shared < 0.4 * min(jobs["a"], jobs["b"])


async def test_a_late_comer_waits_for_nobodys_backlog(process: MakeLimiter, name: str, still: Stalls) -> None:
    worker = Worker(process(), Limits(name, requests_per_minute=1200))
    backlog = spawn(worker, 200, "early")
    await asyncio.sleep(1.0)
    started = time.monotonic()
    await asyncio.wait_for(worker.call("late"), 20)
    assert time.monotonic() - started < 0.6 + lost(still)
    await run(0.0, *backlog)


async def test_a_deadline_ends_the_wait(process: MakeLimiter, name: str) -> None:
    limiter, limits = process(), Limits(name, concurrency=1)
    permit = await limiter.acquire(limits, ("t", "j"), 0)
    with pytest.raises(TimeoutError):
        await limiter.acquire(limits, ("t", "j"), 0, time.time() + 0.3)
    permit.settle(0)
    (await asyncio.wait_for(limiter.acquire(limits, ("t", "j"), 0), 1)).settle(0)
    await limiter.close()


async def test_every_key_has_an_end(process: MakeLimiter, shared: redis.asyncio.Redis, name: str) -> None:
    worker = Worker(process(), Limits(name, requests_per_minute=6000, tokens_per_minute=10**6, concurrency=9))
    await asyncio.gather(*spawn(worker, 20))
    await worker.limiter.close()
    keys = [key async for key in shared.scan_iter(f"communitree:limits:{name}*")]
    assert len(keys) >= 4
    assert all([await shared.pttl(key) > 0 for key in keys])
    assert all(name.encode() in key for key in keys)


async def test_without_redis_there_is_still_a_limit(process: MakeLimiter, tmp_path: Path, name: str) -> None:
    with running_valkey(tmp_path) as valkey:
        client = redis.asyncio.Redis.from_url(valkey.url, socket_timeout=1, socket_connect_timeout=1)
        limits = Limits(name, requests_per_minute=3000)
        workers = [Worker(process(client), limits) for _ in range(3)]
        await asyncio.gather(*(call for worker in workers for call in spawn(worker, 3)))
        valkey.stop()
        for worker in workers:
            worker.starts.clear()
        started = time.monotonic()
        calls = [call for worker in workers for call in spawn(worker, 200)]
        await asyncio.wait(calls, timeout=3.0)
        n = sum(len(worker.starts) for worker in workers)
        assert 40 <= n <= 1.05 * 50 * (time.monotonic() - started) + 50
        valkey.start()
        before = time.monotonic()
        await asyncio.wait(calls, timeout=4.5)
        late = [start for worker in workers for start, _, _ in worker.starts if start - before > 2.5]
        assert len(late) > 60
        await run(0.0, *calls)
        await client.aclose()


async def test_redis_never_reached(process: MakeLimiter, name: str) -> None:
    client = redis.asyncio.Redis.from_url("redis://127.0.0.1:9/0", socket_connect_timeout=0.2)
    worker = Worker(process(client), Limits(name), seconds=0.2)
    await asyncio.gather(*spawn(worker, 40))
    assert worker.peak == 16
    await client.aclose()


async def test_a_cancellation_that_was_swallowed_does_not_keep_it_from_closing(name: str) -> None:
    """asyncio.wait_for of Python 3.11, which redis-py uses, does so where what it waits for ends in that moment."""
    asked = asyncio.Event()

    class Swallows:
        def register_script(self, source: str) -> Callable[..., Awaitable[list[int]]]:
            return self.run

        async def run(self, **_: object) -> list[int]:
            if asked.is_set():
                return [0, 1, 0]
            asked.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(30)
            return [0, 1, 0, 0]  # one call may start

    client: Any = Swallows()
    limiter = Limiter(client, "communitree")
    call = asyncio.create_task(limiter.acquire(Limits(name, concurrency=1), ("t", "j"), 0))
    await asked.wait()
    closing = asyncio.create_task(limiter.close())
    closed, _ = await asyncio.wait({closing}, timeout=10)
    call.cancel()
    closing.cancel()
    await asyncio.gather(call, closing, return_exceptions=True)
    assert closed


async def test_a_command_to_redis_can_be_cancelled_at_any_moment(settings: Settings) -> None:
    client = async_redis_client(settings)
    await client.ping()

    async def work() -> bool:
        while True:
            await client.ping()
            if (task := asyncio.current_task()) and task.cancelling():
                return False

    ended = []
    for n in range(200):
        task = asyncio.create_task(work())
        for _ in range(n % 12):
            await asyncio.sleep(0)
        task.cancel()
        ended += await asyncio.gather(task, return_exceptions=True)
    await client.aclose()
    assert {type(end) for end in ended} == {asyncio.CancelledError}
