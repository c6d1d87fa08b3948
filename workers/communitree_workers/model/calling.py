"""One call with its tries: the job's cancel, deadline and budget; the limits that all workers share; the endpoint; the
ladder, where the endpoint refuses how the request looks; the waits between tries.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass, replace

from communitree_shared import clock
from communitree_shared.contract.results import Usage
from communitree_shared.errors import (
    DEADLINE_HINT,
    Cancelled,
    ContentRefused,
    ContextTooLong,
    DeadlinePassed,
    ModelError,
    PromptCut,
)
from communitree_shared.settings import ModelSettings
from communitree_shared.tokens import TOKENS_A_WORD
from communitree_workers.model import wire
from communitree_workers.model.chat import CallContext, ChatRequest, HoldHook
from communitree_workers.model.endpoints import ladder, remedies
from communitree_workers.model.endpoints.endpoint import Endpoint
from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.prices import usd
from communitree_workers.model.endpoints.prompt_counts import PromptCounts
from communitree_workers.model.endpoints.retry import Tries
from communitree_workers.model.limits.limiter import Limiter, Limits
from communitree_workers.model.limits.state import BULK
from communitree_workers.model.replies.endings import Ending, ending, named
from communitree_workers.model.transport import Transport

_log = logging.getLogger(__name__)

#: Output tokens reserved for a call that sets no limit and expects no length.
USUAL_OUTPUT = 800

#: Under this name the account counts prompts of which the server read less than was sent.
PROMPT_CUT = "prompt_cut"


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back in the end, what all tries used, and how many they were."""

    raw: wire.RawReply
    usage: Usage
    tries: int


