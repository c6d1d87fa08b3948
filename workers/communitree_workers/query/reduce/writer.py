"""Writing the answer of what was read: by a model, in rounds where one prompt does not hold all points, or by hand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace

from communitree_shared.contract.results import Answer, Usage
from communitree_shared.errors import BadInput, CommunitreeError
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.citing.states import lost_in
from communitree_workers.model.chat import ChatRequest, CutReply
from communitree_workers.query.answer.account import Reduced, closing, opening
from communitree_workers.query.answer.checking import Checker, parts_of
from communitree_workers.query.answer.citations import Resolver, claim_of
from communitree_workers.query.answer.reports import ids_read
from communitree_workers.query.builtin.answer import write_answer
from communitree_workers.query.planning.rating import (
    as_scores,
    parse_ratings,
    rate_messages,
    rate_schema,
    rate_temperature,
    rerate_items,
)
from communitree_workers.query.planning.reduce_sizes import part_words
from communitree_workers.query.reduce.inputs import Inputs
from communitree_workers.query.reduce.rounds import (
    ReducePlan,
    drop_group,
    part_messages,
    plan_reduce,
    plan_round,
    reduce_messages,
)
from communitree_workers.query.reduce.telling import Telling, Writing, tell_whole
from communitree_workers.query.wording.causes import cause_in
from communitree_workers.query.wording.phrases import say
from communitree_workers.runtime.context import UnitContext

#: The end of a sentence: what has none says nothing.
_SENTENCE = re.compile(r"[.!?](?=[\s\]\[\"”')*]|$)|[。！？…]")


class Writer:
    """Writes one answer; `usage`: what the job has spent by then, by stage."""

    def __init__(self, context: UnitContext, inputs: Inputs) -> None:
        """Plan the calls of the model, where one is to write."""
        self.context, self.inputs = context, inputs
        self.question, self.options = inputs.question, inputs.question.options
        self.usage = dict(inputs.usage)
        self.built_in = self.question.models["reduce"] == EXTRACTIVE
        self.plan = ReducePlan() if self.built_in else self._planned(rerate=self.question.models["rate"] != EXTRACTIVE)
        self.call = context.call(usd=self.question.selection.budget_usd, bulk=self.options.bulk)
        self.why, self.lost = "", 0  # points that could not be condensed, and why
        self.unrated = ""  # why a joint rating failed
        self.condensed: frozenset[int] = frozenset()  # points that the rounds' texts do not state any more
        self._telling: Telling | None = None
        self._teller: asyncio.Task[None] | None = None

    async def write(self) -> Reduced:
        """Return the answer's text, telling it on the way.

        Raises:
            CommunitreeError: the model failed; `by_hand` does without it.
        """
        if self.built_in:
            reduced = await self.context.to_thread(self.by_hand)
            text = reduced.checked.text if reduced.checked else ""
            self._telling = Telling(self.context)
            self._teller = tell_whole(self._telling, self._opening(reduced) + text)
            return reduced
        plan = self.plan
        if plan.rerate:
            ratings = await self._rerate(plan.rerate)
            plan = await self.context.to_thread(lambda: self._planned(ratings=ratings))
        question, options = self.question, self.options
        try:
            blocks = await self._condense(plan)
            if len(plan.groups) > 1:
                self.condensed = await self.context.to_thread(lambda: self._lost(blocks))
            messages = reduce_messages(
                blocks, question.text, options.answer, question.language, options.prompts, self.inputs.context_name,
                read=self._read(),
            )  # fmt: skip
            reduced = Reduced(
                shortened=len(plan.shortened), lost=self.lost, lost_cause=self.why, unrated=self.unrated,
                condensed=self.condensed,
            )  # fmt: skip
            return await self._stream(messages, reduced)
        finally:
            self.usage["reduce"] = self.call.spent

    def by_hand(self) -> Reduced:
        """Return the points arranged by the built-in model."""
        plan, question, gathered = self._planned(), self.question, self.inputs.gathered
        points = [gathered.points[i] for i in gathered.order]
        if self.inputs.selected.kind == "sources":  # text units are numbered apart from communities
            titles = Resolver(question.view).document_titles(id for point in points for id in point.reports)
        else:
            titles = dict(zip(question.view.community.tolist(), question.view.titles, strict=True))
        text = write_answer(
            points, question.words, question.options.answer, question.language, titles, self.inputs.context_name
        )
        return Reduced(
            text=text, shortened=len(plan.shortened), checked=self._checker(bare=False).whole(text), lost=self.lost,
            lost_cause=self.why, unrated=self.unrated,
        )  # fmt: skip

    async def told(self, built: Answer) -> None:
        """Wait until the answer's text has been told, and nothing else stands: it may have become another one."""
        if self._teller is not None:
            await self._teller
        if self._telling is not None:
            await self._telling.settle(built.answer)

    def _planned(self, *, rerate: bool = False, ratings: Mapping[int, float | None] | None = None) -> ReducePlan:
        """Pack the points into reduce calls; with `rerate` a joint rating of the best of them may come first."""
        return plan_reduce(
            self.inputs.gathered, self.options.answer, self.question.language, ranks=self.inputs.ranks,
            ratings=ratings, rerate=rerate, context=self.inputs.context_name, encoding=self.question.view.encoding,
        )  # fmt: skip

    def _checker(self, *, bare: bool = True) -> Checker:
        points, name = self.inputs.gathered.points, self.inputs.context_name
        return Checker(points, self.question.language, name, bare=bare)  # what is quoted has numbers of its own

    def _opening(self, reduced: Reduced) -> str:
        return opening(self.inputs.outcomes, reduced, self.question.language)

    def _read(self) -> str:
        """Return what the points rest on, and what could not be read, as a sentence of the prompt."""
        asked = {id for outcome in self.inputs.outcomes for id in outcome.ids}
        read = ids_read(self.inputs.outcomes)
        key = "rule.read_some" if read < asked else "rule.read_all"
        key += "_texts" if self.inputs.selected.kind == "sources" else ""
        return say(key, self.question.language, read=len(read), reports=len(asked))

    async def _rerate(self, positions: list[int]) -> dict[int, float | None]:
        """Rate the best points jointly: more than fit one prompt, on one scale. A failure leaves their own scores."""
        items = rerate_items(self.inputs.gathered.points, positions)
        messages = rate_messages(
            items,
            self.question.text,
            self.question.language,
            self.options.prompts,
            encoding=self.question.view.encoding,
        )
        temperature = rate_temperature(self.context.services.settings.model("rate").temperature)
        chat = ChatRequest(
            messages=messages, schema=rate_schema(), json=True, temperature=temperature, seed=self.options.seed
        )  # fmt: skip
        call = self.context.call(usd=self.question.selection.budget_usd, bulk=self.options.bulk)
        try:
            reply = await self.context.services.models.whole("rate", chat, call)
        except CommunitreeError as error:
            if error.retryable or error.code == "cancelled":
                raise
            self.unrated = error.message
            return {}
        finally:
            self.usage["rate"] = self.usage.get("rate", Usage()) + call.spent
        value = reply.value if reply.value is not None else reply.text
        return as_scores(parse_ratings(value, positions), self.inputs.gathered.points)

    async def _condense(self, plan: ReducePlan) -> list[str]:
        """Rounds of the tree: condense each group, until one prompt holds what is left.

        Raises:
            CommunitreeError: the last failure, where no group of a round could be condensed; it drops no point.
        """
        groups = [[plan.blocks[i] for i in group] for group in plan.groups]
        members: list[list[int]] = list(plan.groups)  # the points behind each group, through all rounds
        while len(groups) > 1:
            texts = await asyncio.gather(*(self._part(g, len(groups)) for g in groups), return_exceptions=True)
            kept, held, lost = [], [], []
            error: CommunitreeError = BadInput("The model condensed the points to nothing.")
            for text, points in zip(texts, members, strict=True):
                if isinstance(text, str) and text.strip():
                    kept.append(text)
                    held.append(points)
                    continue
                if isinstance(text, CommunitreeError) and not text.retryable and text.code != "cancelled":
                    error = text
                elif isinstance(text, BaseException):
                    raise text
                lost.append(points)
            if not kept:
                raise error
            for points in lost:
                self.why = error.message
                self.lost += drop_group(self.inputs.gathered, points, cause_in(self.question.language, self.why))
            groups = plan_round(kept, self.options.answer, self.question.view.encoding)
            members = [[i for part in held[g :: len(groups)] for i in part] for g in range(len(groups))]
        return groups[0]

    def _lost(self, texts: list[str]) -> frozenset[int]:
        """Return the positions of points that these condensed texts do not state."""
        points = self.inputs.gathered.points
        used = [i for i, point in enumerate(points) if point.used]
        parts = parts_of("\n\n".join(texts), self.inputs.context_name)
        return frozenset(used[place] for place in lost_in([claim_of(points[i], lambda _: "") for i in used], parts))

    async def _part(self, blocks: list[str], groups: int) -> str:
        messages = part_messages(
            blocks,
            self.question.text,
            self.options.answer,
            self.question.language,
            self.options.prompts,
            groups,
            self.inputs.context_name,
        )
        chat = ChatRequest(
            messages=messages,
            temperature=self.options.answer.reduce_temperature,
            seed=self.options.seed,
            reply_words=part_words(groups, self.options.answer),
        )
        return (await self.context.services.models.whole("reduce", chat, self.call)).text

    async def _stream(self, messages: list[dict[str, str]], reduced: Reduced) -> Reduced:
        """Ask for the answer, telling its pieces as they come; who follows is told when they begin again."""
        answer = self.options.answer
        told = self._telling = Telling(self.context)
        writing = Writing(told, self._opening(reduced), self._checker)
        chat = ChatRequest(
            messages=messages, max_tokens=answer.reduce_max_tokens, temperature=answer.reduce_temperature,
            seed=self.options.seed, reply_words=answer.reduce_max_length, on_token=writing.take,
            on_restart=writing.restart,
        )  # fmt: skip
        teller = asyncio.get_running_loop().create_task(told.tell())
        try:
            reply = await self.context.services.models.complete("reduce", chat, self.call)
            if isinstance(reply, CutReply):
                reply = await self.context.services.models.go_on("reduce", chat, reply, self.call)
            if isinstance(reply, CutReply) and not _SENTENCE.search(reply.part):
                reply = reply.whole()  # not one sentence stands: the points arranged by hand are better
            text = reply.part if isinstance(reply, CutReply) else reply.text
            reduced = replace(reduced, text=text, broken=reply.why if isinstance(reply, CutReply) else "")
            checked = writing.close(text)
            told.pieces.append(closing(reduced, self.question.language))
        except BaseException:
            writing.restart()  # what was told is no part of an answer
            told.done.set()
            await teller
            raise
        told.done.set()
        self._teller = teller
        return replace(reduced, checked=checked)
