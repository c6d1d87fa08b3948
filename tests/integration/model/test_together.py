from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio
import redis.asyncio.retry
import redis.backoff

from communitree_workers.model.together import Together


@pytest.fixture
async def shared(valkey_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    client = redis.asyncio.Redis.from_url(valkey_url, decode_responses=True)
    yield client
    await client.aclose()


#: Of each item: its argument, and how many there have been.
ECHO = """
local out = {}
for i = 1, #ARGV do out[i] = {ARGV[i], redis.call('INCR', KEYS[i])} end
return out
"""


async def calls(shared: redis.asyncio.Redis) -> int:
    return int((await shared.info("commandstats")).get("cmdstat_evalsha", {}).get("calls", 0))


async def test_many_items_take_few_calls(shared: redis.asyncio.Redis) -> None:
    together = Together()
    echo, length = (
        shared.register_script(s) for s in (ECHO, "local o = {} for i, a in ipairs(ARGV) do o[i] = #a end return o")
    )
    await shared.script_flush()  # as after a restart of the server: every script is unknown
    for _ in range(2):
        await shared.delete("together:n")
        before = await calls(shared)
        echoes = [together.run(echo, ["together:n"], str(i)) for i in range(300)]
        lengths = [together.run(length, [], "x" * i) for i in range(30)]
        found = await asyncio.gather(*echoes, *lengths)
        assert [reply[0] for reply in found[:300]] == [str(i) for i in range(300)]
        assert [reply[1] for reply in found[:300]] == list(range(1, 301))  # each counted once
        assert found[300:] == list(range(30))
        assert await calls(shared) - before <= 6


async def test_an_error_is_told_to_all_of_a_call_and_to_no_other(shared: redis.asyncio.Redis) -> None:
    together = Together()
    echo, fails = shared.register_script(ECHO), shared.register_script("return redis.error_reply('no')")
    runs = [together.run(fails if i % 2 else echo, ["together:e"], str(i)) for i in range(10)]
    found = await asyncio.gather(*runs, return_exceptions=True)
    assert [str(reply) for reply in found[1::2]] == ["no"] * 5
    assert [reply[0] for reply in found[::2]] == ["0", "2", "4", "6", "8"]


async def test_one_that_gives_up_does_not_harm_the_others(shared: redis.asyncio.Redis) -> None:
    together = Together()
    echo = shared.register_script("return ARGV")
    runs = [asyncio.create_task(together.run(echo, [], str(i))) for i in range(20)]
    await asyncio.sleep(0)
    runs[3].cancel()
    found = await asyncio.gather(*runs, return_exceptions=True)
    assert isinstance(found[3], asyncio.CancelledError)
    assert [reply for i, reply in enumerate(found) if i != 3] == [str(i) for i in range(20) if i != 3]


async def test_a_server_that_is_away_is_said_to_all(shared: redis.asyncio.Redis) -> None:
    once = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
    nobody = redis.asyncio.Redis(host="127.0.0.1", port=1, decode_responses=True, retry=once)
    together = Together()
    echo = nobody.register_script("return ARGV")
    found = await asyncio.gather(*(together.run(echo, [], str(i)) for i in range(5)), return_exceptions=True)
    assert all(isinstance(reply, redis.ConnectionError) for reply in found)
    await nobody.aclose()
