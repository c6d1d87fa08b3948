"""Reading a batch with a model: whole, or where its reply is cut off or its prompt too long, in halves."""

from __future__ import annotations

from typing import Any

from communitree_shared.errors import BadInput, ContextTooLong, UsageError
from communitree_workers.model.chat import ChatRequest, CutReply
from communitree_workers.model.inflight import result_key
from communitree_workers.prompts import load
from communitree_workers.query.batches.batch import Batch, can_split, split_batch
from communitree_workers.query.map.outcome import BatchOutcome, MapResult, joined
from communitree_workers.query.map.prompt import map_messages, map_schema
from communitree_workers.query.map.reply import at_limit, parse_points
from communitree_workers.query.question.question import Question
from communitree_workers.runtime.context import UnitContext

#: A batch whose reply was cut off is read in halves, these in quarters, and then it is failed.
MAX_HALVINGS = 3


class Reader:
    """Reads one batch for a question; `call` holds what that has cost."""

    def __init__(self, context: UnitContext, question: Question) -> None:
        self.context, self.question, self.options = context, question, question.options
        usd = context.args.get("usd", question.selection.budget_usd)
        self.call = context.call(usd=usd, bulk=question.options.bulk)
        self.may_cache = context.services.settings.model("map").cache
        self.calls = self.tries = self.halves = 0

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
            self.context.args["model"],
            answer,
            self.options.seed,
        )  # fmt: skip

    async def fresh(self, batch: Batch) -> dict[str, Any]:
        """Read a batch and return its outcome as JSON, with how many calls it took."""
        result = await self.read(batch)
        outcome = BatchOutcome(
            "answered", batch.reports, result, retried=int(self.tries > self.calls), halves=self.halves,
            at_limit=at_limit(result, self.options.answer),
        )  # fmt: skip
        return {"batch": outcome.to_json(), "calls": self.calls}

    async def read(self, batch: Batch, depth: int = 0) -> MapResult:
        """Return what a batch holds for the question, or a half of one at this depth."""
        answer = self.options.answer
        chat = ChatRequest(
            messages=map_messages(batch, self.question.text, answer, self.question.language, self.options.prompts),
            schema=map_schema(),
            json=True,
            as_format=answer.json_mode,
            max_tokens=answer.map_max_tokens,
            temperature=answer.map_temperature,
            seed=self.options.seed,
            prompt_tokens=batch.prompt_tokens,
            reply_words=answer.map_max_length,
        )
        try:
            reply = await self.context.services.models.complete("map", chat, self.call)
        except ContextTooLong:
            if depth == MAX_HALVINGS or not can_split(batch):
                raise
            return await self._halves(batch, depth)
        self.calls += 1
        self.tries += reply.tries
        if isinstance(reply, CutReply):
            if depth < MAX_HALVINGS and can_split(batch):
                return await self._halves(batch, depth)
            reply = reply.whole()  # points of what nobody read to the end would pass for all
        try:
            result = parse_points(reply.value if reply.value is not None else reply.text, batch)
        except BadInput as bad:
            raise UsageError(f"The model's reply holds no points: {bad.message}") from None
        if result.points and all(point.score is None for point in result.points):
            raise UsageError("The model's reply holds no score that can be read.")  # not: nothing was found
        return result

    async def _halves(self, batch: Batch, depth: int) -> MapResult:
        self.halves += 1
        left, right = split_batch(batch)
        return joined(await self.read(left, depth + 1), await self.read(right, depth + 1))