class Caller:
    """Makes calls; holds what was learned of endpoints."""

    def __init__(self, transport: Transport, known: ladder.Ladder, limiter: Limiter, spread: float) -> None:
        self._transport, self._ladder, self._limiter, self._spread = transport, known, limiter, spread
        self._rng = random.Random()  # jitter must differ between processes
        self._counts = PromptCounts()

    async def call(self, endpoint: Endpoint, limits: Limits, request: ChatRequest, context: CallContext) -> Answered:
        """Make one call. What it used is added to `context.spent`, however it ends.

        Raises:
            ContextTooLong, PromptCut, ContentRefused, ModelError, DeadlinePassed, BudgetReached, Cancelled.
        """
        settings = endpoint.settings
        estimate = _estimate(endpoint, request)
        if settings.context_tokens and estimate.prompt_tokens > settings.context_tokens:
            raise ContextTooLong(
                f"The prompt has about {estimate.prompt_tokens} tokens; "
                f"{endpoint.model!r} takes {settings.context_tokens}."
            )
        tries = Tries(settings.tries, self._rng, self._spread)
        hold = await self._reserve(context, estimate)
        try:
            raw = await self._until_answered(endpoint, limits, request, context, estimate, tries)
            return Answered(raw, tries.paid, tries.made)
        finally:
            context.spent = context.spent + tries.paid
            if hold is not None:
                await hold.settle(tries.paid)

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
        self, endpoint: Endpoint, limits: Limits, request: ChatRequest, context: CallContext, estimate: Usage,
        tries: Tries,
    ) -> wire.RawReply:  # fmt: skip
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
                raw = await self._try(endpoint, limits, abilities, body, request, context, estimate, last)
            except CallFailed as failure:
                failure.words = endpoint.scrub(failure.words)
                last = failure
                tries.paid = tries.paid + _usage(failure.counts, endpoint.settings, failure.reason)
                _log.info("model call to %r failed on try %d: %s", endpoint, tries.made, failure.describe())
                if failure.too_long:
                    raise ContextTooLong(
                        f"The prompt is longer than the model takes: {failure.words}", status=failure.status
                    ) from None
                if failure.filtered:
                    raise ContentRefused(
                        f"The provider refuses this content: {failure.words}", status=failure.status
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
                await self._wait(tries, failure, context, endpoint)
                continue
            if request.format_asked:
                if guessed:
                    await self._ladder.learn(endpoint.kind, abilities, guess=True)
                self._ladder.worked(endpoint.kind, abilities.mode)
            if raw.unopened and not abilities.unopened:
                known = replace(abilities, unopened=True)
                await self._ladder.learn(endpoint.kind, known, guess=guessed, keep_mode=not learning)
            odd = "" if ending(raw.reason) is Ending.WHOLE else named(raw.reason)
            counts = raw.counts or (estimate.prompt_tokens, 0, guess_tokens(raw.text))
            tries.paid = tries.paid + _usage(counts, endpoint.settings, odd)
            self._read_all(endpoint, request, estimate, raw, tries)
            return raw

    def _read_all(
        self, endpoint: Endpoint, request: ChatRequest, estimate: Usage, raw: wire.RawReply, tries: Tries
    ) -> None:
        """Raise PromptCut where the server says that it read far less than was sent."""
        ours, counted = estimate.prompt_tokens, request.prompt_tokens > 0
        if not self._counts.read_all(endpoint.kind, request.messages, ours, counted, raw.read):
            tries.paid = tries.paid + Usage(endings={PROMPT_CUT: 1})
            raise PromptCut(
                f"{endpoint.model!r} read {raw.read} tokens of a prompt of about {ours}: its server cuts what is "
                "longer than its context.",
                hint=remedies.NO_CONTEXT,
            )

    async def _try(
        self, endpoint: Endpoint, limits: Limits, abilities: ladder.Abilities, body: bytes, request: ChatRequest,
        context: CallContext, estimate: Usage, last: CallFailed | None,
    ) -> wire.RawReply:  # fmt: skip
        """One request: through the limits, to the endpoint, and what it used back to the limits."""
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
            raw = await self._transport.send(
                endpoint, body, request, endpoint.settings.timeout, left,
                streaming=wire.streamed(request, abilities), unopened=abilities.unopened,
            )  # fmt: skip
            used = (raw.counts[0] + raw.counts[2]) if raw.counts else tokens
            thought_only = raw.thought or raw.apart  # will do so again, at the same price
            if not raw.text.strip() and not thought_only and ending(raw.reason) is not Ending.CUT:
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

    async def _wait(self, tries: Tries, failure: CallFailed, context: CallContext, endpoint: Endpoint) -> None:
        """Sleep until the next try, or raise when there is none."""
        left = None if context.deadline is None else context.deadline - clock.now()
        seconds = tries.wait(failure, time.monotonic(), left)
        if seconds is None:
            tried = f" after {tries.made} tries" if tries.made > 1 else ""
            raise ModelError(
                f"The model endpoint failed{tried}: {failure.describe()}",
                status=failure.status,
                unexplained=failure.unexplained,
                retry_after=failure.retry_after,
                hint=remedies.remedy(failure, endpoint.url),
            ) from None
        if left is not None and seconds >= left:
            raise self._too_late(failure, f"the next try was due in {seconds:.0f} s")
        await asyncio.sleep(seconds)

    @staticmethod
    def _too_late(last: CallFailed | None, why: str) -> DeadlinePassed:
        words = f"The deadline passed before the model answered{f' ({why})' if why else ''}."
        said = words if last is None else f"{words} The last try failed: {last.describe()}"
        return DeadlinePassed(said, hint=DEADLINE_HINT)


def _estimate(endpoint: Endpoint, request: ChatRequest) -> Usage:
    prompt = request.prompt_tokens or sum(guess_tokens(message["content"]) + 4 for message in request.messages)
    expected = int(request.reply_words * TOKENS_A_WORD) or USUAL_OUTPUT
    output = request.max_tokens or endpoint.settings.max_tokens or expected
    return _usage((prompt, 0, output), endpoint.settings)


def _usage(counts: wire.Counts | None, settings: ModelSettings, reason: str = "") -> Usage:
    """The usage of one try. `reason`: how it ended, where that was not its end."""
    endings = {reason: 1} if reason else {}
    if counts is None:
        return Usage(endings=endings)
    usage = Usage(calls=1, prompt_tokens=counts[0], provider_cached_tokens=counts[1], output_tokens=counts[2])
    usage.endings = endings
    usage.usd = usd(usage, settings)
    return usage


def guess_tokens(text: str) -> int:
    """Tokens of a text by its bytes: about four of English, three of Chinese make one."""
    return len(text) // 4 + 1 if text.isascii() else len(text.encode()) // 3 + 1
