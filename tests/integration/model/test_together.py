from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio

from communitree_workers.model.together import Together


@pytest.fixture
async def shared(valkey_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    client = redis.asyncio.Redis.from_url(valkey_url, decode_responses=True)
    yield client
    await client.aclose()


async def test_many_scripts_take_few_round_trips(shared: redis.asyncio.Redis) -> None:
    together = Together(shared)
    echo = shared.register_script("return {ARGV[1], redis.call('INCR', KEYS[1])}")
    fails = shared.register_script("return redis.error_reply('no ' .. ARGV[1])")
    await shared.script_flush()  # as after a restart of the server: every script is unknown
    runs = [together.run(fails if i % 10 == 9 else echo, ["together:n"], str(i)) for i in range(300)]
    before = (await shared.info("stats"))["total_reads_processed"]
    found = await asyncio.gather(*runs, return_exceptions=True)
    reads = (await shared.info("stats"))["total_reads_processed"] - before
    for i, reply in enumerate(found):
        if i % 10 == 9:
            assert isinstance(reply, redis.ResponseError)
            assert str(reply) == f"no {i}"
        else:
            assert reply[0] == str(i)
    # 270 counts, each once, though many were refused at first because the script was unknown.
    assert sorted(reply[1] for i, reply in enumerate(found) if i % 10 != 9) == list(range(1, 271))
    again = [together.run(echo, ["together:n"], str(i)) for i in range(300)]
    before = (await shared.info("stats"))["total_reads_processed"]
    await asyncio.gather(*again)
    later = (await shared.info("stats"))["total_reads_processed"] - before
    assert later < 20 < reads


async def test_one_that_gives_up_does_not_harm_the_others(shared: redis.asyncio.Redis) -> None:
    together = Together(shared)
    echo = shared.register_script("return ARGV[1]")
    runs = [asyncio.create_task(together.run(echo, [], str(i))) for i in range(20)]
    await asyncio.sleep(0)
    runs[3].cancel()
    found = await asyncio.gather(*runs, return_exceptions=True)
    assert isinstance(found[3], asyncio.CancelledError)
    assert [reply for i, reply in enumerate(found) if i != 3] == [str(i) for i in range(20) if i != 3]


async def test_a_server_that_is_away_is_said_to_all(shared: redis.asyncio.Redis) -> None:
    nobody = redis.asyncio.Redis(host="127.0.0.1", port=1, decode_responses=True)
    together = Together(nobody)
    echo = nobody.register_script("return ARGV[1]")
    found = await asyncio.gather(*(together.run(echo, [], str(i)) for i in range(5)), return_exceptions=True)
    assert all(isinstance(reply, redis.ConnectionError) for reply in found)
    await nobody.aclose()
