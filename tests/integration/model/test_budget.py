from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis.asyncio

from communitree_shared.contract.results import Usage
from communitree_shared.errors import BudgetReached, UsageError
from communitree_shared.settings import Settings
from communitree_workers.model.budget import Hold, JobBudget
from communitree_workers.model.client import CallContext, ChatRequest, ModelClient
from support.fake_provider import Behaviour, running_provider
from support.valkey import running_valkey


@pytest.fixture
async def shared(valkey_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    client = redis.asyncio.Redis.from_url(valkey_url, decode_responses=True)
    yield client
    await client.aclose()


@pytest.fixture
def job() -> str:
    return f"job-{time.time_ns()}"


def used(tokens: int, usd: float = 0.0) -> Usage:
    return Usage(calls=1, prompt_tokens=tokens, usd=usd)


async def test_the_ceiling_is_shared_and_never_passed(shared: redis.asyncio.Redis, job: str) -> None:
    budgets = [JobBudget(shared, "communitree", "t", job, tokens=1000) for _ in range(4)]
    refused = 0

    async def call(budget: JobBudget) -> None:
        nonlocal refused
        while (hold := await budget.reserve(used(100))) is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        await hold.settle(used(90))

    results = await asyncio.gather(*(call(budget) for budget in budgets for _ in range(10)), return_exceptions=True)
    refused = sum(isinstance(result, BudgetReached) for result in results)
    usd, tokens = await budgets[0].spent()
    assert tokens == 90 * (40 - refused)
    assert 900 < tokens <= 1000
    assert usd == 0.0


async def test_what_is_held_is_waited_for(shared: redis.asyncio.Redis, job: str) -> None:
    budget = JobBudget(shared, "communitree", "t", job, usd=1.0)
    hold = await budget.reserve(used(1, 0.8))
    assert hold is not None
    assert await budget.reserve(used(1, 0.4)) is None
    await hold.settle(used(1, 0.1))
    assert await budget.reserve(used(1, 0.4)) is not None
    with pytest.raises(BudgetReached, match="USD"):
        await budget.reserve(used(1, 0.95))


async def spend(budget: JobBudget, usage: Usage) -> None:
    """Spend without having asked before, as a call does that costs more than it was thought to."""
    await Hold(budget, "").settle(usage)


async def test_check_and_spend(shared: redis.asyncio.Redis, job: str) -> None:
    budget = JobBudget(shared, "communitree", "t", job, usd=0.5)
    await budget.check()
    await spend(budget, used(10, 0.5))
    with pytest.raises(BudgetReached, match=r"0\.5000 of 0\.5 USD"):
        await JobBudget(shared, "communitree", "t", job, usd=0.5).check()
    await JobBudget(shared, "communitree", "t", job + "x", usd=0.5).check()
    keys = [key async for key in shared.scan_iter(f"communitree:budget:t:{job}*")]
    assert keys
    assert all([await shared.ttl(key) > 0 for key in keys])


async def test_no_ceiling_asks_nobody(job: str) -> None:
    away = redis.asyncio.Redis.from_url("redis://127.0.0.1:9/0")
    budget = JobBudget(away, "communitree", "t", job)
    await budget.check()
    hold = await budget.reserve(used(10**9))
    assert hold is not None


async def test_the_ceiling_holds_while_redis_is_away(tmp_path: Path, job: str) -> None:
    with running_valkey(tmp_path) as valkey:
        client = redis.asyncio.Redis.from_url(valkey.url, socket_connect_timeout=0.5)
        budget = JobBudget(client, "communitree", "t", job, tokens=100)
        await spend(budget, used(60))
        valkey.stop()
        hold = await budget.reserve(used(30))
        assert hold is not None
        await hold.settle(used(30))
        with pytest.raises(BudgetReached):
            await budget.reserve(used(30))
        valkey.start()
        await spend(budget, used(5))
        assert (await budget.spent())[1] == 95
        await client.aclose()


async def test_a_client_stops_at_the_ceiling(shared: redis.asyncio.Redis, job: str) -> None:
    async with running_provider(Behaviour(latency=0.02)) as provider:
        values = {"llm_base_url": provider.url, "llm_model": "m", "llm_price_input": 10.0, "llm_price_output": 10.0}
        client = ModelClient(Settings.model_validate(values), shared)
        budget = JobBudget(shared, "communitree", "t", job, usd=0.02)
        context = CallContext("t", job, budget=budget)

        async def call(number: int) -> None:
            await client.complete(
                "map", ChatRequest([{"role": "user", "content": f"{number}"}], max_tokens=120), context
            )

        results = await asyncio.gather(*(call(number) for number in range(60)), return_exceptions=True)
        await client.close()
        refused = [result for result in results if result is not None]
        assert 0 < len(refused) < 60
        assert all(isinstance(result, BudgetReached) for result in refused)
        usd, _ = await budget.spent()
        assert 0.015 < usd <= 0.02
        assert context.spent.usd == pytest.approx(usd)
        assert provider.counters.requests == 60 - len(refused)


async def test_money_needs_a_price(shared: redis.asyncio.Redis, job: str) -> None:
    client = ModelClient(Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="m"), shared)
    context = CallContext("t", job, budget=JobBudget(shared, "communitree", "t", job, usd=1.0))
    with pytest.raises(UsageError, match="price"):
        await client.complete("map", ChatRequest([{"role": "user", "content": "x"}]), context)
    await client.close()
