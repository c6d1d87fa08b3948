"""The OpenAI chat format: a request's body, and replies whole or as a stream, read into one form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from communitree_workers.model.chat import ChatRequest, FinishReason
from communitree_workers.model.ladder import Abilities
from communitree_workers.model.retry import CallFailed

#: Numbers of tokens as a reply gives them: prompt, of these cached by the provider, output.
Counts = tuple[int, int, int]

_STOPS: dict[str, FinishReason] = {"length": "length", "max_tokens": "length", "model_length": "length"}


@dataclass(slots=True)
class RawReply:
    """What came back: the text, why it ended, and the provider's token counts (None where it gives none)."""

    text: str
    finish: FinishReason
    counts: Counts | None


def body(request: ChatRequest, abilities: Abilities, model: str, settings_max: int | None,
         settings_temperature: float | None, extra: dict[str, Any]) -> bytes:  # fmt: skip
    """Return a request's body, without what the endpoint was found not to take."""
    out: dict[str, Any] = {"model": model, "messages": list(request.messages)}
    max_tokens = request.max_tokens or settings_max
    if max_tokens:
        out[abilities.max_tokens_name] = max_tokens
    temperature = request.temperature if settings_temperature is None else settings_temperature
    if temperature is not None:
        out["temperature"] = temperature
    if request.seed is not None:
        out["seed"] = request.seed
    if request.on_token is not None:
        out["stream"] = True
        out["stream_options"] = {"include_usage": True}
    if request.format_asked:
        shape = response_format(abilities.mode, request.schema)
        if shape is not None:
            out["response_format"] = shape
    out.update(extra)
    for name in abilities.dropped:
        out.pop(name, None)
    return orjson.dumps(out, option=orjson.OPT_NON_STR_KEYS)


def response_format(mode: Literal["json_schema", "json_object", "text"], schema: dict[str, Any] | None) -> Any:
    """Return the `response_format` of a rung, None for plain text. Not strict: strict mode refuses `maxItems`."""
    if mode == "text":
        return None
    if mode == "json_schema" and schema is not None:
        return {
            "type": "json_schema",
            "json_schema": {"name": str(schema.get("title") or "reply"), "schema": schema, "strict": False},
        }
    return {"type": "json_object"}


def whole_reply(raw: bytes) -> RawReply:
    """Read a reply that came in one piece.

    Raises:
        CallFailed: not a chat reply; some gateways answer 200 with an error or a web page.
    """
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise CallFailed(
            f"the endpoint answered 200 with something that is not JSON: {_start(raw)}", status=502
        ) from None
    if isinstance(data, dict) and data.get("error"):
        raise error_in_reply(data["error"])
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text = _content(message.get("content")) or str(message.get("refusal") or "")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise CallFailed(f"the endpoint answered 200 without a chat reply: {_start(raw)}", status=502) from None
    return RawReply(text, _finish(choice.get("finish_reason")), counts(data.get("usage")))


class StreamReader:
    """Puts a stream of server-sent events together; `feed` takes bytes as they come, cut anywhere."""

    def __init__(self, on_token: Callable[[str], None] | None) -> None:
        self._on_token = on_token
        self._rest = b""
        self._parts: list[str] = []
        self._reason: str | None = None
        self._counts: Counts | None = None
        self.done = False
        self.handed_out = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises CallFailed when the stream carries an error."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip())

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        if not data:
            return
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise CallFailed(f"the stream holds something that is not JSON: {_start(data)}", status=502) from None
        if not isinstance(event, dict):
            return
        if event.get("error"):
            raise error_in_reply(event["error"])
        self._counts = counts(event.get("usage")) or self._counts
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        self._reason = choices[0].get("finish_reason") or self._reason
        delta = choices[0].get("delta") or {}
        piece = _content(delta.get("content")) or str(delta.get("refusal") or "") if isinstance(delta, dict) else ""
        if piece:
            self._parts.append(piece)
            if self._on_token is not None:
                self.handed_out = True
                self._on_token(piece)

    def reply(self) -> RawReply:
        """Return the reply once the stream has ended; raises CallFailed when it ended before its end."""
        if self._rest.startswith(b"data:"):
            self._event(self._rest[5:].strip())
            self._rest = b""
        if self._reason is None and not self.done:
            raise CallFailed("the stream broke off before its end")
        return RawReply("".join(self._parts), _finish(self._reason), self._counts)


def counts(usage: Any) -> Counts | None:
    """Return the token counts of a `usage` object; cached tokens under the names that providers use for them."""
    if not isinstance(usage, dict):
        return None
    prompt, output = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
    if not prompt and not output:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _number(details.get("cached_tokens")) if isinstance(details, dict) else 0
    cached = cached or _number(usage.get("prompt_cache_hit_tokens")) or _number(usage.get("cached_tokens"))
    return prompt, min(cached, prompt), output


def error_words(raw: bytes) -> tuple[str, str]:
    """Return a provider's words and its error code out of an error body of any form."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _start(raw), ""
    found = data[0] if isinstance(data, list) and data else data
    if isinstance(found, dict):
        found = found.get("error") or found.get("detail") or found.get("message") or found
    if isinstance(found, dict):
        words = found.get("message") or found.get("msg") or orjson.dumps(found).decode()
        return str(words)[:1000], f"{found.get('code') or ''} {found.get('type') or ''}".strip()
    return str(found)[:1000] if isinstance(found, str) else _start(raw), ""


def error_in_reply(error: Any) -> CallFailed:
    """Return the failure that an error inside a 200 reply or a stream stands for."""
    words, code = error_words(orjson.dumps({"error": error}))
    status = next((int(part) for part in code.split() if part.isdigit() and 400 <= int(part) < 600), None)
    if status is None:
        status = (
            429 if "rate" in code.lower() and "limit" in code.lower() else 400 if "invalid" in code.lower() else 500
        )
    return CallFailed(words, status=status, code=code)


def _content(content: Any) -> str:
    """A message's text; some endpoints give it in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return ""


def _finish(reason: Any) -> FinishReason:
    if reason == "content_filter":
        raise CallFailed("the provider's content filter stopped the reply", status=400, code="content_filter")
    return _STOPS.get(str(reason), "stop")


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def _start(raw: bytes) -> str:
    return " ".join(raw[:600].decode("utf-8", errors="replace").split())[:300]
