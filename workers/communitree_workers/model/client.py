"""The chat client: everything that costs money goes through `ModelClient.complete`.

One client for a process, used from one asyncio loop. `calling` makes the calls; here their replies become what a stage
may take: whole or cut, never a refusal, JSON read tolerantly, with one call more at most where a reply cannot be read
or nobody can tell whether it ended.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import logging
from dataclasses import replace
from functools import cache
from typing import Any

import redis.asyncio

from communitree_shared.errors import (
    BadInput,
    ContentRefused,
    ModelError,
    OutputCut,
    UsageError,
)
from communitree_shared.settings import MODEL_STAGES, ModelStage, Settings
from communitree_workers.model.calling import Answered, Caller, guess_tokens
from communitree_workers.model.chat import CallContext, ChatRequest, CutReply, Message, Reply, WholeReply
from communitree_workers.model.endpoints import ladder, remedies
from communitree_workers.model.endpoints.endpoint import Endpoint
from communitree_workers.model.endpoints.prices import price_known
from communitree_workers.model.limits.limiter import Limiter, Limits
from communitree_workers.model.replies import reading as reply
from communitree_workers.model.replies.endings import Ending, ending, named
from communitree_workers.model.replies.joining import is_done, rest_of, seems_finished
from communitree_workers.model.replies.tidying import is_refusal
from communitree_workers.model.transport import Transport
from communitree_workers.model.watch import Watch

__all__ = ["CallContext", "ChatRequest", "CutReply", "Message", "ModelClient", "Reply", "WholeReply"]

_log = logging.getLogger(__name__)


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
        prefix = key_prefix.rstrip(":")
        self._transport = Transport()
        self._limiter = Limiter(redis, prefix)
        self._caller = Caller(self._transport, ladder.Ladder(redis, prefix), self._limiter, spread)
        self._endpoints: dict[str, Endpoint] = {}
        self._limits: dict[str, Limits] = {}
        self._watch = Watch()

    def __repr__(self) -> str:
        return f"<ModelClient {sorted(self._endpoints)}>"

    async def close(self) -> None:
        """Close connections and give back what is still reserved at the limits."""
        self._watch.close()
        await self._limiter.close()
        await self._transport.close()

    async def complete(self, stage: ModelStage, request: ChatRequest, context: CallContext) -> Reply:
        """Make one call and return its reply.

        Raises:
            ContextTooLong: the prompt is longer than the model takes; split it. PromptCut, one of these: the server
                took it and read less than was sent.
            OutputCut: no text at all came before the limit on output, or nothing but thinking.
            ContentRefused: a filter refused prompt or reply, or the reply is nothing but a refusal.
            DeadlinePassed, BudgetReached, Cancelled: the job's end came first.
            ModelError: the endpoint refused, in its own words, or failed on every try.
            UsageError: the settings of this stage do not do.
        """
        endpoint = self._priced(stage, context)
        with self._watch.over(context):
            first = await self._call(endpoint, request, context)
            if request.wants_json:
                return await self._parsed(endpoint, request, context, first)
            _not_refused(first)
            how = ending(first.raw.reason)
            if how is Ending.WHOLE:
                return WholeReply(text=first.raw.text, **_told(first, endpoint))
            part = CutReply(part=first.raw.text, why=_why(first), **_told(first, endpoint))
            return part if how is Ending.CUT else await self._go_on(endpoint, request, part, context)

    async def go_on(self, stage: ModelStage, request: ChatRequest, cut: CutReply, context: CallContext) -> Reply:
        """Ask once for what is missing of a cut reply to a request; return both as one.

        Whoever follows the request is told the rest; `usage` and `tries` are those of both calls. A call that fails
        leaves the cut reply as it was.

        Raises:
            Cancelled: the job was cancelled.
        """
        endpoint = self._priced(stage, context)
        with self._watch.over(context):
            return await self._go_on(endpoint, request, cut, context)

    async def whole(self, stage: ModelStage, request: ChatRequest, context: CallContext) -> WholeReply:
        """Make a call that is of no use in part; where its reply is cut, ask once for the rest.

        Raises:
            OutputCut: it is cut all the same. ModelError, Cancelled, UsageError: as `complete`.
        """
        reply = await self.complete(stage, request, context)
        if isinstance(reply, CutReply):
            reply = await self.go_on(stage, request, reply, context)
        return reply.whole()

    async def _call(self, endpoint: Endpoint, request: ChatRequest, context: CallContext) -> Answered:
        """Make one call; a reply without text is none."""
        got = await self._caller.call(endpoint, self._limits[endpoint.identity], request, context)
        if got.raw.text.strip():
            return got
        if got.raw.apart and ending(got.raw.reason) is not Ending.CUT:
            why = "stood in its reasoning alone, and the reply itself was empty"
        elif got.raw.unfinished or got.raw.thought or got.raw.apart:
            why = f"was nothing but thinking, without an end ({named(got.raw.reason)})"
        else:
            why = "reached its length limit before any text came"
        raise OutputCut(f"The reply of {endpoint.model!r} {why}.", hint=remedies.NO_TEXT)

    async def _go_on(self, endpoint: Endpoint, request: ChatRequest, cut: CutReply, context: CallContext) -> Reply:
        again = _again(request, cut.part, _prompt("go_on"))
        try:
            second = await self._call(endpoint, again, context)
            _not_refused(second)
        except ModelError as error:
            _log.info("the call that was to go on with a reply failed: %s", error.message)
            return cut
        told = _told(second, endpoint)
        told |= {"usage": cut.usage + second.usage, "tries": cut.tries + second.tries, "read": cut.read}
        how, text = ending(second.raw.reason), cut.part
        if is_done(second.raw.text):  # a limit that was reached is believed before a model that says it was not
            finished = ending(cut.reason) is not Ending.CUT or seems_finished(text)
        else:
            added = rest_of(text, second.raw.text, prose=not request.wants_json)
            finished, text = how is Ending.WHOLE, text + added
            if request.on_token is not None and added:
                request.on_token(added)
        why = f"{cut.why}, and so did its continuation"
        if not request.wants_json:
            return WholeReply(text=text, **told) if finished else CutReply(part=text, why=why, **told)
        try:
            reading = reply.read(text, ended=finished)
        except BadInput:
            return CutReply(part=text, held=cut.held, why=why, **told)
        if finished and _closed(reading, how):
            return WholeReply(text=text, value=reading.value, **told)
        return CutReply(part=text, held=reading.value, why=why, **told)

    # -- JSON

    async def _parsed(self, endpoint: Endpoint, request: ChatRequest, context: CallContext, first: Answered) -> Reply:
        """Read the JSON of a reply; where there is none, or not all of it, ask the model once to put it right."""
        try:
            found = _read(first, endpoint)
        except BadInput:
            if ending(first.raw.reason) is Ending.CUT:
                return CutReply(part=first.raw.text, why=_why(first), **_told(first, endpoint))
            found = None
        if found is not None and (isinstance(found, WholeReply) or ending(first.raw.reason) is not Ending.WHOLE):
            return _counted(found, context)
        again = _again(request, first.raw.text, _prompt("repair"))
        try:
            second = await self._call(endpoint, again, context)
        except ModelError as error:  # no money or no time left for it, or the endpoint fails: the text is still there
            _log.info("the repair call failed: %s", error.message)
            if found is None:
                _not_refused(first)
            return found or WholeReply(text=first.raw.text, **_told(first, endpoint))
        try:
            better = _read(second, endpoint)
        except BadInput:
            if found is None:
                _not_refused(first)
                _not_refused(second)
            better = found or WholeReply(text=first.raw.text, **_told(first, endpoint))
        if isinstance(better, CutReply) and found is not None and better.held is None:
            better = found
        usage, tries = first.usage + second.usage, first.tries + second.tries
        return _counted(replace(better, repairs=better.repairs + 1, usage=usage, tries=tries), context)

    def _priced(self, stage: ModelStage, context: CallContext) -> Endpoint:
        endpoint = self._endpoint(stage)
        if context.budget is not None and context.budget.usd is not None and not price_known(endpoint.settings):
            raise UsageError(
                f"The price of {endpoint.model!r} is unknown, so a budget in money cannot be kept.",
                hint="Set COMMUNITREE_LLM_PRICE_INPUT and COMMUNITREE_LLM_PRICE_OUTPUT (USD per million tokens).",
            )
        return endpoint

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


def _told(got: Answered, endpoint: Endpoint) -> dict[str, Any]:
    raw = got.raw
    return {
        "reason": raw.reason, "usage": got.usage, "read": raw.read, "thought": raw.thought or raw.apart,
        "tries": got.tries, "model": endpoint.model,
    }  # fmt: skip


def _why(got: Answered) -> str:
    name = named(got.raw.reason)
    return f"it ended with {name!r}" if got.raw.reason else "the endpoint did not say that it ended"


def _not_refused(got: Answered) -> None:
    if is_refusal(got.raw.text):
        raise ContentRefused(f"The model refuses this content: {' '.join(got.raw.text.split())}")


def _read(got: Answered, endpoint: Endpoint) -> Reply:
    """Return the reply with its JSON; raises BadInput where there is none."""
    how = ending(got.raw.reason)
    reading = reply.read(got.raw.text, ended=how is Ending.WHOLE)
    told = {**_told(got, endpoint), "repairs": reading.repairs}
    if how is not Ending.CUT and _closed(reading, how):
        return WholeReply(text=got.raw.text, value=reading.value, **told)
    why = "its JSON ended inside" if how is Ending.WHOLE else _why(got)
    return CutReply(part=got.raw.text, held=reading.value, why=why, **told)


def _closed(reading: reply.Reading, how: Ending) -> bool:
    """Whether JSON came to its end; the last bracket may be missing where the model ended by itself."""
    return not reading.cut or (reading.slip and how is Ending.WHOLE)


def _counted(found: Reply, context: CallContext) -> Reply:
    if not found.repairs:
        return found
    context.spent.repaired += 1
    return replace(found, usage=found.usage.model_copy(update={"repaired": 1}))


def _again(request: ChatRequest, said: str, words: str) -> ChatRequest:
    """The request with its reply and what is asked about that; nobody follows it."""
    more: list[Message] = [{"role": "assistant", "content": said}, {"role": "user", "content": words}]
    tokens = request.prompt_tokens + guess_tokens(said) + guess_tokens(words) if request.prompt_tokens else 0
    return replace(request, messages=[*request.messages, *more], prompt_tokens=tokens, on_token=None)


@cache
def _prompt(name: str) -> str:
    path = importlib.resources.files("communitree_workers.model") / "prompts" / f"{name}.txt"
    return path.read_text(encoding="utf-8").strip()
