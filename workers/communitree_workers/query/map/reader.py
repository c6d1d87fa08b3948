"""Reading a batch with a model: whole, or where it cannot be read whole, in halves, down to one report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from communitree_shared.errors import BadInput, CommunitreeError, ContentRefused, ContextTooLong, ModelError, UsageError
from communitree_workers.model.chat import ChatRequest, CutReply, WholeReply
from communitree_workers.model.inflight import result_key
from communitree_workers.prompts import load
from communitree_workers.query.batches.batch import Batch, can_split, split_batch
from communitree_workers.query.map.outcome import BatchOutcome, MapResult, joined
from communitree_workers.query.map.prompt import map_messages, map_schema
from communitree_workers.query.map.reply import at_limit, parse_points, unusable
from communitree_workers.query.question.question import Question
from communitree_workers.query.wording.phrases import say
from communitree_workers.runtime.context import UnitContext

#: A batch whose reply was cut off is read in halves, these in quarters and eighths; so is a report that is too long.
MAX_HALVINGS = 3


class Reader:
    """Reads one batch for a question; `call` holds what that has cost, `outcome` what became of it."""

    def __init__(self, context: UnitContext, question: Question) -> None:
        self.context, self.question, self.options = context, question, question.options
        usd = context.args.get("usd", question.selection.budget_usd)
        self.call = context.call(usd=usd, bulk=question.options.bulk)
        endpoint = context.services.settings.model("map")
        self.may_cache, self.model = endpoint.cache, endpoint.model
        self.calls = self.tries = self.halves = 0
        self.unread: dict[int, str] = {}
        self.outcome: dict[str, Any] = {}

    def key(self, batch: str) -> str:
        """Return the key of this batch's result: all that it depends on."""
        answer = self.options.answer.model_dump(
            include={"map_max_length", "map_max_tokens", "map_temperature", "json_mode"}
        )
        prompt = load("map", self.question.language, self.options.prompts)
        return result_key(
            "map",
            batch,
            self.question.text,
            self.question.language,
            prompt,
            self.model,
            answer,
            self.options.seed,
        )  # fmt: skip

    async def fresh(self, batch: Batch) -> dict[str, Any] | None:
        """Read a batch; return its outcome as JSON, with how many calls it took, or None where it is not to be kept.

        One that left a report out is not: other settings, or another day, may read it.
        """
        result = await self.read(batch)
        outcome = BatchOutcome(
            "answered", batch.reports, result, retried=int(self.tries > self.calls), halves=self.halves,
            at_limit=at_limit(result, self.options.answer), unread=self.unread,
        )  # fmt: skip
        self.outcome = {"batch": outcome.to_json(), "calls": self.calls}
        return None if self.unread else self.outcome

    async def read(self, batch: Batch, depth: int = 0) -> MapResult:
        """Return what a batch holds for the question, or a part of one at this depth.

        Raises:
            CommunitreeError: no part of it could be read.
        """
        chat = self._chat(batch)
        try:
            reply = await self.context.services.models.complete("map", chat, self.call)
        except ModelError as error:
            if await self._halving_helps(error, batch, depth):
                return await self._halves(batch, depth)
            raise
        self.calls += 1
        self.tries += reply.tries
        if isinstance(reply, CutReply):
            if depth < MAX_HALVINGS and can_split(batch):
                return await self._halves(batch, depth)
            reply = reply.whole()  # points of what nobody read to the end would pass for all
        return await self._points(reply, batch, chat)

    def _chat(self, batch: Batch) -> ChatRequest:
        answer = self.options.answer
        return ChatRequest(
            messages=map_messages(batch, self.question.text, answer, self.question.language, self.options.prompts),
            schema=map_schema(anchors=bool(batch.anchors)),
            json=True,
            as_format=answer.json_mode,
            max_tokens=answer.map_max_tokens,
            temperature=answer.map_temperature,
            seed=self.options.seed,
            prompt_tokens=batch.prompt_tokens,
            reply_words=answer.map_max_length,
        )

    async def _halving_helps(self, error: ModelError, batch: Batch, depth: int) -> bool:
        """Say whether parts of a batch may be read that is refused as a whole.

        Too long, or refused for its content: down to one report, and one that is too long in parts. Refused without a
        known cause: once a job, for it may be the request that the endpoint dislikes, and not what stands in it.
        """
        several = len(batch.reports) > 1
        if isinstance(error, ContentRefused):
            return several
        if isinstance(error, ContextTooLong):
            return several or (depth <= MAX_HALVINGS and can_split(batch))
        if error.unexplained and depth == 0 and several:
            return await self.context.in_ledger(self.context.first_in_job, "halved")
        return False

    async def _halves(self, batch: Batch, depth: int) -> MapResult:
        """Read two halves. One that fails for good costs not the other: its reports are named.

        Raises:
            CommunitreeError: both failed.
        """
        self.halves += 1
        read: list[MapResult] = []
        failures: list[tuple[CommunitreeError, Batch]] = []
        for half in split_batch(batch):
            try:
                read.append(await self.read(half, depth + 1))
            except CommunitreeError as error:
                if error.retryable or error.code == "cancelled":
                    raise
                failures.append((error, half))
        if not read:
            raise failures[0][0]
        for why, half in failures:
            self.unread |= {id: why.message for id in half.reports if id not in self.unread}
        return read[0] if failures else joined(*read)

    async def _points(self, reply: WholeReply, batch: Batch, chat: ChatRequest) -> MapResult:
        """Return the points of a reply, put right once by the model where any of them would be lost.

        Raises:
            UsageError: it holds none, and did not afterwards.
        """
        result, why = _read(reply, batch)
        lost = unusable(result)
        if (why or lost) and reply.value is not None:  # else the client has asked once already
            better, _ = await self._repaired(reply, batch, chat)
            if len(better.points) - unusable(better) > len(result.points) - lost:
                return better
        if why:
            raise UsageError(why)
        return result

    async def _repaired(self, reply: WholeReply, batch: Batch, chat: ChatRequest) -> tuple[MapResult, str]:
        """Ask once for the same points in the right shape; what could not be had holds none."""
        said = say("repair.points", self.question.language)
        more = [{"role": "assistant", "content": reply.text}, {"role": "user", "content": said}]
        again = replace(chat, messages=[*chat.messages, *more], prompt_tokens=0)
        try:
            second = await self.context.services.models.complete("map", again, self.call)
        except CommunitreeError as error:
            if error.retryable or error.code == "cancelled":
                raise
            return MapResult(), error.message
        self.calls += 1
        self.tries += second.tries
        self.call.spent.repaired += 1
        return (MapResult(), second.why) if isinstance(second, CutReply) else _read(second, batch)


def _read(reply: WholeReply, batch: Batch) -> tuple[MapResult, str]:
    """Return what a reply holds, and why that does not do; "" where it does."""
    try:
        result = parse_points(reply.value if reply.value is not None else reply.text, batch)
    except BadInput as bad:
        return MapResult(), f"The model's reply holds no points: {bad.message}"
    if result.points and all(point.score is None for point in result.points):
        return result, "The model's reply holds no score that can be read."  # not: nothing was found
    return result, ""
