"""The reduce task: points put together, citations checked, the answer written."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import orjson

from communitree_shared.errors import BadInput, CommunitreeError, IntegrityError
from communitree_shared.results import Answer, QuerySettings, Usage
from communitree_shared.settings import EXTRACTIVE
from communitree_shared.tables import COMMUNITY_REPORTS, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.model.chat import ChatRequest
from communitree_workers.query.answer import Header, Reduced, build_answer, needs_reduce, opening, status_of
from communitree_workers.query.causes import cause_in
from communitree_workers.query.citations import Checker, Resolver
from communitree_workers.query.extractive_answer import write_answer
from communitree_workers.query.notes import audit_notes, word_notes
from communitree_workers.query.points import BatchOutcome, Gathered, gather_points
from communitree_workers.query.question import read_question
from communitree_workers.query.rate import as_scores, parse_ratings, rate_messages, rate_schema, rerate_items
from communitree_workers.query.reduce import (
    ReducePlan,
    drop_group,
    part_messages,
    part_words,
    plan_reduce,
    plan_round,
    reduce_messages,
)
from communitree_workers.query.shell import answer_language, asked, load_selected, load_view, stands
from communitree_workers.query.sources import FindingSources
from communitree_workers.query.telling import Telling, Writing, tell_whole
from communitree_workers.query.timing import PHASES, Stages, seconds
from communitree_workers.query.walking import rating_usage, rewriting_usage
from communitree_workers.query.writing import write_once
from communitree_workers.runtime.context import Outcome, UnitContext

SOURCE_TABLES = (COMMUNITY_REPORTS, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS)


async def reduce(context: UnitContext) -> Outcome:
    """Put the points together, check the citations, and write the answer."""
    answer = await context.to_thread(_begun, context)
    # Stored while the model writes: behind it there is only the answer itself to store.
    kept = asyncio.get_running_loop().run_in_executor(None, answer.keep)
    kept.add_done_callback(lambda done: done.cancelled() or done.exception())  # read below, if we come so far
    reduced = Reduced()
    if answer.wanted:
        try:
            reduced = await answer.write()
        except CommunitreeError as error:
            if error.retryable or error.code == "cancelled":
                raise
            reduced = replace(await context.to_thread(answer.by_hand), cause=error.message)
    record, stages = await kept
    built = await context.to_thread(answer.build, reduced, record, stages)
    await answer.told(built)  # all pieces stand before the job's end
    await context.to_thread(write_once, context, record, built, answer.options)
    return Outcome()


def _begun(context: UnitContext) -> Reducing:
    """Gather the points and, where a model is to write, plan its calls: one turn of a thread for both."""
    answer = Reducing(context)
    if answer.wanted and answer.models["reduce"] != EXTRACTIVE:
        answer.plan = answer.planned(rerate=answer.models["rate"] != EXTRACTIVE)
    return answer


class Reducing:
    """One query's points on their way to an answer."""

    def __init__(self, context: UnitContext) -> None:
        self.context = context
        services, message = context.services, context.message
        self.request, self.options = context.query_request()
        self.view = load_view(context, self.request.corpus, self.request.version)
        text, found = services.ledger.gathered(message.tenant, message.job, "map")
        if text is None:
            raise IntegrityError(f"The plan of job {message.job} is gone.", hint="Ask the question again.")
        plan = self.sealed = orjson.loads(text)
        self.models: dict[str, str] = plan["models"]
        self.selected = load_selected(plan["selected"])
        self.question = asked(context, self.request, self.options)
        self.asked = read_question(self.question, self.view.lexicon)
        self.language = answer_language(self.question, self.options)
        self.outcomes, usage = [], Usage()
        for n, batch in enumerate(plan["batches"]):
            data = found.get(f"b{n}-{batch['key'][:16]}", {"ok": False, "cause": "lost"})
            if "usage" in data:
                usage = usage + Usage.model_validate(data["usage"])
            if data["ok"]:
                self.outcomes.append(BatchOutcome.from_json(data["batch"]))
            else:
                cause = str(data.get("message") or data.get("cause") or "")
                self.outcomes.append(BatchOutcome("failed", batch["ids"], cause=cause))
        self.usage: dict[str, Usage] = {"map": usage}
        if self.options.selection.strategy in ("relevant", "dynamic"):
            self.usage["rate"] = rating_usage(context)
        if self.options.history:
            self.usage["rewrite"] = rewriting_usage(context, self.options)
        earlier = self._earlier() if self.options.again else []
        self.earlier = len(earlier)
        self.outcomes = [*earlier, *self.outcomes]
        self.ranks = self._ranks()
        self.gathered: Gathered = gather_points(self.outcomes, self.ranks, self.language)
        self.name = "Sources" if self.selected.kind == "sources" else self.options.batch.context_name
        self.usd = self.options.selection.budget_usd
        self.call = context.call(usd=self.usd, bulk=self.options.bulk)
        self.why, self.lost = "", 0  # points that could not be condensed, and why
        self.wanted = needs_reduce(self.outcomes, self.gathered)
        self.plan = ReducePlan()
        self._telling: Telling | None = None
        self._teller: asyncio.Task[None] | None = None

    def _ranks(self) -> dict[int, float]:
        """The ranks of the reports that points cite."""
        node, rank = self.view.node, self.view.rank
        cited = {id for o in self.outcomes for point in (o.result.points if o.result else ()) for id in point.reports}
        return {id: float(rank[node[id]]) for id in cited if id in node} if self.selected.kind == "reports" else {}

    def _earlier(self) -> list[BatchOutcome]:
        """The answered batches of the job whose silent reports are read again: its points count here too."""
        found = self.context.services.store.find_json(self.context.keys.job(self.options.again, "points.json"))
        batches = found["batches"] if found else []
        return [o for o in map(BatchOutcome.from_json, batches) if o.status == "answered"]

    def _notes(self) -> list[str]:
        """What the account says of a sample of pruned communities, and of words that the built-in model lacks."""
        said = audit_notes(self.selected, self.gathered.points, self.language)
        if self.models["map"] == EXTRACTIVE and status_of(self.outcomes) in ("answered", "no_data"):
            found = [self.gathered.points[i].text for i in self.gathered.order]
            held = partial(stands, self.context, self.request, self.selected, self.options.batch)
            said += word_notes(self.asked, self.view.lexicon, found, held, self.language, kind=self.selected.kind)
        return said

    async def write(self) -> Reduced:
        """Return the answer's text."""
        answer, question = self.options.answer, self.question
        if self.models["reduce"] == EXTRACTIVE:
            reduced = await self.context.to_thread(self.by_hand)
            text = reduced.checked.text if reduced.checked else ""
            self._telling = Telling(self.context)
            self._teller = tell_whole(self._telling, opening(self.outcomes, reduced, self.language) + text)
            return reduced
        plan = self.plan
        if plan.rerate:
            ratings = await self._rerate(plan.rerate)
            plan = await self.context.to_thread(lambda: self.planned(ratings=ratings))
        try:
            blocks = await self._condense(plan)
            messages = reduce_messages(blocks, question, answer, self.language, self.options.prompts, self.name)
            reduced = Reduced(shortened=len(plan.shortened), lost=self.lost, lost_cause=self.why)
            return await self._stream(messages, reduced)
        finally:
            self.usage["reduce"] = self.call.spent

    def planned(self, *, rerate: bool = False, ratings: dict[int, float | None] | None = None) -> ReducePlan:
        """Pack the points into reduce calls; with `rerate` a joint rating of the best of them may come first."""
        return plan_reduce(
            self.gathered, self.options.answer, self.language, ranks=self.ranks, ratings=ratings, rerate=rerate,
            context=self.name, encoding=self.view.encoding,
        )  # fmt: skip

    async def _rerate(self, positions: list[int]) -> dict[int, float | None]:
        """Rate the best points jointly: more than fit one prompt, on one scale. A failure changes nothing."""
        items = rerate_items(self.gathered.points, positions)
        messages = rate_messages(items, self.question, self.language, self.options.prompts, encoding=self.view.encoding)
        chat = ChatRequest(messages=messages, schema=rate_schema(), json=True, seed=self.options.seed)
        call = self.context.call(usd=self.usd, bulk=self.options.bulk)
        try:
            reply = (await self.context.services.models.complete("rate", chat, call)).whole()
        except CommunitreeError as error:
            if error.retryable or error.code == "cancelled":
                raise
            return {}
        finally:
            self.usage["rate"] = self.usage.get("rate", Usage()) + call.spent
        value = reply.value if reply.value is not None else reply.text
        return as_scores(parse_ratings(value, positions), self.gathered.points)

    def by_hand(self) -> Reduced:
        """Return the points arranged by the built-in model."""
        plan = self.planned()
        points = [self.gathered.points[i] for i in self.gathered.order]
        if self.selected.kind == "sources":  # text units are numbered apart from communities
            titles = Resolver(self.view).document_titles(id for point in points for id in point.reports)
        else:
            titles = dict(zip(self.view.community.tolist(), self.view.titles, strict=True))
        text = write_answer(points, self.asked, self.options.answer, self.language, titles, self.name)
        return Reduced(
            text=text, shortened=len(plan.shortened), checked=self._checked_by().whole(text), lost=self.lost,
            lost_cause=self.why,
        )  # fmt: skip

    def _checked_by(self) -> Checker:
        return Checker(self.gathered.points, self.language, self.name)

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
                self.lost += drop_group(self.gathered, points, cause_in(self.language, self.why))
            groups = plan_round(kept, self.options.answer, self.view.encoding)
            members = [[i for part in held[g :: len(groups)] for i in part] for g in range(len(groups))]
        return groups[0]

    async def _part(self, blocks: list[str], groups: int) -> str:
        messages = part_messages(
            blocks, self.question, self.options.answer, self.language, self.options.prompts, groups, self.name
        )
        chat = ChatRequest(
            messages=messages,
            temperature=self.options.answer.reduce_temperature,
            seed=self.options.seed,
            reply_words=part_words(groups, self.options.answer),
        )
        return (await self.context.services.models.complete("reduce", chat, self.call)).whole().text

    async def _stream(self, messages: list[dict[str, str]], reduced: Reduced) -> Reduced:
        """Ask for the answer, telling its pieces as they come; who follows is told when they begin again."""
        answer = self.options.answer
        told = self._telling = Telling(self.context)
        writing = Writing(told, opening(self.outcomes, reduced, self.language), self._checked_by)
        chat = ChatRequest(
            messages=messages, max_tokens=answer.reduce_max_tokens, temperature=answer.reduce_temperature,
            seed=self.options.seed, reply_words=answer.reduce_max_length, on_token=writing.take,
            on_restart=writing.restart,
        )  # fmt: skip
        teller = asyncio.get_running_loop().create_task(told.tell())
        try:
            reply = (await self.context.services.models.complete("reduce", chat, self.call)).whole()
            checked = writing.close(reply.text)
        except BaseException:
            writing.restart()  # what was told is no part of an answer
            told.done.set()
            await teller
            raise
        told.done.set()
        self._teller = teller
        return replace(reduced, text=reply.text, checked=checked)

    async def told(self, built: Answer) -> None:
        """Wait until the answer's text has been told, and nothing else stands: it may have become another one."""
        if self._teller is not None:
            await self._teller
        if self._telling is not None:
            await self._telling.settle(built.answer)

    def _sources(self) -> FindingSources | None:
        """What leads from a citing sentence to its text; made once for a version and process."""
        if self.selected.kind == "sources":
            return None
        corpus, version = self.request.corpus, self.request.version

        def make() -> tuple[FindingSources, int]:
            tables = self.context.read(corpus, version, *SOURCE_TABLES)
            return FindingSources(tables), 2 * sum(table.nbytes for table in tables.values())

        key = self.context.keys.version(corpus, version) + "#sources"
        found: FindingSources = self.context.services.value(key, make)
        return found

    def keep(self) -> tuple[dict[str, str], Stages]:
        """Store what was planned and what each batch gave; returns the records of the job and of its stages."""
        services, message = self.context.services, self.context.message
        points = {"plan": self.sealed, "batches": [o.to_json() for o in self.outcomes]}
        services.store.put(self.context.keys.job(message.job, "points.json"), orjson.dumps(points))
        return services.ledger.records(message.tenant, message.job, PHASES)

    def build(self, reduced: Reduced, record: dict[str, str], stages: Stages) -> Answer:
        """Return the answer with its account."""
        header = Header(
            self.context.message.job, self.request.question, self.request.corpus, self.request.version,
            standalone_question=self.question if self.options.history else "",
            usage=self.usage,
            warnings=self._notes(),
            again=self.options.again,
            earlier=self.earlier,
            seconds=seconds(record, stages),
            settings=QuerySettings(models={k: self.models[k] for k in ("map", "reduce")}, seed=self.options.seed),
        )  # fmt: skip
        return build_answer(
            header, self.selected, self.outcomes, self.gathered, reduced, Resolver(self.view, self._sources()),
            language=self.language, context=self.name,
        )  # fmt: skip
