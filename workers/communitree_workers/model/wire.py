"""The OpenAI chat format: a request's body, and replies whole or as a stream, read into one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from communitree_workers.model.chat import ChatRequest, Message
from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.ladder import Abilities
from communitree_workers.model.following import Follower
from communitree_workers.model.replies.endings import Ending, ending, named
from communitree_workers.model.replies.thinking import Ear, Spoken

#: Numbers of tokens as a reply gives them: prompt, of these cached by the provider, output.
Counts = tuple[int, int, int]

#: Where endpoints put thinking that they took off themselves.
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


@dataclass(slots=True)
class RawReply:
    """What came back: the text without thinking, why it ended as the endpoint names it, its token counts if it has any.

    `read`: tokens of the prompt that the server says it read, cached ones added; 0: it says nothing. `thought`:
    thinking stood in the text, `unfinished` to its end, `unopened` without its beginning. `apart`: thinking came in a
    field of its own.
    """

    text: str
    reason: str = ""
    counts: Counts | None = None
    read: int = 0
    thought: bool = False
    unfinished: bool = False
    unopened: bool = False
    apart: bool = False


def streamed(request: ChatRequest, abilities: Abilities) -> bool:
    """Whether a request asks for a stream."""
    return abilities.streams == "always" or (abilities.streams == "followed" and request.on_token is not None)


def body(request: ChatRequest, abilities: Abilities, model: str, settings_max: int | None,
         settings_temperature: float | None, extra: dict[str, Any]) -> bytes:  # fmt: skip
    """Return a request's body, without what the endpoint was found not to take."""
    messages = one_message(request.messages) if abilities.one_message else list(request.messages)
    out: dict[str, Any] = {"model": model, "messages": messages}
    max_tokens = request.max_tokens or settings_max
    if max_tokens:
        out[abilities.max_tokens_name] = max_tokens
    temperature = request.temperature if settings_temperature is None else settings_temperature
    if temperature is not None:
        out["temperature"] = temperature
    if request.seed is not None:
        out["seed"] = request.seed
    if streamed(request, abilities):
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


def one_message(messages: Sequence[Message]) -> list[Message]:
    """Return messages without system ones: these stand at the head of the user's, and no role comes twice in a row."""
    out: list[Message] = []
    for message in messages:
        role = "user" if message["role"] in ("system", "developer") else message["role"]
        if out and out[-1]["role"] == role:
            out[-1] = {"role": role, "content": f"{out[-1]['content']}\n\n{message['content']}"}
        else:
            out.append({"role": role, "content": message["content"]})
    return out


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


def whole_reply(raw: bytes, *, json: bool = False) -> RawReply:
    """Read a reply that came in one piece. `json`: its text is to be JSON.

    Raises:
        CallFailed: not a chat reply (some gateways answer 200 with an error or a web page), or one that failed or was
            refused on its way.
    """
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise CallFailed(
            f"the endpoint answered 200 with something that is not JSON: {_start(raw)}", status=502
        ) from None
    if isinstance(data, dict):
        _raise_error(data, None)
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text = _content(message.get("content")) or str(message.get("refusal") or "")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise CallFailed(f"the endpoint answered 200 without a chat reply: {_start(raw)}", status=502) from None
    usage = data.get("usage")
    _raise_error(choice, counts(usage))
    ear = Ear(json=json)
    ear.hear(text)
    unopened = ear.restarted
    return _ended(ear.close(), choice.get("finish_reason"), usage, unopened, _thinks_apart(message))


