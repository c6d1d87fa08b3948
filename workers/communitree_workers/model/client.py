"""The chat client: everything that costs money goes through `ModelClient.complete`.

One client for a process, used from one asyncio loop. A call passes, in this order: the job's cancel, deadline and
budget; the limits that all workers share; the endpoint; the ladder, when the endpoint refuses the reply's format; the
waits between tries; the tolerant reading of JSON, with one repair call at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.resources
import logging
import random
import time
from dataclasses import replace
from typing import Any

import redis.asyncio

from communitree_shared import clock
from communitree_shared.contract.results import Usage
from communitree_shared.errors import (
    BadInput,
    Cancelled,
    ContextTooLong,
    DeadlinePassed,
    ModelError,
    OutputCut,
    UsageError,
)
from communitree_shared.settings import MODEL_STAGES, ModelSettings, ModelStage, Settings
from communitree_shared.tokens import TOKENS_A_WORD
from communitree_workers.model import ladder, reply, wire
from communitree_workers.model.chat import CallContext, ChatRequest, Completion, HoldHook, Message
from communitree_workers.model.endpoint import Endpoint
from communitree_workers.model.limits.limiter import Limiter, Limits
from communitree_workers.model.limits.state import BULK
from communitree_workers.model.prices import price_known, usd
from communitree_workers.model.retry import CallFailed, Tries
from communitree_workers.model.transport import Transport
from communitree_workers.model.watch import Watch

__all__ = ["CallContext", "ChatRequest", "Completion", "Message", "ModelClient"]

_log = logging.getLogger(__name__)

#: Output tokens reserved for a call that sets no limit and expects no length.
USUAL_OUTPUT = 800


class ModelClient:
    """Makes model calls for all stages of one process.

    `spread` scales the waits between tries (1.0: six tries over two to three minutes); tests shrink it.
    """

    def __init__(
        self,
        settings: Settings,
        redis: redis.asyncio.Redis | None = None,
        key_prefix: str = "communitree",
        *,
        spread: float = 1.0,
    ) -> None:
        self._settings = settings
        self._prefix = key_prefix.rstrip(":")
        self._spread = spread
        self._transport = Transport()
        self._ladder = ladder.Ladder(redis, self._prefix)
        self._limiter = Limiter(redis, self._prefix)
        self._endpoints: dict[str, Endpoint] = {}
        self._limits: dict[str, Limits] = {}
        self._rng = random.Random()  # jitter must differ between processes
        self._watch = Watch()
        self._repair_prompt = ""

    def __repr__(self) -> str:
        return f"<ModelClient {sorted(self._endpoints)}>"

    async def close(self) -> None:
        """Close connections and give back what is still reserved at the limits."""
        self._watch.close()
        await self._limiter.close()
        await self._transport.close()

    async def complete(self, stage: ModelStage, request: ChatRequest, context: CallContext) -> Completion:
        """Make one call and return its reply.

        Raises:
            ContextTooLong: the prompt is longer than the model takes; split it.
            OutputCut: the limit on output left no text at all (`finish_reason` "length" is no error otherwise).
            DeadlinePassed, BudgetReached, Cancelled: the job's end came first.
            ModelError: the endpoint refused, in its own words, or failed on every try.
            UsageError: the settings of this stage do not do.
        """
        endpoint = self._endpoint(stage)
        if context.budget is not None and context.budget.usd is not None and not price_known(endpoint.settings):
            raise UsageError(
                f"The price of {endpoint.model!r} is unknown, so a budget in money cannot be kept.",
                hint="Set COMMUNITREE_LLM_PRICE_INPUT and COMMUNITREE_LLM_PRICE_OUTPUT (USD per million tokens).",
            )
        with self._watch.over(context):
            first = await self._call(endpoint, request, context)
            return await self._parsed(endpoint, request, context, first) if request.wants_json else first

    # -- one call, with its tries

    async def _call(self, endpoint: Endpoint, request: ChatRequest, context: CallContext) -> Completion:
        settings = endpoint.settings
        estimate = self._estimate(endpoint, request)
        if settings.context_tokens and estimate.prompt_tokens > settings.context_tokens:
            raise ContextTooLong(
                f"The prompt has about {estimate.prompt_tokens} tokens; "
                f"{endpoint.model!r} takes {settings.context_tokens}."
            )
        tries = Tries(settings.tries, self._rng, self._spread)
        hold = await self._reserve(context, estimate)
        try:
            completion = await self._until_answered(endpoint, request, context, estimate, tries)
        finally:
            context.spent = context.spent + tries.paid
            if hold is not None:
                await hold.settle(tries.paid)
        if not completion.text:
            raise OutputCut(
                f"The reply of {endpoint.model!r} reached its length limit before any text came.",
                hint="Raise COMMUNITREE_LLM_MAX_TOKENS; reasoning models need room to think.",
            )
        return completion

    async def _reserve(self, context: CallContext, estimate: Usage) -> HoldHook | None:
        if context.budget is None:
            return None
        while True:
            hold = await context.budget.reserve(estimate)
            if hold is not None:
                return hold
            self._may_go_on(context, None)
            await asyncio.sleep(0.2)

    async def _until_answered(
        self, endpoint: Endpoint, request: ChatRequest, context: CallContext, estimate: Usage, tries: Tries
    ) -> Completion:
        settings = endpoint.settings
        learning = settings.json_mode == "auto"
        abilities, guessed = await self._ladder.start(endpoint.kind, settings.json_mode), False
        last: CallFailed | None = None
        while True:
            self._may_go_on(context, last)
            tries.made += 1
            body = wire.body(
                request, abilities, endpoint.model, settings.max_tokens, settings.temperature, settings.extra_body
            )
            try:
                raw = await self._try(endpoint, body, request, context, estimate, last)
            except CallFailed as failure:
                failure.words = endpoint.scrub(failure.words)
                last = failure
                tries.paid = tries.paid + _usage(failure.counts, endpoint.settings)
                _log.info("model call to %r failed on try %d: %s", endpoint, tries.made, failure.describe())
                if failure.too_long:
                    raise ContextTooLong(
                        f"The prompt is longer than the model takes: {failure.words}", status=failure.status
                    ) from None
                other = ladder.refused(abilities, failure, request.format_asked and learning)
                if other is not None:
                    abilities = other
                    await self._ladder.learn(endpoint.kind, other, keep_mode=not learning)
                    continue
                proven = not learning or self._ladder.is_proven(endpoint.kind, abilities.mode)
                other = ladder.suspected(abilities, failure, request.format_asked, proven, tries.failed + 1)
                if other is not None:
                    abilities, guessed = other, True
                    if not failure.retryable:
                        continue
                await self._wait(tries, failure, context)
                continue
            if request.format_asked:
                if guessed:
                    await self._ladder.learn(endpoint.kind, abilities, guess=True)
                self._ladder.worked(endpoint.kind, abilities.mode)
            counts = raw.counts or (estimate.prompt_tokens, 0, _guess_tokens(raw.text))
            tries.paid = tries.paid + _usage(counts, endpoint.settings)
            return Completion(raw.text, None, raw.finish, tries.paid, 0, tries.made, endpoint.model)

    async def _try(
        self, endpoint: Endpoint, body: bytes, request: ChatRequest, context: CallContext, estimate: Usage,
        last: CallFailed | None,
    ) -> wire.RawReply:  # fmt: skip
        """One request: through the limits, to the endpoint, and what it used back to the limits."""
        limits = self._limits[endpoint.identity]
        tokens = estimate.prompt_tokens + estimate.output_tokens
        try:
            flow = (context.tenant, BULK if context.bulk else context.job)
            permit = await self._limiter.acquire(limits, flow, tokens, context.deadline)
        except TimeoutError:
            raise self._too_late(last, "it was still waiting for the limits on the endpoint") from None
        used = 0
        failure: CallFailed | None = None
        try:
            left = None if context.deadline is None else context.deadline - clock.now()
            raw = await self._transport.send(endpoint, body, request, endpoint.settings.timeout, left)
            used = (raw.counts[0] + raw.counts[2]) if raw.counts else tokens
            if not raw.text and raw.finish == "stop":
                raise CallFailed("the endpoint answered with an empty text", status=502, counts=raw.counts)
            return raw
        except CallFailed as error:
            failure = error
            # An endpoint that did not answer may have counted the request; one that refused it has not.
            used = tokens if error.status is None else used
            raise
        except asyncio.CancelledError:
            used = tokens
            raise
        finally:
            limited = failure is not None and failure.rate_limited
            wait = (failure.retry_after if failure is not None else None) or 1.0
            permit.settle(used, cool_down=min(wait, 120.0) if limited else 0.0, ok=failure is None)

    def _may_go_on(self, context: CallContext, last: CallFailed | None) -> None:
        if context.is_cancelled():
            raise Cancelled("The job was cancelled.")
        if context.deadline is not None and clock.now() >= context.deadline:
            raise self._too_late(last, "there was no time for a try" if last is None else "")

    async def _wait(self, tries: Tries, failure: CallFailed, context: CallContext) -> None:
        """Sleep until the next try, or raise when there is none."""
        left = None if context.deadline is None else context.deadline - clock.now()
        seconds = tries.wait(failure, time.monotonic(), left)
        if seconds is None:
            tried = f" after {tries.made} tries" if tries.made > 1 else ""
            raise ModelError(
                f"The model endpoint failed{tried}: {failure.describe()}",
                status=failure.status,
                retry_after=failure.retry_after,
            ) from None
        if left is not None and seconds >= left:
            raise self._too_late(failure, f"the next try was due in {seconds:.0f} s")
        await asyncio.sleep(seconds)

    @staticmethod
    def _too_late(last: CallFailed | None, why: str) -> DeadlinePassed:
        words = f"The deadline passed before the model answered{f' ({why})' if why else ''}."
        return DeadlinePassed(words if last is None else f"{words} The last try failed: {last.describe()}")

    # -- JSON

    async def _parsed(
        self, endpoint: Endpoint, request: ChatRequest, context: CallContext, first: Completion
    ) -> Completion:
        """Read the JSON of a reply; where there is none, ask the model once to put it right."""
        try:
            value, repairs = reply.parse_json(first.text, ended=first.finish_reason == "stop")
            return self._counted(first, value, repairs, context)
        except BadInput:
            if first.finish_reason == "length":
                return first
        again = replace(
            request,
            messages=[
                *request.messages,
                {"role": "assistant", "content": first.text},
                {"role": "user", "content": self._ask_again()},
            ],
            prompt_tokens=first.usage.prompt_tokens + first.usage.output_tokens + 100,
            on_token=None,
        )
        try:
            second = await self._call(endpoint, again, context)
        except ModelError as error:  # no money or no time left for it, or the endpoint fails: the text is still there
            _log.info("the repair call failed: %s", error.message)
            return first
        both = replace(second, usage=first.usage + second.usage, tries=first.tries + second.tries)
        try:
            value, repairs = reply.parse_json(second.text, ended=second.finish_reason == "stop")
        except BadInput:
            return self._counted(replace(both, text=first.text, finish_reason="stop"), None, 1, context)
        return self._counted(both, value, repairs + 1, context)

    @staticmethod
    def _counted(completion: Completion, value: Any, repairs: int, context: CallContext) -> Completion:
        usage = completion.usage
        if repairs:
            usage = usage.model_copy(update={"repaired": 1})
            context.spent.repaired += 1
        return replace(completion, value=value, repairs=repairs, usage=usage)

    def _ask_again(self) -> str:
        if not self._repair_prompt:
            path = importlib.resources.files("communitree_workers.model") / "prompts" / "repair.txt"
            self._repair_prompt = path.read_text(encoding="utf-8").strip()
        return self._repair_prompt

    # -- endpoints and watching

    def _endpoint(self, stage: ModelStage) -> Endpoint:
        endpoint = self._endpoints.get(stage)
        if endpoint is None:
            settings = self._settings.model(stage)
            if settings.built_in:
                raise UsageError("The built-in model `extractive` is not called over HTTP.")
            endpoint = Endpoint(settings)
            self._endpoints[stage] = endpoint
            self._limits = self._limits or self._all_limits()
        return endpoint

    def _all_limits(self) -> dict[str, Limits]:
        """Stages with the same endpoint, model and key share its limits: the strictest that any of them names."""
        found: dict[str, Limits] = {}
        for stage in MODEL_STAGES:
            settings = self._settings.model(stage)
            if settings.built_in or not settings.base_url:
                continue
            with contextlib.suppress(UsageError):
                identity = Endpoint(settings).identity
                limits = Limits.of(identity, settings)
                found[identity] = limits.strictest(found[identity]) if identity in found else limits
        return found

    def _estimate(self, endpoint: Endpoint, request: ChatRequest) -> Usage:
        prompt = request.prompt_tokens or sum(_guess_tokens(message["content"]) + 4 for message in request.messages)
        expected = int(request.reply_words * TOKENS_A_WORD) or USUAL_OUTPUT
        output = request.max_tokens or endpoint.settings.max_tokens or expected
        return _usage((prompt, 0, output), endpoint.settings)


def _usage(counts: wire.Counts | None, settings: ModelSettings) -> Usage:
    if counts is None:
        return Usage()
    usage = Usage(calls=1, prompt_tokens=counts[0], provider_cached_tokens=counts[1], output_tokens=counts[2])
    usage.usd = usd(usage, settings)
    return usage


def _guess_tokens(text: str) -> int:
    """Tokens of a text by its bytes: about four of English, three of Chinese make one. For reservations only."""
    return len(text) // 4 + 1 if text.isascii() else len(text.encode()) // 3 + 1
