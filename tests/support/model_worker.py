"""A process that makes model calls: `python -m support.model_worker URL REDIS CALLS IN_FLIGHT RPM CACHED`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import redis.asyncio

from communitree_shared.settings import Settings
from communitree_workers.model.client import CallContext, ChatRequest, ModelClient
from communitree_workers.model.inflight import CallCache, result_key


async def main(url: str, redis_url: str, calls: int, in_flight: int, rpm: int, cached: bool) -> None:
    shared = redis.asyncio.Redis.from_url(redis_url)
    settings = Settings.model_validate({"llm_base_url": url, "llm_model": "m", "llm_requests_per_minute": rpm or None})
    client, cache = ModelClient(settings, shared), CallCache(shared, "communitree", lease=2.0)
    places = asyncio.Semaphore(in_flight)

    async def one(number: int) -> None:
        async def compute() -> Any:
            request = ChatRequest([{"role": "user", "content": f"question {number}"}])
            return (await client.complete("map", request, CallContext())).whole().text

        async with places:
            await cache.cached(result_key(number, redis_url), 60, compute, enabled=cached)

    await asyncio.gather(*(one(number) for number in range(calls)))
    await client.close()
    await shared.aclose()


if __name__ == "__main__":
    address, server, *numbers = sys.argv[1:]
    count, slots, rate, keep = map(int, numbers)
    asyncio.run(main(address, server, count, slots, rate, bool(keep)))