class StreamReader:
    """Puts a stream of server-sent events together; `feed` takes bytes as they come, cut anywhere."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._rest = b""
        self._ear = Ear(json=follower.json)
        self._reason: Any = None
        self._usage: Any = None
        self._unopened = self._apart = False
        self.done = False

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
        self._usage = event["usage"] if counts(event.get("usage")) else self._usage
        _raise_error(event, counts(self._usage))
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        _raise_error(choices[0], counts(self._usage))
        self._reason = choices[0].get("finish_reason") or self._reason
        delta = choices[0].get("delta") or {}
        if not isinstance(delta, dict):
            return
        self._apart = self._apart or _thinks_apart(delta)
        piece = _content(delta.get("content")) or str(delta.get("refusal") or "")
        if piece:
            self._follower.hear(self._ear, piece)
            self._unopened = self._unopened or self._ear.restarted

    def reply(self) -> RawReply:
        """Return the reply once the stream has ended; raises CallFailed when it ended before its end."""
        if self._rest.startswith(b"data:"):
            self._event(self._rest[5:].strip())
            self._rest = b""
        if self._reason is None and not self.done:
            raise CallFailed("the stream broke off before its end")
        return _ended(self._ear.close(), self._reason, self._usage, self._unopened, self._apart)


def _ended(said: Spoken, reason: Any, usage: Any, unopened: bool, apart: bool) -> RawReply:
    """Return a reply that may be used, whole or in part; raises CallFailed for one that must not."""
    found, name = counts(usage), str(reason or "")
    how = ending(reason)
    if how is Ending.REFUSED:
        words = f"the provider's content filter stopped the reply ({name})"
        raise CallFailed(words, status=400, code="content_filter", counts=found, reason=named(reason))
    if how is Ending.FAILED:
        raise CallFailed(f"the reply failed on its way ({name})", status=502, counts=found, reason=named(reason))
    return RawReply(said.text, name, found, prompt_read(usage), said.thought, said.unfinished, unopened, apart)


def counts(usage: Any) -> Counts | None:
    """Return the token counts of a `usage` object; cached tokens under the names that providers use for them."""
    if not isinstance(usage, dict):
        return None
    prompt, output = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
    if not prompt and not output:
        return None
    return prompt, min(_cached(usage), prompt), output


def prompt_read(usage: Any) -> int:
    """Return how many tokens of the prompt a server says it read, at the most: some leave out what they had cached."""
    prompt = _number(usage.get("prompt_tokens")) if isinstance(usage, dict) else 0
    return prompt + _cached(usage) if prompt else 0


def _cached(usage: dict[str, Any]) -> int:
    details = usage.get("prompt_tokens_details")
    cached = _number(details.get("cached_tokens")) if isinstance(details, dict) else 0
    names = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
    return cached or next((n for name in names if (n := _number(usage.get(name)))), 0)


def _thinks_apart(message: dict[str, Any]) -> bool:
    return any(message.get(name) for name in _REASONING)


def _raise_error(found: dict[str, Any], paid: Counts | None) -> None:
    """Raise the error that stands in a reply, an event or a choice, or in MiniMax's `base_resp`."""
    base = found.get("base_resp")
    error = found.get("error")
    if not error and isinstance(base, dict) and base.get("status_code"):
        error = {"message": base.get("status_msg"), "code": base["status_code"]}
    if error:
        failure = error_in_reply(error)
        failure.counts = paid
        raise failure


def error_words(raw: bytes) -> tuple[str, str]:
    """Return a provider's words and its error code out of an error body of any form."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _start(raw), ""
    found = data[0] if isinstance(data, list) and data else data
    if isinstance(found, dict):
        several = found.get("errors")
        first = several[0] if isinstance(several, list) and several else None
        found = found.get("error") or first or found.get("detail") or found
    if isinstance(found, dict):
        words = found.get("message") or found.get("msg") or orjson.dumps(found).decode()
        inner = found.get("metadata")
        if isinstance(inner, dict) and inner.get("raw"):  # a gateway's "Provider returned error", and what that was
            words = f"{words}: {inner['raw']}"
        return str(words)[:1000], f"{found.get('code') or ''} {found.get('type') or ''}".strip()
    return str(found)[:1000] if isinstance(found, str) else _start(raw), ""


def error_in_reply(error: Any) -> CallFailed:
    """Return the failure that an error inside a 200 reply or a stream stands for."""
    words, code = error_words(orjson.dumps({"error": error}))
    status = next((int(part) for part in code.split() if part.isdigit() and 400 <= int(part) < 600), None)
    return CallFailed(words, status=status or _status_of(CallFailed(words, status=400, code=code)), code=code)


def _status_of(failure: CallFailed) -> int:
    """The status that an error without one would have had."""
    if failure.rate_limited:
        return 429
    if failure.no_address or failure.no_model:
        return 404
    asks_otherwise = failure.no_system or failure.only_stream or failure.no_stream or "invalid" in failure.text
    return 400 if failure.too_long or failure.filtered or failure.no_money or asks_otherwise else 500


def _content(content: Any) -> str:
    """A message's text; some endpoints give it in parts, thinking among them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part(part) for part in content if isinstance(part, dict))
    return ""


def _part(part: dict[str, Any]) -> str:
    if part.get("type") in ("thinking", "reasoning", "redacted_thinking"):
        return ""
    text = part.get("text")
    return str((text.get("content") if isinstance(text, dict) else text) or "")


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def _start(raw: bytes) -> str:
    return " ".join(raw[:600].decode("utf-8", errors="replace").split())[:300]
