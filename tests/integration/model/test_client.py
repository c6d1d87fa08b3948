from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from communitree_shared.errors import Cancelled, ContextTooLong, DeadlinePassed, ModelError, OutputCut, UsageError
from communitree_shared.settings import Settings
from communitree_workers.model.client import CallContext, ChatRequest, CutReply, ModelClient
from support.fake_provider import Behaviour, FakeProvider, running_provider

KEY = "sk-test-0123456789abcdef"
SCHEMA = {"title": "points", "type": "object", "properties": {"points": {"type": "array", "maxItems": 20}}}
TABLE = 'Reply with {"points": [...]}.\n\nid|title|content\n1|Alpha|Alpha won. More.\n2|Beta|贝塔赢了。还有。\n'


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with running_provider() as running:
        yield running


def client_of(provider: FakeProvider, **more: Any) -> ModelClient:
    values = {"llm_base_url": provider.url, "llm_model": "fake", "llm_api_key": KEY, **more}
    return ModelClient(Settings.model_validate(values), None, "communitree", spread=0.005)


@pytest.fixture
async def client(provider: FakeProvider) -> AsyncIterator[ModelClient]:
    client = client_of(provider)
    yield client
    await client.close()


def ask(text: str = "hello", **more: Any) -> ChatRequest:
    return ChatRequest([{"role": "system", "content": "You answer."}, {"role": "user", "content": text}], **more)


async def test_a_reply_with_its_usage_and_price(provider: FakeProvider) -> None:
    provider.behaviour.cached_share = 0.5
    client = client_of(provider, llm_price_input=1.0, llm_price_output=2.0, llm_price_cached=0.0)
    context = CallContext()
    done = await client.complete("map", ask(TABLE, schema=SCHEMA, max_tokens=500, temperature=0.0, seed=7), context)
    await client.close()
    assert [point["reports"] for point in done.value["points"]] == [[1], [2]]
    assert "贝塔赢了。" in done.value["points"][1]["description"]
    assert (done.reason, done.repairs, done.tries) == ("stop", 0, 1)
    usage = done.usage
    assert usage.calls == 1
    assert usage.provider_cached_tokens == usage.prompt_tokens // 2
    assert usage.usd == pytest.approx(
        ((usage.prompt_tokens - usage.provider_cached_tokens) + 2 * usage.output_tokens) / 1e6
    )
    assert context.spent == usage
    assert provider.bodies[0]["response_format"]["type"] == "json_schema"
    assert (provider.bodies[0]["seed"], provider.bodies[0]["temperature"]) == (7, 0.0)


async def test_a_stream_hands_out_its_pieces_and_counts_its_tokens(provider: FakeProvider, client: ModelClient) -> None:
    pieces: list[str] = []
    done = await client.complete("reduce", ask(on_token=pieces.append), CallContext())
    assert len(pieces) > 3
    assert "".join(pieces) == done.text
    assert done.usage.output_tokens > 0
    assert done.usage.usd is None
    provider.behaviour.stream_usage = False
    done = await client.complete("reduce", ask("again", on_token=pieces.append), CallContext())
    assert done.usage.output_tokens > 0


async def test_a_broken_stream_starts_again_and_says_so(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(drop_rate=0.5, seed=5)
    restarts = 0
    for number in range(12):
        text = ""

        def token(piece: str) -> None:
            nonlocal text
            text += piece

        def restart() -> None:
            nonlocal text, restarts
            text = ""
            restarts += 1

        done = await client.complete("reduce", ask(f"{number}", on_token=token, on_restart=restart), CallContext())
        assert text == done.text
    assert restarts > 0


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
async def test_passing_faults_are_tried_again(provider: FakeProvider, client: ModelClient, status: int) -> None:
    provider.behaviour = Behaviour(fail_first=2, error_status=status)
    done = await client.complete("map", ask(), CallContext())
    assert done.tries == 3
    assert done.usage.calls == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_refusals_fail_at_once_in_the_providers_words(
    provider: FakeProvider, client: ModelClient, status: int
) -> None:
    provider.behaviour = Behaviour(error_rate=1.0, error_status=status, error_words="no such model: fake")
    with pytest.raises(ModelError, match="no such model: fake") as caught:
        await client.complete("map", ask(), CallContext())
    assert caught.value.status == status
    assert provider.counters.requests == 1


async def test_an_endpoint_that_stays_away_is_given_up_after_six_tries(
    provider: FakeProvider, client: ModelClient
) -> None:
    provider.behaviour = Behaviour(error_rate=1.0)
    with pytest.raises(ModelError, match="after 6 tries"):
        await client.complete("map", ask(), CallContext())
    assert provider.counters.requests == 6


async def test_nobody_listens() -> None:
    client = ModelClient(Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="m", llm_tries=2), None, spread=0.001)
    with pytest.raises(ModelError, match=r"127\.0\.0\.1 failed"):
        await client.complete("map", ask(), CallContext())
    await client.close()


