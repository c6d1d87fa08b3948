"""What the client makes of each habit of real endpoints: of JSON, of prose, and of prose that somebody follows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from communitree_shared.errors import ContentRefused, ContextTooLong, ModelError, OutputCut, PromptCut
from communitree_shared.settings import Settings
from communitree_workers.model.client import CallContext, ChatRequest, CutReply, ModelClient, WholeReply
from support.fake_provider import Behaviour, FakeProvider, running_provider
from support.fake_provider.habits import HABITS, OF_QUESTIONS, THOUGHT

SCHEMA = {"title": "points", "type": "object", "properties": {"points": {"type": "array"}}}
ROWS = "\n".join(f"{n}|T{n}|Alpha {n} won the day. More." for n in range(9))
TABLE = f'Reply with {{"points": [...]}}.\n\nid|title|content\n{ROWS}'
LONG = TABLE + "\n" + "\n".join(f"{n}|Long {n}|" + f"harbour survey engine orchard ledger {n} " * 20 for n in range(90))
LINES = "\n# points\n" + "\n".join(f"The harbour of {n} is deep. [Data: Reports ({n})]" for n in range(9))

WAYS = ("json", "prose", "followed")


class Followed:
    """What a follower was told, and how often it began again."""

    def __init__(self) -> None:
        self.text, self.restarts, self.ever = "", 0, ""

    def take(self, piece: str) -> None:
        self.text += piece
        self.ever += piece

    def restart(self) -> None:
        self.text = ""
        self.restarts += 1


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with running_provider() as running:
        yield running


@pytest.fixture
async def client(provider: FakeProvider) -> AsyncIterator[ModelClient]:
    values = {"llm_base_url": provider.url, "llm_model": "fake", "llm_tries": 3}
    client = ModelClient(Settings.model_validate(values), None, "communitree", spread=0.002)
    yield client
    await client.close()


def asked(way: str, text: str = "", follower: Followed | None = None) -> ChatRequest:
    data = text or (TABLE if way == "json" else LINES)
    messages = [{"role": "system", "content": "You answer."}, {"role": "user", "content": data}]
    if way == "json":
        return ChatRequest(messages, schema=SCHEMA)
    if way == "followed" and follower is not None:
        return ChatRequest(messages, on_token=follower.take, on_restart=follower.restart)
    return ChatRequest(messages)


async def outcome(client: ModelClient, way: str, text: str = "") -> tuple[str, Any, CallContext, Followed]:
    """Return "whole" or "cut" with the reply, or the error's name with the error."""
    context, follower = CallContext(), Followed()
    try:
        done = await client.complete("map", asked(way, text, follower), context)
    except ModelError as error:
        return type(error).__name__, error, context, follower
    return ("cut" if isinstance(done, CutReply) else "whole"), done, context, follower


async def good(client: ModelClient, provider: FakeProvider, way: str) -> WholeReply:
    """Return the reply of a provider without habits, and forget that it was asked."""
    provider.behaviour = Behaviour()
    done = (await client.complete("map", asked(way), CallContext())).whole()
    provider.forget()
    return done


def reports(done: WholeReply) -> list[Any]:
    return [point["reports"] for point in (done.value or {"points": []})["points"]]


#: Each habit: what comes of JSON, of prose and of followed prose (one word: of all), and requests sent for each.
EXPECTED: dict[str, tuple[str, str]] = {
    "think": ("whole", "1"),
    "think_no_open": ("whole", "1"),
    "think_unclosed": ("OutputCut", "1"),
    "think_unclosed_stop": ("OutputCut", "1"),
    "harmony": ("whole", "1"),
    "mistral": ("whole", "1"),
    "kimi": ("whole", "1"),
    "seed": ("whole", "1"),
    "in_reasoning": ("OutputCut", "1"),
    "finish_length": ("cut", "1"),
    "finish_max_tokens": ("cut", "1"),
    "finish_safety": ("ContentRefused", "1"),
    "finish_content_filter": ("ContentRefused", "1"),
    "finish_error": ("ModelError", "3"),
    "finish_no_resource": ("ModelError", "3"),
    "finish_upper": ("whole", "1"),
    "finish_unknown": ("whole", "1 2 2"),
    "finish_unknown_cut": ("cut whole whole", "1 2 2"),
    "finish_missing": ("whole", "1 2 2"),
    "finish_missing_cut": ("cut whole whole", "1 2 2"),
    "stop_cut": ("cut whole whole", "2 1 1"),  # prose that says it ended cannot be told from prose that did
    "empty": ("ModelError", "3"),
    "choice_error": ("ModelError", "3"),
    "stream_error": ("ModelError", "3"),
    "stream_no_end": ("ModelError", "3"),
    "refusal": ("ContentRefused", "2 1 1"),  # JSON is asked for once more
    "refusal_chinese": ("ContentRefused", "2 1 1"),
    "fenced": ("whole", "1"),
    "in_an_object": ("whole", "1"),
    "too_long": ("ContextTooLong", "1"),
    "too_long_413": ("ContextTooLong", "1"),
    "too_long_429": ("ContextTooLong", "1"),
    "too_long_chinese": ("ContextTooLong", "1"),
    "filtered": ("ContentRefused", "1"),
    "unexplained": ("ModelError", "3 1 1"),  # it might be the format
    "no_key": ("ModelError", "1"),
    "no_access": ("ModelError", "1"),
    "no_model": ("ModelError", "1"),
    "no_money": ("ModelError", "1"),
    "no_system": ("whole", "2"),
    "only_stream": ("whole", "2 2 1"),
    "no_stream": ("whole", "1 1 2"),
    "truncates": ("PromptCut", "1"),
    "error_in_200": ("ModelError", "1"),
    "redirects": ("ModelError", "1"),
}


