from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio

from communitree_shared.errors import Cancelled, DeadlinePassed, ModelError, OutputCut
from communitree_workers.model.chat import CallContext, CutReply
from communitree_workers.model.inflight import CallCache, result_key


@pytest.fixture
async def shared(valkey_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    client = redis.asyncio.Redis.from_url(valkey_url, decode_responses=True)
    yield client
    await client.aclose()


@pytest.fixture
def key() -> str:
    return result_key("batch", time.time_ns())


class Work:
    def __init__(self, seconds: float = 0.05, value: Any = None, error: Exception | None = None) -> None:
        self.seconds, self.value, self.error = seconds, value if value is not None else {"points": [1, "二"]}, error
        self.done = 0

    async def __call__(self) -> Any:
        self.done += 1
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return self.value


async def test_computed_once_and_kept(shared: redis.asyncio.Redis, key: str) -> None:
    work = Work()
    one, other = CallCache(shared, "communitree"), CallCache(shared, "communitree")
    assert await one.cached(key, 60, work) == ({"points": [1, "二"]}, False)
    assert await one.cached(key, 60, work) == ({"points": [1, "二"]}, True)
    assert await other.cached(key, 60, work) == ({"points": [1, "二"]}, True)
    assert work.done == 1
    assert await other.cached(key, 60, work, tenant="another") == ({"points": [1, "二"]}, False)
    assert 0 < await shared.ttl(f"communitree:cache:default:{key}") <= 60
    assert not await shared.exists(f"communitree:cache:default:{key}:lease")


async def test_equal_calls_wait_for_one(shared: redis.asyncio.Redis, key: str) -> None:
    work = Work(0.3)
    caches = [CallCache(shared, "communitree") for _ in range(3)]
    found = await asyncio.gather(*(cache.cached(key, 60, work) for cache in caches for _ in range(10)))
    assert work.done == 1
    assert sorted(hit for _, hit in found) == [False] + [True] * 29
    found[1][0]["points"].append("mine")
    assert found[2][0] == {"points": [1, "二"]}


async def test_the_switch(shared: redis.asyncio.Redis, key: str) -> None:
    work = Work()
    cache = CallCache(shared, "communitree")
    await asyncio.gather(*(cache.cached(key, 60, work, enabled=False) for _ in range(3)))
    assert work.done == 3


async def test_a_failure_is_not_kept(shared: redis.asyncio.Redis, key: str) -> None:
    cache, bad = CallCache(shared, "communitree"), Work(error=ModelError("no"))
    results = await asyncio.gather(*(cache.cached(key, 60, bad) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(result, ModelError) for result in results)
    assert bad.done == 1
    good = Work()
    assert (await CallCache(shared, "communitree").cached(key, 60, good))[1] is False


async def test_none_is_not_kept(shared: redis.asyncio.Redis, key: str) -> None:
    cache = CallCache(shared, "communitree")

    async def nothing() -> None:
        return None

    assert await cache.cached(key, 60, nothing) == (None, False)
    assert await cache.cached(key, 60, nothing) == (None, False)


async def test_what_cannot_be_stored_gives_its_lease_back(shared: redis.asyncio.Redis, key: str) -> None:
    cache = CallCache(shared, "communitree")

    async def odd() -> object:
        return object()

    with pytest.raises(TypeError):
        await cache.cached(key, 60, odd)
    assert not await shared.exists(f"communitree:cache:default:{key}:lease")
    assert (await cache.cached(key, 60, Work()))[1] is False


async def test_one_callers_end_is_not_the_others(shared: redis.asyncio.Redis, key: str) -> None:
    cache, work = CallCache(shared, "communitree"), Work(0.2)
    first = asyncio.create_task(cache.cached(key, 60, Work(5.0)))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(cache.cached(key, 60, work))
    third = asyncio.create_task(
        cache.cached(key, 60, Work(0.2, error=None), context=CallContext(deadline=time.time() + 0.2))
    )
    await asyncio.sleep(0.05)
    with pytest.raises(DeadlinePassed):
        await third
    first.cancel()
    assert (await second)[1] is False
    assert work.done == 1

    async def cancelled() -> None:
        await asyncio.sleep(0.1)
        raise Cancelled("gone")

    leader = asyncio.create_task(cache.cached(key + "b", 60, cancelled))
    await asyncio.sleep(0.02)
    follower = asyncio.create_task(cache.cached(key + "b", 60, work))
    with pytest.raises(Cancelled):
        await leader
    assert await follower == (work.value, False)


async def test_a_dead_owner_blocks_for_its_lease_only(shared: redis.asyncio.Redis, key: str) -> None:
    await shared.set(f"communitree:cache:default:{key}:lease", "dead", px=700)
    started = time.monotonic()
    assert (await CallCache(shared, "communitree").cached(key, 60, Work()))[1] is False
    assert 0.5 < time.monotonic() - started < 2.0


async def test_a_living_owner_keeps_its_lease(shared: redis.asyncio.Redis, key: str) -> None:
    slow, quick = Work(1.5), Work()
    first = asyncio.create_task(CallCache(shared, "communitree", lease=0.6).cached(key, 60, slow))
    await asyncio.sleep(0.1)
    assert await CallCache(shared, "communitree", lease=0.6).cached(key, 60, quick) == (slow.value, True)
    assert (await first)[1] is False
    assert quick.done == 0


async def test_waiting_ends_with_the_job(shared: redis.asyncio.Redis, key: str) -> None:
    await shared.set(f"communitree:cache:default:{key}:lease", "another", px=5000)
    gone = asyncio.Event()
    wait = asyncio.create_task(
        CallCache(shared, "communitree").cached(key, 60, Work(), context=CallContext(cancelled=gone))
    )
    await asyncio.sleep(0.1)
    gone.set()
    with pytest.raises(Cancelled):
        await wait


async def test_without_redis_equal_calls_are_still_joined(key: str) -> None:
    work = Work(0.1)
    cache = CallCache(None, "communitree")
    await asyncio.gather(*(cache.cached(key, 60, work) for _ in range(5)))
    assert work.done == 1
    away = CallCache(redis.asyncio.Redis.from_url("redis://127.0.0.1:9/0"), "communitree")
    await asyncio.gather(*(away.cached(key, 60, work) for _ in range(5)))
    assert work.done == 2


def test_keys_depend_on_every_part() -> None:
    assert result_key("a", "b") != result_key("ab", "")
    assert result_key({"x": 1, "y": 2}) == result_key({"y": 2, "x": 1})


async def test_a_cut_reply_is_never_kept(shared: redis.asyncio.Redis, key: str) -> None:
    cut = Work(value=CutReply(part="half a sent", why="it ended with 'length'"))
    failed = Work(error=OutputCut("cut off"))
    cache = CallCache(shared, "communitree")
    for _ in range(2):
        assert (await cache.cached(key, 60, cut))[1] is False
        with pytest.raises(OutputCut):
            await cache.cached(key, 60, failed)
    assert (cut.done, failed.done) == (2, 2)
    assert not await shared.exists(f"communitree:cache:default:{key}")
