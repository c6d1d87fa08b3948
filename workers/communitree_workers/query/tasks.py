"""The query stage's tasks: plan, map, reduce. Read them top to bottom: that is the life of a query.

The relevance walks between plan and map are in `walking.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson

from communitree_shared.errors import BadInput, CommunitreeError, ContextTooLong, UsageError
from communitree_shared.keys import encode_name
from communitree_shared.ledger import Stage, Step
from communitree_shared.messages import QueryRequest, Unit
from communitree_shared.options import QueryOptions
from communitree_shared.results import Usage
from communitree_shared.settings import EXTRACTIVE, MODEL_STAGES
from communitree_workers.model.chat import ChatRequest, CutReply
from communitree_workers.model.inflight import result_key
from communitree_workers.prompts import load
from communitree_workers.query import commit, walking
from communitree_workers.query.again import silent
from communitree_workers.query.batch import Batch, can_split, split_batch
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.extractive import map_reply
from communitree_workers.query.map import MapResult, at_limit, check_question, map_messages, map_schema, parse_points
from communitree_workers.query.points import BatchOutcome
from communitree_workers.query.select import must_read, select
from communitree_workers.query.select.common import Selected
from communitree_workers.query.shell import answer_language, asked, cut, dump_selected, load_view
from communitree_workers.runtime.context import Outcome, UnitContext, failed
from communitree_workers.runtime.runner import Handler

#: A batch whose reply was cut off is read in halves, these in quarters, and then it is failed.
MAX_HALVINGS = 3


def plan(context: UnitContext) -> Outcome:
    """Select what is read, and seal the map; a conversation is made one question first, a walk asks for ratings."""
    request, options = context.query_request()
    services, message = context.services, context.message
    models: dict[str, str] = {stage: services.settings.model(stage).model for stage in MODEL_STAGES}
    if options.history and not context.args.get("alone"):
        local = models["reduce"] == EXTRACTIVE
        context.step(Step("rewrite", "communitree.query.rewrite.v1", {"model": models["reduce"]}, local=local))
        return Outcome()
    view = load_view(context, request.corpus, request.version)
    question = asked(context, request, options)
    check_question(question, options.batch, view.encoding)
    planner = walking.planner_of(context, request, options, view)
    planner.priced(options.selection)
    selected: Selected | None
    if options.again:
        selected, options = silent(context, request, view, options)
    elif options.selection.strategy in walking.WALKS:
        services.ledger.update(message.tenant, message.job, {"models": json.dumps(models)})
        selected = walking.begin_walk(context, request, options, view, models)
    else:
        price = planner.price()
        language = answer_language(question, options)
        selected = must_read(
            select(view, options.selection, question, batch=options.batch, price=price, language=language)
        )
    return _planned(context, request, options, view, selected, models)


def walk(context: UnitContext) -> Outcome:
    """Take the ratings of a wave of a walk; ask for the next, or seal the map."""
    request, options = context.query_request()
    record = context.services.ledger.record(context.message.tenant, context.message.job)
    models: dict[str, str] = json.loads(record["models"])
    view = load_view(context, request.corpus, request.version)
    selected = walking.continue_walk(context, request, options, view, models)
    return _planned(context, request, options, view, selected, models)


def _planned(
    context: UnitContext,
    request: QueryRequest,
    options: QueryOptions,
    view: CorpusView,
    selected: Selected | None,
    models: dict[str, str],
) -> Outcome:
    if selected is None:
        return Outcome()
    seal_map(context, request, options, view, selected, models)
    return Outcome(event={"reports": len(selected.ids), "tokens": selected.selection.tokens})


def seal_map(
    context: UnitContext,
    request: QueryRequest,
    options: QueryOptions,
    view: CorpusView,
    selected: Selected,
    models: dict[str, str],
) -> None:
    """Cut a selection into batches, keep the plan for the reduce, and open the map stage."""
    services, message = context.services, context.message
    batches = cut(context, request, view, selected, options)
    args: dict[str, Any] = {"model": models["map"]}
    if options.selection.budget_usd is not None:
        reading = walking.planner_of(context, request, options, view).for_reading(len(batches))
        args["usd"] = reading
        selected.selection.budget["usd_kept_for_reduce"] = round(options.selection.budget_usd - (reading or 0.0), 6)
    plan = {"selected": dump_selected(selected), "batches": [b.__dict__ for b in batches], "models": models}
    record = services.ledger.keep_plan(message.tenant, message.job, orjson.dumps(plan).decode())
    local = models["map"] == EXTRACTIVE
    until = float(record["map_deadline"]) if record.get("map_deadline") else None
    settings = services.settings
    window = options.concurrency or (settings.bulk_window if options.bulk else settings.window)
    then = Step(
        "reduce", "communitree.query.reduce.v1", {"model": models["reduce"]}, local=models["reduce"] == EXTRACTIVE
    )
    stage = Stage("map", "communitree.query.map.v1", then, window=window, deadline=until)
    units = [Unit(id=f"b{n}-{b.key[:16]}", args={"batch": b.key, **args}) for n, b in enumerate(batches)]
    most = settings.local_units_per_message if local else settings.map_batches_per_message
    most = 1 if options.concurrency else most  # a message is released whole
    context.open(stage, context.messages(stage, units, local=local, per_message=most))


async def map_batch(context: UnitContext) -> Outcome:
    """Read one batch: points with scores and citations."""
    await context.load(context.keys.job(context.message.job, "request.json"))
    request, options = context.query_request()
    batch = await _batch(context, context.keys.batch(request.corpus, context.args["batch"]))
    if context.args["model"] == EXTRACTIVE:
        view = load_view(context, request.corpus, request.version)
        question = asked(context, request, options)
        result = parse_points(map_reply(batch, question, options.answer, view.lexicon), batch)
        outcome = BatchOutcome("answered", batch.reports, result)
        return Outcome(data={"batch": outcome.to_json()}, event={"points": len(result.points)})
    # A conversation's question lies in the object store; any other is at hand.
    read = context.to_thread(_Reader, context, request, options) if options.history else None
    reader = await read if read else _Reader(context, request, options)
    try:
        found, hit = await context.services.calls.cached(
            reader.key(context.args["batch"]), context.services.settings.map_cache_ttl, lambda: reader.fresh(batch),
            tenant=f"{context.message.tenant}:{encode_name(request.corpus)}",
            enabled=options.cache and reader.may_cache, context=reader.call,
        )  # fmt: skip
    except CommunitreeError as error:
        return failed(error, reader.call.spent)
    outcome = replace(BatchOutcome.from_json(found["batch"]), cached=hit)
    usage = Usage(cached=found["calls"]) if hit else reader.call.spent
    points = len(outcome.result.points) if outcome.result else 0
    return Outcome(
        data={"batch": outcome.to_json(), "usage": usage.model_dump()}, event={"points": points, "cached": int(hit)}
    )


async def _batch(context: UnitContext, key: str) -> Batch:
    """Return a batch, parsed once a process."""
    known: Batch | None = context.services.parsed.peek(f"{key}#batch")
    if known is not None:
        return known
    data = await context.load(key)
    batch: Batch = context.services.value(f"{key}#batch", lambda: (Batch.from_bytes(data), 2 * len(data)))
    return batch


class _Reader:
    """Reads a batch with a model; one whose reply is cut off, or whose prompt is too long, in halves."""

    def __init__(self, context: UnitContext, request: QueryRequest, options: QueryOptions) -> None:
        self.context, self.options = context, options
        self.question = asked(context, request, options)
        self.language = answer_language(self.question, options)
        self.call = context.call(usd=context.args.get("usd", options.selection.budget_usd), bulk=options.bulk)
        self.may_cache = context.services.settings.model("map").cache
        self.calls = self.tries = self.halves = 0

    def key(self, batch: str) -> str:
        """Return the key of this batch's result: all that it depends on."""
        answer = self.options.answer.model_dump(
            include={"map_max_length", "map_max_tokens", "map_temperature", "json_mode"}
        )
        prompt = load("map", self.language, self.options.prompts)
        return result_key(
            "map", batch, self.question, self.language, prompt, self.context.args["model"], answer, self.options.seed
        )

    async def fresh(self, batch: Batch) -> dict[str, Any]:
        """Read a batch and return its outcome as JSON, with how many calls it took."""
        result = await self.read(batch)
        outcome = BatchOutcome(
            "answered", batch.reports, result, retried=int(self.tries > self.calls), halves=self.halves,
            at_limit=at_limit(result, self.options.answer),
        )  # fmt: skip
        return {"batch": outcome.to_json(), "calls": self.calls}

    async def read(self, batch: Batch, depth: int = 0) -> MapResult:
        answer = self.options.answer
        chat = ChatRequest(
            messages=map_messages(batch, self.question, answer, self.language, self.options.prompts),
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
        one, two = await self.read(left, depth + 1), await self.read(right, depth + 1)
        return replace(
            one, points=[*one.points, *two.points], overview={**two.overview, **one.overview},
            repaired=one.repaired + two.repaired, words=max(one.words, two.words),
        )  # fmt: skip


HANDLERS: dict[str, Handler] = {
    "communitree.query.plan.v1": plan,
    "communitree.query.rewrite.v1": walking.rewrite,
    "communitree.query.rate.v1": walking.rate,
    "communitree.query.walk.v1": walk,
    "communitree.query.map.v1": map_batch,
    "communitree.query.reduce.v1": commit.reduce,
}