def test_every_habit_has_its_place() -> None:
    assert set(EXPECTED) | {"rate_limited_403"} == set(HABITS) - OF_QUESTIONS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("habit", EXPECTED)
async def test_a_habit(provider: FakeProvider, client: ModelClient, habit: str, way: str) -> None:
    fine = await good(client, provider, way)
    provider.behaviour = Behaviour(habit=habit)
    text = LONG if HABITS[habit].above or habit == "truncates" else ""
    found, done, context, follower = await outcome(client, way, text)
    words, requests = EXPECTED[habit]
    word = (words.split() * 3)[WAYS.index(way)] if " " in words else words
    count = (requests.split() * 3)[WAYS.index(way)] if " " in requests else requests
    assert found == word
    if habit == "unexplained" and way == "json":
        count = "1"  # the format is proven by the good call before
    assert provider.counters.requests == int(count)
    if not (way == "followed" and habit in ("choice_error", "stream_error", "stream_no_end")):  # no usage came
        assert context.spent.calls == provider.counters.outcomes.get("ok", 0)
    assert "chain of thought" not in follower.text
    if found == "whole":
        if habit != "stop_cut":
            assert done.text.strip() == fine.text.strip() or way == "json"
            assert reports(done) == reports(fine)
        if way == "followed":
            assert follower.text == done.text
    if found == "cut":
        assert not hasattr(done, "text")
        assert not hasattr(done, "value")
        if way == "json":
            assert 0 < len(done.held["points"]) < len(fine.value["points"])
        else:
            assert fine.text.startswith(done.part)
    if habit.startswith("finish_") and habit != "finish_upper":
        named = HABITS[habit].finish or "none"
        assert context.spent.endings[named] == provider.counters.requests - (word == "whole" and "cut" in habit)


async def test_thinking_that_was_opened_is_never_told(provider: FakeProvider, client: ModelClient) -> None:
    for habit in ("think", "harmony", "mistral", "kimi", "seed"):
        provider.behaviour = Behaviour(habit=habit)
        _, done, _, follower = await outcome(client, "followed")
        assert follower.ever == done.text
        assert follower.restarts == 0


