from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from communitree_workers.model.chat import ChatRequest
from communitree_workers.model.ladder import Abilities
from communitree_workers.model.retry import CallFailed
from communitree_workers.model.wire import StreamReader, body, error_words, response_format, whole_reply

SCHEMA = {"title": "points", "type": "object"}


def sent(request: ChatRequest, abilities: Abilities | None = None, **extra: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(body(request, abilities or Abilities(), "m", None, None, extra))
    return found


def test_only_what_is_set_is_sent() -> None:
    assert sent(ChatRequest([{"role": "user", "content": "x"}])) == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
    }


def test_everything_set() -> None:
    request = ChatRequest([], schema=SCHEMA, max_tokens=9, temperature=0.0, seed=3, on_token=lambda piece: None)
    out = sent(request, prompt_cache_key="k")
    assert out["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (out["max_tokens"], out["temperature"], out["seed"], out["prompt_cache_key"]) == (9, 0.0, 3, "k")
    assert out["stream"] is True
    assert out["stream_options"] == {"include_usage": True}


def test_what_an_endpoint_does_not_take_is_left_out() -> None:
    abilities = Abilities("text", "max_completion_tokens", frozenset({"seed", "temperature"}))
    out = sent(ChatRequest([], schema=SCHEMA, max_tokens=9, temperature=0.0, seed=3), abilities)
    assert out == {"model": "m", "messages": [], "max_completion_tokens": 9}


def test_settings_win_over_the_callers_temperature_but_not_over_its_length() -> None:
    out = orjson.loads(body(ChatRequest([], max_tokens=5, temperature=0.0), Abilities(), "m", 100, 0.7, {}))
    assert (out["temperature"], out["max_tokens"]) == (0.7, 5)


def test_without_a_schema_the_top_rung_is_json_object() -> None:
    assert response_format("json_schema", None) == {"type": "json_object"}
    assert response_format("text", SCHEMA) is None


def test_json_that_the_prompt_alone_asks_for_is_still_read() -> None:
    request = ChatRequest([], schema=SCHEMA, json=True, as_format=False)
    assert "response_format" not in sent(request)
    assert request.wants_json


def reply(**changes: Any) -> bytes:
    data = {
        "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 6}},
    }
    return orjson.dumps({**data, **changes})


def test_a_whole_reply() -> None:
    raw = whole_reply(reply())
    assert (raw.text, raw.finish, raw.counts) == ("hello", "stop", (10, 6, 2))


@pytest.mark.parametrize("reason", ["length", "max_tokens"])
def test_the_length_limit_is_told_apart(reason: str) -> None:
    raw = whole_reply(reply(choices=[{"message": {"content": "hel"}, "finish_reason": reason}]))
    assert raw.finish == "length"


def test_other_names_for_cached_tokens() -> None:
    assert whole_reply(
        reply(usage={"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4})
    ).counts == (9, 4, 1)
    assert whole_reply(reply(usage=None)).counts is None


@pytest.mark.parametrize("raw", [b"<html>busy</html>", b"[]", b'{"choices": []}', b'{"choices": [{}]}', b"null"])
def test_200_without_a_reply_may_be_tried_again(raw: bytes) -> None:
    with pytest.raises(CallFailed) as caught:
        whole_reply(raw)
    assert caught.value.retryable


def test_an_error_inside_a_200() -> None:
    with pytest.raises(CallFailed, match="overloaded") as caught:
        whole_reply(b'{"error": {"message": "overloaded", "code": 503}}')
    assert caught.value.status == 503


def test_a_content_filter_is_final() -> None:
    with pytest.raises(CallFailed, match="content filter") as caught:
        whole_reply(reply(choices=[{"message": {"content": ""}, "finish_reason": "content_filter"}]))
    assert not caught.value.retryable


def events(*items: Any) -> bytes:
    return b"".join(
        b"data: " + (item if isinstance(item, bytes) else orjson.dumps(item)) + b"\r\n\r\n" for item in items
    )


def piece(text: str, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}


STREAM = b": comment\n\n" + events(
    piece("诸葛"),
    piece("亮"),
    piece("", "stop"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    b"[DONE]",
)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_stream_cut_anywhere(size: int) -> None:
    pieces: list[str] = []
    reader = StreamReader(pieces.append)
    for at in range(0, len(STREAM), size):
        reader.feed(STREAM[at : at + size])
    raw = reader.reply()
    assert (raw.text, raw.finish, raw.counts) == ("诸葛亮", "stop", (3, 0, 2))
    assert pieces == ["诸葛", "亮"]


def test_a_stream_without_its_end_is_no_reply() -> None:
    reader = StreamReader(None)
    reader.feed(events(piece("half an ans")))
    with pytest.raises(CallFailed, match="broke off"):
        reader.reply()


def test_an_error_in_the_stream() -> None:
    reader = StreamReader(None)
    with pytest.raises(CallFailed, match="busy") as caught:
        reader.feed(events(piece("a"), {"error": {"message": "busy", "type": "rate_limit_exceeded"}}))
    assert caught.value.status == 429


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"error": {"message": "no such model", "code": "x"}}', "no such model"),
        (b'{"error": "plain"}', "plain"),
        (b'{"detail": [{"msg": "field required"}]}', "[{"),
        (b'[{"error": {"message": "in a list"}}]', "in a list"),
        (b"<html><b>Bad gateway</b></html>", "Bad gateway"),
        (json.dumps({"message": "top"}).encode(), "top"),
    ],
)
def test_the_providers_words(raw: bytes, words: str) -> None:
    assert words in error_words(raw)[0]