async def test_a_dropped_connection_is_tried_again(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(drop_rate=0.5, seed=3)
    done = [await client.complete("map", ask(f"{number}"), CallContext()) for number in range(12)]
    assert max(d.tries for d in done) > 1


@pytest.mark.parametrize("as_date", [False, True])
async def test_retry_after_is_obeyed_and_stops_everybody(
    provider: FakeProvider, client: ModelClient, as_date: bool
) -> None:
    provider.behaviour = Behaviour(fail_first=0, rate_429=1.0, retry_after=2.0, retry_after_as_date=as_date)
    first = asyncio.create_task(client.complete("map", ask("one"), CallContext()))
    while not provider.counters.outcomes.get("429"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # the refusal is on its way to the client
    provider.behaviour = Behaviour()
    told = provider.counters.starts[0]
    second = asyncio.create_task(client.complete("map", ask("two"), CallContext()))
    await asyncio.gather(first, second)
    assert min(provider.counters.starts[1:]) - told >= (1.9 if not as_date else 0.9)


async def test_the_ladder_is_learned_once(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(formats=("json_object", "text"), format_status=500)
    await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
    for _ in range(3):
        done = await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
        assert done.value["points"]
    assert provider.counters.formats == {"json_schema": 1, "json_object": 4}


async def test_down_to_plain_text_with_refusals_that_say_nothing(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(formats=("text",), format_status=400, format_words="Bad Request")
    done = await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
    assert done.value["points"]
    await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
    assert provider.counters.formats == {"json_schema": 1, "json_object": 1, "text": 2}


async def test_a_bare_500_to_a_schema(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(formats=("json_object",), format_status=500, format_words="Internal Server Error")
    done = await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
    assert done.value["points"]
    assert provider.counters.formats["json_object"] == 1


async def test_parameters_that_a_model_refuses(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(refused=("max_tokens", "temperature", "seed"))
    for _ in range(2):
        await client.complete("map", ask(max_tokens=50, temperature=0.0, seed=1), CallContext())
    assert provider.counters.requests == 3 + 2
    assert provider.bodies[-1]["max_completion_tokens"] == 50


async def test_one_repair_call_at_most(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(reply="I would rather talk about the weather.")
    context = CallContext()
    done = await client.complete("map", ask(TABLE, schema=SCHEMA), context)
    assert done.value is None
    assert done.text.startswith("I would")
    assert provider.counters.requests == 2
    assert (done.usage.calls, done.usage.repaired, context.spent.calls, context.spent.repaired) == (2, 1, 2, 1)
    assert provider.bodies[1]["messages"][-2]["content"] == done.text


async def test_a_repair_that_helps(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(reply="No.")
    call = asyncio.create_task(client.complete("map", ask(TABLE, schema=SCHEMA), CallContext()))
    while provider.counters.requests < 1:
        await asyncio.sleep(0)
    provider.behaviour.reply = ""
    done = await call
    assert done.value["points"] or done.tries == 1
    assert done.usage.calls == done.tries


async def test_damaged_replies_are_read_and_counted(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(malformed_rate=1.0)
    repaired = 0
    for kind in ("fence", "prose", "trailing", "bare_keys", "full_width"):
        provider.behaviour.malformed_kind = kind
        done = (await client.complete("map", ask(TABLE + kind, schema=SCHEMA), CallContext())).whole()
        assert done.value["points"][0]["reports"] == [1], kind
        repaired += done.usage.repaired
        assert done.usage.calls == 1
    assert repaired == 5
    provider.behaviour.malformed_kind = "think"  # no damage: thinking is taken off before anybody reads
    done = (await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())).whole()
    assert (done.value["points"][0]["reports"], done.thought, done.usage.repaired) == ([1], True, 0)


async def test_json_that_ended_inside_is_asked_for_once_more(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(malformed_rate=1.0, malformed_kind="truncate")
    done = await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
    assert isinstance(done, CutReply)
    assert done.held["points"][0]["reports"] == [1]
    assert (done.usage.calls, done.usage.repaired) == (2, 1)


async def test_a_reply_cut_at_its_limit_is_no_success_and_no_error(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(cut_rate=1.0)
    done = await client.complete("map", ask(TABLE, schema=SCHEMA), CallContext())
    assert isinstance(done, CutReply)
    assert (done.reason, done.usage.endings) == ("length", {"length": 1})
    assert done.held["points"][0]["reports"] == [1]
    assert provider.counters.requests == 1
    with pytest.raises(OutputCut, match=r"cut off after \d+ tokens: it ended with 'length'"):
        done.whole()


async def test_a_limit_that_leaves_no_text(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(reply="x", cut_rate=1.0)
    context = CallContext()
    with pytest.raises(OutputCut):
        await client.complete("map", ask(), context)
    assert context.spent.calls == 1


async def test_a_prompt_that_is_too_long(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(context_tokens=20)
    with pytest.raises(ContextTooLong, match="maximum context length is 20"):
        await client.complete("map", ask("word " * 200, schema=SCHEMA), CallContext())
    assert provider.counters.requests == 1
    known = client_of(provider, llm_context_tokens=30)
    with pytest.raises(ContextTooLong):
        await known.complete("map", ask("word " * 200), CallContext())
    await known.close()
    assert provider.counters.requests == 1


async def test_a_deadline_ends_a_call_that_hangs(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(hang_rate=1.0)
    started = time.monotonic()
    with pytest.raises(DeadlinePassed):
        await client.complete("map", ask(), CallContext(deadline=time.time() + 0.5))
    assert time.monotonic() - started < 1.5
    with pytest.raises(DeadlinePassed):
        await client.complete("map", ask(), CallContext(deadline=time.time() - 1))
    assert provider.counters.requests == 1


async def test_the_deadline_names_the_last_failure(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(rate_429=1.0, retry_after=30.0)
    with pytest.raises(DeadlinePassed, match="Rate limit reached") as late:
        await client.complete("map", ask(), CallContext(deadline=time.time() + 5))
    assert "--deadline" in late.value.hint


async def test_a_try_has_its_own_time_limit(provider: FakeProvider) -> None:
    client = client_of(provider, llm_timeout=0.2, llm_tries=2)
    provider.behaviour = Behaviour(hang_rate=1.0)
    with pytest.raises(ModelError, match="no answer within"):
        await client.complete("map", ask(), CallContext())
    await client.close()
    assert provider.counters.requests == 2


async def test_a_slow_stream_may_take_longer_than_a_try(provider: FakeProvider) -> None:
    client = client_of(provider, llm_timeout=0.4)
    provider.behaviour = Behaviour(latency=1.2)
    done = await client.complete("reduce", ask(on_token=lambda piece: None), CallContext())
    await client.close()
    assert done.tries == 1


@pytest.mark.parametrize("by_event", [False, True])
async def test_cancelling_a_job_stops_its_calls(provider: FakeProvider, client: ModelClient, by_event: bool) -> None:
    provider.behaviour = Behaviour(hang_rate=1.0)
    event = asyncio.Event()
    context = CallContext(cancelled=event if by_event else event.is_set)
    calls = [asyncio.create_task(client.complete("map", ask(f"{n}"), context)) for n in range(20)]
    while provider.counters.in_flight < 20:
        await asyncio.sleep(0.01)
    event.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, Cancelled) for result in results)
    while provider.counters.in_flight:
        await asyncio.sleep(0.01)
    with pytest.raises(Cancelled):
        await client.complete("map", ask(), context)
    assert provider.counters.requests == 20


async def test_a_cancelled_task_stays_cancelled(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(hang_rate=1.0)
    call = asyncio.create_task(client.complete("map", ask(), CallContext(cancelled=asyncio.Event())))
    while provider.counters.in_flight < 1:
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_the_key_is_nowhere(
    provider: FakeProvider, client: ModelClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.behaviour = Behaviour(api_key="another")
    with pytest.raises(ModelError) as caught:
        await client.complete("map", ask(), CallContext())
    seen: list[BaseException] = []
    error: BaseException | None = caught.value
    while error is not None:
        seen.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert KEY not in caplog.text + repr(client) + "".join(f"{e!r}{e}{e.args}" for e in seen)
    assert "Incorrect API key" in caught.value.message


async def test_azure(provider: FakeProvider) -> None:
    client = client_of(
        provider, llm_base_url=provider.url.removesuffix("/v1"), llm_api_version="2026-01-01", llm_model="gpt x"
    )
    await client.complete("map", ask(), CallContext())
    await client.close()
    assert provider.paths == ["/openai/deployments/gpt%20x/chat/completions?api-version=2026-01-01"]
    assert provider.headers[0]["api-key"] == KEY


async def test_extra_headers_and_fields_and_stage_settings(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMUNITREE_LLM_MAP_MODEL", "small")
    monkeypatch.setenv("COMMUNITREE_LLM_MAP_EXTRA_BODY", '{"prompt_cache_key": "k"}')
    client = client_of(provider, llm_extra_headers={"X-Team": "red"})
    await client.complete("map", ask(), CallContext())
    await client.complete("reduce", ask(), CallContext())
    await client.close()
    assert [(body["model"], body.get("prompt_cache_key")) for body in provider.bodies] == [
        ("small", "k"),
        ("fake", None),
    ]
    assert provider.headers[1]["X-Team"] == "red"


async def test_a_proxy_gets_the_call(provider: FakeProvider) -> None:
    client = client_of(provider, llm_base_url="http://model.invalid/v1", llm_proxy=provider.url.removesuffix("/v1"))
    done = await client.complete("map", ask(), CallContext())
    await client.close()
    assert done.text
    assert provider.headers[0]["Host"] == "model.invalid"


async def test_the_built_in_model_is_not_called(provider: FakeProvider) -> None:
    client = ModelClient(Settings(), None)
    with pytest.raises(UsageError):
        await client.complete("map", ask(), CallContext())
    await client.close()


async def test_five_hundred_calls_in_flight(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(latency=6.0)
    started = time.monotonic()
    done = await asyncio.gather(*(client.complete("map", ask(f"{n}"), CallContext()) for n in range(500)))
    assert provider.counters.peak_in_flight == 500
    assert len({d.text for d in done}) > 400
    assert time.monotonic() - started < 40
