"""Real worker processes against one provider."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from support.fake_provider import Behaviour, running_provider

TESTS = Path(__file__).parents[2]


async def start(url: str, redis_url: str, *numbers: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "support.model_worker", url, redis_url, *map(str, numbers), cwd=TESTS
    )


async def test_three_processes_under_one_limit(valkey_url: str) -> None:
    """600 a minute: in no stretch of time more than 5 % above, and no pause while work waits."""
    async with running_provider(Behaviour(latency=0.2)) as provider:
        workers = [await start(provider.url, valkey_url, 200, 200, 600, 0) for _ in range(3)]
        async with asyncio.timeout(30):
            while len(provider.counters.starts) < 3:
                await asyncio.sleep(0.05)
        provider.forget()
        await asyncio.sleep(15)
        starts = list(provider.counters.starts)
        counters = provider.counters
        for worker in workers:
            worker.kill()
            await worker.wait()
    assert len(starts) >= 0.95 * 150
    assert counters.most_within(10.0) <= 1.05 * 100
    assert counters.longest_gap() < 0.6


async def test_a_run_repeated_after_a_kill_repeats_only_calls_in_flight(valkey_url: str) -> None:
    async with running_provider(Behaviour(latency=0.15)) as provider:
        worker = await start(provider.url, valkey_url, 60, 6, 0, 1)
        async with asyncio.timeout(30):
            while provider.counters.outcomes.get("ok", 0) < 25:
                await asyncio.sleep(0.02)
        worker.kill()
        await worker.wait()
        await asyncio.sleep(0.5)
        before = provider.counters.requests
        started = time.monotonic()
        worker = await start(provider.url, valkey_url, 60, 6, 0, 1)
        assert await worker.wait() == 0
        # The dead one's leases ran out in the meantime: nobody waits for them longer than that.
        assert time.monotonic() - started < 20
        assert provider.counters.repeated_prompts <= 6
        assert before < provider.counters.requests <= 60 + 6
        worker = await start(provider.url, valkey_url, 60, 6, 0, 1)
        assert await worker.wait() == 0
        assert provider.counters.requests <= 60 + 6


async def test_equal_calls_of_several_processes_are_made_once(valkey_url: str) -> None:
    async with running_provider(Behaviour(latency=0.3)) as provider:
        url = valkey_url.removesuffix("/0") + "/0?"  # the key holds the address: not the keys of the test above
        workers = [await start(provider.url, url, 20, 20, 0, 1) for _ in range(3)]
        assert [await worker.wait() for worker in workers] == [0, 0, 0]
        assert provider.counters.requests == 20