async def test_an_endpoint_without_opening_marks_is_learned_once(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(habit="think_no_open")
    _, done, _, follower = await outcome(client, "followed")
    assert follower.text == done.text
    assert follower.restarts == 1
    _, done, _, follower = await outcome(client, "followed", LINES + " ")
    assert follower.ever == done.text
    assert follower.restarts == 0


@pytest.mark.parametrize("habit", ["no_system", "only_stream"])
async def test_roles_and_streams_are_learned_once(provider: FakeProvider, client: ModelClient, habit: str) -> None:
    provider.behaviour = Behaviour(habit=habit)
    for way in ("json", "prose", "followed", "json"):
        found, _, _, _ = await outcome(client, way)
        assert found == "whole"
    assert provider.counters.requests == 4 + 1
    sent = provider.bodies[-1]
    if habit == "no_system":
        assert sent["messages"] == [{"role": "user", "content": f"You answer.\n\n{TABLE}"}]
    else:
        assert sent["stream"] is True


async def test_a_rate_limit_in_the_words_of_a_403_is_waited_for(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(habit="rate_limited_403", habit_first=1)
    found, done, context, _ = await outcome(client, "prose")
    assert (found, done.tries, context.spent.calls) == ("whole", 2, 1)


async def test_what_a_server_did_not_read_is_in_the_account(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(habit="truncates")
    found, error, context, _ = await outcome(client, "json", LONG)
    assert found == "PromptCut"
    assert isinstance(error, ContextTooLong)
    assert "read 2500 tokens of a prompt of about" in error.message
    assert "COMMUNITREE_LLM_CONTEXT_TOKENS" in error.hint
    assert context.spent.endings == {"prompt_cut": 1}
    assert context.spent.calls == 1
    found, _, context, _ = await outcome(client, "json")  # a short one is read
    assert (found, context.spent.endings) == ("whole", {})


async def test_a_prompt_that_the_server_had_cached_is_not_taken_for_cut(
    provider: FakeProvider, client: ModelClient
) -> None:
    found, _, _, _ = await outcome(client, "json", LONG)
    assert found == "whole"
    provider.behaviour = Behaviour(habit="truncates", habit_limit=20)  # as a server counts that knows the beginning
    found, _, _, _ = await outcome(client, "json", LONG)
    assert found == "whole"


@pytest.mark.parametrize(
    ("habit", "message", "hint"),
    [
        ("in_reasoning", "stood in its reasoning alone", "thinking off"),
        ("think_unclosed_stop", "nothing but thinking", "thinking off"),
        ("refusal", "I'm sorry, but I can't assist", ""),
        ("filtered", "content management policy", ""),
        (
            "redirects",
            "redirects to https://models.invalid/v1/chat/completions",
            "that the server redirects to",
        ),
        ("no_model", "does not exist", "COMMUNITREE_LLM_MODEL"),
        ("no_key", "Incorrect API key", "COMMUNITREE_LLM_API_KEY"),
    ],
)
async def test_the_cause_is_said(
    provider: FakeProvider, client: ModelClient, habit: str, message: str, hint: str
) -> None:
    provider.behaviour = Behaviour(habit=habit)
    _, error, _, _ = await outcome(client, "prose")
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize("habit", ["", "error_in_200"])
async def test_a_base_url_without_its_v1(provider: FakeProvider, habit: str) -> None:
    provider.behaviour = Behaviour(habit=habit)
    base = provider.url if habit else provider.url.removesuffix("/v1")
    client = ModelClient(Settings.model_validate({"llm_base_url": base, "llm_model": "fake"}), None, spread=0.002)
    _, error, _, _ = await outcome(client, "prose")
    await client.close()
    assert error.status == 404
    if habit:  # it has one, and the server says that it has no such address
        assert "Check COMMUNITREE_LLM_BASE_URL" in error.hint
    else:
        assert error.hint.endswith(f"try {base}/v1.")


async def test_a_cut_reply_is_gone_on_with(provider: FakeProvider, client: ModelClient) -> None:
    for way in WAYS:
        fine = await good(client, provider, way)
        provider.behaviour = Behaviour(habit="finish_length")
        follower = Followed()
        request = asked(way, follower=follower)
        cut = await client.complete("map", request, CallContext())
        assert isinstance(cut, CutReply)
        context = CallContext()
        done = (await client.go_on("map", request, cut, context)).whole()
        assert (done.text, done.value) == (fine.text, fine.value)
        assert (done.usage.calls, context.spent.calls, done.tries) == (2, 1, 2)
        if way == "followed":
            assert follower.text == done.text


async def test_a_continuation_that_fails_leaves_what_there_was(provider: FakeProvider, client: ModelClient) -> None:
    provider.behaviour = Behaviour(habit="finish_length")
    request = asked("prose")
    cut = await client.complete("map", request, CallContext())
    assert isinstance(cut, CutReply)
    provider.behaviour = Behaviour(error_rate=1.0, error_status=400)
    assert await client.go_on("map", request, cut, CallContext()) is cut
    with pytest.raises(OutputCut):
        cut.whole()


async def test_nothing_that_was_thought_is_in_a_reply(provider: FakeProvider, client: ModelClient) -> None:
    for habit in ("think", "think_no_open", "harmony", "mistral", "kimi", "seed"):
        provider.behaviour = Behaviour(habit=habit)
        for way in WAYS:
            _, done, _, _ = await outcome(client, way, LINES + habit if way != "json" else TABLE + habit)
            assert THOUGHT[:20] not in done.text or way == "json"
            assert "DRAFT" not in str(done.value)
            assert done.thought or way == "json"


def test_the_errors_are_those_that_stages_catch() -> None:
    assert issubclass(PromptCut, ContextTooLong)
    assert not issubclass(ContentRefused, ContextTooLong)
