"""The provider's HTTP side. Listens on loopback only.

POST /v1/chat/completions (and Azure's form of it), GET /v1/models, GET /stats, GET /bodies; POST /reset takes new
behaviour as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

from aiohttp import web

from support.fake_provider import content
from support.fake_provider.behaviour import Behaviour, Counters
from support.fake_provider.habits import Habit, continued, system_refused


class FakeProvider:
    """Behaviour, counters and the handlers. `bodies` and `headers` keep what the last requests sent."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.counters = Counters()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.url = ""
        self._seen: dict[bytes, int] = {}
        self._touched = 0  # requests that the habit of the behaviour has touched
        self._keep = 200

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=64 * 2**20)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.chat),
                web.post("/openai/deployments/{deployment}/chat/completions", self.chat),
                web.get("/v1/models", self.models),
                web.get("/stats", self.stats),
                web.get("/bodies", self.last),
                web.post("/reset", self.reset),
            ]
        )
        return app

    def forget(self) -> None:
        """Zero the counters and forget the prompts."""
        self.counters = Counters(in_flight=self.counters.in_flight)
        self._seen.clear()
        self._touched = 0
        for kept in (self.bodies, self.headers, self.paths):
            kept.clear()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer a chat request."""
        counters, b = self.counters, self.behaviour
        body = await request.json()
        for kept, item in ((self.bodies, body), (self.headers, dict(request.headers)), (self.paths, request.path_qs)):
            kept.append(item)  # type: ignore[attr-defined]
            del kept[: -self._keep]
        prompt = "\n".join(str(message.get("content") or "") for message in body.get("messages", []))
        digest = hashlib.blake2b(prompt.encode(), digest_size=16).digest()
        tried = self._seen.get(digest, 0)
        self._seen[digest] = tried + 1
        kind = content.kind_of(prompt, request.headers.get("X-Fake-Kind"))
        tokens = content.size(prompt)
        habit = b.habit_of(kind, prompt, tokens, self._touched)
        self._touched += habit is not None
        if habit is not None and habit.special == "truncates":
            tokens, prompt = b.habit_limit, prompt[-4 * b.habit_limit :]
        shape = (body.get("response_format") or {}).get("type", "text")
        counters.requests += 1
        counters.repeated_prompts += tried > 0
        counters.prompt_tokens += tokens
        counters.starts.append(time.monotonic())
        counters.kinds[kind] = counters.kinds.get(kind, 0) + 1
        counters.formats[shape] = counters.formats.get(shape, 0) + 1
        counters.in_flight += 1
        counters.peak_in_flight = max(counters.peak_in_flight, counters.in_flight)
        outcome = "cut_by_client"
        try:
            refusal = self._refusal(request, body, shape, tokens)
            if b.refused_text and kind in {"extract", "claims"} and re.search(b.refused_text, prompt):
                refusal = _error(400, "The content was refused by a filter.", "content_filter")
            if habit is not None and refusal is None:
                refusal = _habitual_refusal(habit, body)
            if refusal is not None:
                outcome = f"refused_{refusal.status}"
                return refusal
            key = digest + tried.to_bytes(4, "big")
            outcome = b.outcome(key) if not b.fault_kinds or kind in b.fault_kinds else "ok"
            if tried < b.fail_first or time.monotonic() < b.away_until:
                outcome = "error"
            if tried < b.break_first and body.get("stream"):
                outcome = "drop"
            if outcome in ("error", "429", "hang"):
                return await self._fault(outcome)
            text, finish = self._text(kind, prompt, digest, body, habit)
            if outcome == "malformed":
                text = content.spoil(text, key, b)
            limit = body.get("max_tokens") or body.get("max_completion_tokens")
            if outcome == "cut" or (limit and content.size(text) > limit):
                text, finish = text[: int(limit * 4 if limit and outcome != "cut" else len(text) * 0.6)], "length"
            special = habit.special if habit is not None else ""
            return await self._answer(request, body, text, finish, tokens, key, outcome, special)
        except (asyncio.CancelledError, ConnectionResetError):
            outcome = "cut_by_client"
            raise
        finally:
            counters.in_flight -= 1
            counters.outcomes[outcome] = counters.outcomes.get(outcome, 0) + 1

    def _text(
        self, kind: str, prompt: str, digest: bytes, body: dict[str, Any], habit: Habit | None
    ) -> tuple[str, str | None]:
        """Return a reply and its `finish_reason`; a request to go on gets what is missing of the reply before."""
        b, messages = self.behaviour, body.get("messages", [])
        begun = continued(messages)
        if begun is not None:
            first = "\n".join(str(message.get("content") or "") for message in messages[:-2])
            whole = b.reply or content.content(
                content.kind_of(first), first, hashlib.blake2b(first.encode(), digest_size=16).digest(), b
            )
            rest = whole[len(begun) :] if whole.startswith(begun) else ""
            # As it is asked to, it begins with the last words once more.
            return (
                begun[-40:].lstrip() + rest if rest else "DONE"
            ), "stop" if habit is None or habit.cuts else habit.finish
        text = b.reply or content.content(kind, prompt, digest, b)
        if habit is None:
            return text, "stop"
        if habit.special == "in_an_object":
            return json.dumps({"answer": text}, ensure_ascii=False), "stop"
        text = text if habit.text is None else habit.text
        return habit.before + text[: int(len(text) * habit.share)] + habit.after, habit.finish

    def _refusal(self, request: web.Request, body: dict[str, Any], shape: str, tokens: int) -> web.Response | None:
        b, counters = self.behaviour, self.counters
        key = request.headers.get("api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if b.api_key and key != b.api_key:
            return _error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        for name in b.refused:
            if name in body:
                other = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                return _error(
                    400, f"Unsupported parameter: '{name}' is not supported with this model.{other}", "unsupported"
                )
        if shape not in b.formats:
            return _error(b.format_status, b.format_words, "")
        if b.context_tokens and tokens > b.context_tokens:
            words = f"This model's maximum context length is {b.context_tokens} tokens, your messages have {tokens}."
            return _error(400, words, "context_length_exceeded")
        busy = b.max_in_flight and counters.in_flight > b.max_in_flight
        last = [start for start in counters.starts[-b.requests_per_minute - 1 :] if start > counters.starts[-1] - 60]
        if busy or (b.requests_per_minute and len(last) > b.requests_per_minute):
            return _too_many(b)
        return None

    async def _fault(self, outcome: str) -> web.Response:
        b = self.behaviour
        if outcome == "hang":
            await asyncio.sleep(3600)
        if outcome == "429":
            return _too_many(b)
        await asyncio.sleep(b.latency / 2)
        return _error(b.error_status, b.error_words, "server_error")

    async def _answer(
        self, request: web.Request, body: dict[str, Any], text: str, finish: str | None, tokens: int, key: bytes,
        outcome: str, special: str = "",
    ) -> web.StreamResponse:  # fmt: skip
        b, counters = self.behaviour, self.counters
        output = content.size(text) if text else 0
        counters.output_tokens += output
        cached = int(tokens * b.cached_share)
        usage = {
            "prompt_tokens": tokens, "completion_tokens": output, "total_tokens": tokens + output,
            "prompt_tokens_details": {"cached_tokens": cached},
        }  # fmt: skip
        head = {"id": f"chatcmpl-{key.hex()[:20]}", "created": 1_700_000_000, "model": body.get("model", "fake")}
        seconds = b.seconds(key, output)
        if body.get("stream"):
            counters.streams += 1
            wanted = b.stream_usage and (body.get("stream_options") or {}).get("include_usage")
            return await self._stream(request, head, text, finish, usage if wanted else None, seconds, outcome, special)
        if seconds:
            await asyncio.sleep(seconds)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "message": message}
        if special == "in_reasoning":
            message.update(content=None, reasoning_content=text)
        if special in ("choice_error", "stream_error", "stream_no_end"):
            message["content"] = text[: len(text) // 2]
            choice["error"] = _GONE
        reply = {
            **head, "object": "chat.completion", **({"usage": usage} if b.usage else {}),
            "choices": [choice],
        }  # fmt: skip
        if outcome == "drop":
            raw = json.dumps(reply).encode()
            response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(raw))})
            await response.prepare(request)
            await response.write(raw[: len(raw) // 2])
            _cut(request)
            return response
        return web.json_response(reply)

    async def _stream(
        self, request: web.Request, head: dict[str, Any], text: str, finish: str | None, usage: dict[str, Any] | None,
        seconds: float, outcome: str, special: str = "",
    ) -> web.StreamResponse:  # fmt: skip
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        words = re.findall(r"\S+\s*|\s+", text)
        group = max(1, len(words) // self.behaviour.pieces)
        parts = ["".join(words[i : i + group]) for i in range(0, len(words), group)]

        async def event(choices: list[dict[str, Any]], **more: Any) -> None:
            data = {**head, "object": "chat.completion.chunk", "choices": choices, **more}
            await response.write(f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode())

        await event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for i, part in enumerate(parts):
            if seconds:
                await asyncio.sleep(seconds / len(parts))
            if outcome == "drop" and i == len(parts) // 2:
                _cut(request)
                return response
            if i == len(parts) // 2 and special in ("choice_error", "stream_error", "stream_no_end"):
                if special == "stream_error":
                    await response.write(f"data: {json.dumps({'error': _GONE})}\n\n".encode())
                elif special == "choice_error":
                    await event([{"index": 0, "delta": {}, "finish_reason": "error", "error": _GONE}])
                await response.write_eof()
                return response
            name = "reasoning_content" if special == "in_reasoning" else "content"
            await event([{"index": 0, "delta": {name: part}, "finish_reason": None}])
        await event([{"index": 0, "delta": {}, "finish_reason": finish}])
        if usage is not None:
            await event([], usage=usage)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def models(self, _: web.Request) -> web.Response:
        """Answer GET /v1/models."""
        return web.json_response({"object": "list", "data": [{"id": "fake", "object": "model", "owned_by": "fake"}]})

    async def stats(self, _: web.Request) -> web.Response:
        """Answer GET /stats."""
        return web.json_response(dataclasses.asdict(self.counters))

    async def last(self, _: web.Request) -> web.Response:
        """Return what the last requests sent."""
        return web.json_response(self.bodies)

    async def reset(self, request: web.Request) -> web.Response:
        """Zero the counters and take new behaviour."""
        changes = await request.json() if request.can_read_body else {}
        known = {f.name for f in dataclasses.fields(Behaviour)}
        if not set(changes) <= known:
            return _error(400, f"unknown: {sorted(set(changes) - known)}", "")
        self.behaviour = dataclasses.replace(self.behaviour, **changes)
        self.forget()
        return web.json_response(dataclasses.asdict(self.behaviour))


#: An error inside a reply that began well.
_GONE = {"code": 502, "message": "The upstream provider went away."}


def _habitual_refusal(habit: Habit, body: dict[str, Any]) -> web.Response | None:
    """Refuse a request as a habit does, if it does."""
    if habit.status:
        return web.json_response(habit.body, status=habit.status)
    if habit.special == "no_system" and system_refused(body.get("messages", [])):
        return _error(400, "System role not supported", "")
    if habit.special == "only_stream" and not body.get("stream"):
        return _error(400, "This model only support stream mode, please enable the stream parameter.", "")
    if habit.special == "no_stream" and body.get("stream"):
        return _error(400, "Unsupported value: 'stream' does not support true with this model.", "")
    if habit.special == "redirects":
        return web.Response(status=307, headers={"Location": "https://models.invalid/v1/chat/completions"})
    return None


def _error(status: int, words: str, code: str, **headers: str) -> web.Response:
    return web.json_response(
        {"error": {"message": words, "type": "error", "code": code}}, status=status, headers=headers
    )


def _too_many(b: Behaviour) -> web.Response:
    headers = {}
    if b.retry_after:
        at = formatdate(time.time() + b.retry_after, usegmt=True)
        headers["Retry-After"] = at if b.retry_after_as_date else f"{b.retry_after:g}"
    return _error(429, "Rate limit reached for requests.", "rate_limit_exceeded", **headers)


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()


@contextlib.asynccontextmanager
async def running_provider(behaviour: Behaviour | None = None, port: int = 0) -> AsyncIterator[FakeProvider]:
    """Run a provider in this loop; `url` is its base URL, with /v1."""
    provider = FakeProvider(behaviour)
    runner = web.AppRunner(provider.app(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048)
        await site.start()
        provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield provider
    finally:
        await runner.cleanup()
