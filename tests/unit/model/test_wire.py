from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from communitree_workers.model.chat import ChatRequest
from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.ladder import Abilities
from communitree_workers.model.following import Follower
from communitree_workers.model.wire import StreamReader, body, error_words, prompt_read, response_format, whole_reply

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
    assert (raw.text, raw.reason, raw.counts, raw.read) == ("hello", "stop", (10, 6, 2), 16)


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


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "sensitive"])
def test_a_filter_is_final_and_its_tokens_are_paid(reason: str) -> None:
    with pytest.raises(CallFailed, match="content filter") as caught:
        whole_reply(reply(choices=[{"message": {"content": "half a sent"}, "finish_reason": reason}]))
    assert caught.value.filtered
    assert not caught.value.retryable
    assert (caught.value.counts, caught.value.reason) == ((10, 6, 2), reason)


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "abort"])
def test_a_reply_that_failed_on_its_way_is_tried_again(reason: str) -> None:
    with pytest.raises(CallFailed, match="failed on its way") as caught:
        whole_reply(reply(choices=[{"message": {"content": "half a sent"}, "finish_reason": reason}]))
    assert caught.value.retryable
    assert caught.value.reason == reason


def test_an_error_inside_a_choice() -> None:
    choice = {
        "message": {"content": "half"},
        "finish_reason": "stop",
        "error": {"code": 502, "message": "upstream went"},
    }
    with pytest.raises(CallFailed, match="upstream went") as caught:
        whole_reply(reply(choices=[choice]))
    assert (caught.value.status, caught.value.counts) == (502, (10, 6, 2))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("Unexpected endpoint or method. (POST /chat/completions)", 404),
        ({"message": "rate limit", "code": 1002}, 429),
        ({"message": "The prompt is longer than the context window"}, 400),
        ({"message": "System role not supported"}, 400),
        ({"message": "content flagged by moderation"}, 400),
        ({"message": "something went wrong"}, 500),
        ({"message": "busy", "code": 503}, 503),
    ],
)
def test_the_status_that_an_error_inside_a_200_would_have_had(error: Any, status: int) -> None:
    with pytest.raises(CallFailed) as caught:
        whole_reply(orjson.dumps({"error": error}))
    assert caught.value.status == status


def test_an_error_in_the_form_of_minimax() -> None:
    with pytest.raises(CallFailed, match="token limit") as caught:
        whole_reply(orjson.dumps({"choices": None, "base_resp": {"status_code": 1039, "status_msg": "token limit"}}))
    assert caught.value.too_long
    assert whole_reply(reply(base_resp={"status_code": 0, "status_msg": ""})).text == "hello"


def test_thinking_in_the_text_in_parts_and_apart() -> None:
    def text(message: dict[str, Any], reason: str | None = "stop") -> Any:
        return whole_reply(reply(choices=[{"message": message, "finish_reason": reason}]))

    raw = text({"content": "<think>no</think>yes"})
    assert (raw.text, raw.thought, raw.unfinished, raw.unopened, raw.apart) == ("yes", True, False, False, False)
    raw = text({"content": "no.\n</think>\nyes"})
    assert (raw.text, raw.thought, raw.unopened) == ("yes", True, True)
    raw = text({"content": "<think>no"}, "length")
    assert (raw.text, raw.unfinished) == ("", True)
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "no"}]}, {"type": "text", "text": "yes"}]
    assert text({"content": parts}).text == "yes"
    raw = text({"content": None, "reasoning_content": "all of it"})
    assert (raw.text, raw.apart) == ("", True)
    assert text({"content": "yes"}, None).reason == ""


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 100}, 100),
        ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}}, 160),
        ({"prompt_tokens": 5, "cache_read_input_tokens": 95}, 100),
        ({"prompt_tokens": 0, "completion_tokens": 3}, 0),
        (None, 0),
    ],
)
def test_what_a_server_says_it_read_is_the_most_it_can_mean(usage: Any, read: int) -> None:
    assert prompt_read(usage) == read


def test_one_message_for_models_without_a_system_role() -> None:
    messages = [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Data."},
        {"role": "assistant", "content": "Reply."},
        {"role": "user", "content": "Again."},
    ]
    found = sent(ChatRequest(messages), Abilities(one_message=True))["messages"]
    assert found == [{"role": "user", "content": "Rules.\n\nData."}, *messages[2:]]


def test_streams_are_asked_for_as_the_endpoint_takes_them() -> None:
    follows = ChatRequest([], on_token=lambda piece: None)
    assert sent(ChatRequest([]), Abilities(streams="always"))["stream"] is True
    assert "stream" not in sent(follows, Abilities(streams="never"))


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
    reader = StreamReader(Follower(ChatRequest([], on_token=pieces.append)))
    for at in range(0, len(STREAM), size):
        reader.feed(STREAM[at : at + size])
    raw = reader.reply()
    assert (raw.text, raw.reason, raw.counts, raw.read) == ("诸葛亮", "stop", (3, 0, 2), 3)
    assert pieces == ["诸葛", "亮"]


def test_a_stream_without_its_end_is_no_reply() -> None:
    reader = StreamReader(Follower(ChatRequest([])))
    reader.feed(events(piece("half an ans")))
    with pytest.raises(CallFailed, match="broke off"):
        reader.reply()


def test_an_error_in_the_stream() -> None:
    reader = StreamReader(Follower(ChatRequest([])))
    with pytest.raises(CallFailed, match="busy") as caught:
        reader.feed(events(piece("a"), {"error": {"message": "busy", "type": "rate_limit_exceeded"}}))
    assert caught.value.status == 429


def test_an_error_in_a_choice_of_the_stream_and_an_ending_that_failed() -> None:
    reader = StreamReader(Follower(ChatRequest([])))
    with pytest.raises(CallFailed, match="gone"):
        reader.feed(events({"choices": [{"delta": {"content": "a"}, "error": {"message": "gone", "code": 502}}]}))
    reader = StreamReader(Follower(ChatRequest([])))
    reader.feed(events(piece("half"), piece("", "error"), b"[DONE]"))
    with pytest.raises(CallFailed, match="failed on its way"):
        reader.reply()


def test_a_stream_that_ends_without_a_name_for_it() -> None:
    reader = StreamReader(Follower(ChatRequest([])))
    reader.feed(events(piece("all of it"), b"[DONE]"))
    assert (reader.reply().text, reader.reply().reason) == ("all of it", "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"errors": [{"code": "invalid", "message": "in errors"}]}', "in errors"),
        (b'{"error": {"message": "Provider returned error", "metadata": {"raw": "too long"}}}', "error: too long"),
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
