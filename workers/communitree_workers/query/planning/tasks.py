"""From a question to batches that wait to be read: plan, and where it takes more, rewrite, walk and rate.

A conversation is made one question first (`rewrite`), and planned again. A selection that depends on ratings goes wave
by wave: `rate` works on each unit of a wave, `walk` decides the next.
"""

from __future__ import annotations

import json

import orjson

from communitree_shared.contract.messages import Unit
from communitree_shared.contract.results import Usage
from communitree_shared.contract.strategies import walks
from communitree_shared.errors import CommunitreeError, ContentRefused, OutputCut
from communitree_shared.ledger import Stage, Step
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.model.chat import ChatRequest
from communitree_workers.query.batches.cutting import cut
from communitree_workers.query.builtin.replies import rate_reply, rewrite_reply
from communitree_workers.query.planning.again import silent
from communitree_workers.query.planning.known import KnownRatings, candidates
from communitree_workers.query.planning.planner import PAID, Planner, Prices
from communitree_workers.query.planning.rating import parse_ratings, rate_messages, rate_schema, rate_temperature, vote
from communitree_workers.query.planning.sealed import SealedPlan
from communitree_workers.query.planning.waves import begin_walk, continue_walk
from communitree_workers.query.question.conversation import last_turns, parse_rewrite, rewrite_messages
from communitree_workers.query.question.loading import REWRITTEN, load_question, prepared_question
from communitree_workers.query.question.question import Question, answer_language
from communitree_workers.query.selection.choice import Selected
from communitree_workers.query.selection.select import must_read, select
from communitree_workers.runtime.context import Outcome, UnitContext, failed


def plan(context: UnitContext) -> Outcome:
    """Select what is read, and seal the map; a conversation is made one question first, a walk asks for ratings."""
    services, message = context.services, context.message
    models: dict[str, str] = {stage: services.settings.model(stage).model for stage in PAID}
    services.ledger.planned_with(message.tenant, message.job, models)
    if context.query_request()[1].history and not context.args.get("alone"):
        local = models["reduce"] == EXTRACTIVE
        context.step(Step("rewrite", "communitree.query.rewrite.v1", {"model": models["reduce"]}, local=local))
        return Outcome()
    question = load_question(context, models)
    question.check()
    planner = Planner(question, Prices.of(services.settings.model))
    planner.priced()
    if question.options.again:
        selected, question = silent(context, question)
    elif walks(question.selection.strategy):
        walked = begin_walk(context, question, planner)
        return Outcome() if walked is None else _seal(context, question, walked)
    else:
        selected = must_read(select(question, planner.price()))
    return _seal(context, question, selected)


def _seal(context: UnitContext, question: Question, selected: Selected) -> Outcome:
    """Cut a selection into batches, keep the plan for the reduce, and open the map stage."""
    services, message, options, models = context.services, context.message, question.options, question.models
    batches = cut(context, question, selected)
    args: dict[str, object] = {"model": models["map"]}
    if options.selection.budget_usd is not None:
        reading = Planner(question, Prices.of(services.settings.model)).for_reading(len(batches))
        args["usd"] = reading
        selected.selection.budget["usd_kept_for_reduce"] = round(options.selection.budget_usd - (reading or 0.0), 6)
    sealed = SealedPlan(selected, batches, models)
    record = services.ledger.keep_plan(message.tenant, message.job, orjson.dumps(sealed.to_json()).decode())
    local = models["map"] == EXTRACTIVE
    until = float(record["map_deadline"]) if record.get("map_deadline") else None
    settings = services.settings
    window = options.concurrency or (settings.bulk_window if options.bulk else settings.window)
    then = Step(
        "reduce", "communitree.query.reduce.v1", {"model": models["reduce"]}, local=models["reduce"] == EXTRACTIVE
    )
    stage = Stage("map", "communitree.query.map.v1", then, window=window, deadline=until)
    units = [Unit(id=sealed.unit(n), args={"batch": batch.key, **args}) for n, batch in enumerate(batches)]
    most = settings.local_units_per_message if local else settings.map_batches_per_message
    most = 1 if options.concurrency else most  # a message is released whole
    context.open(stage, context.messages(stage, units, local=local, per_message=most))
    return Outcome(event={"reports": len(selected.ids), "tokens": selected.selection.tokens})


async def rewrite(context: UnitContext) -> Outcome:
    """Rewrite the question so that it stands without the conversation; then plan."""
    await context.load(context.keys.job(context.message.job, "request.json"))
    request, options = context.query_request()
    turns = last_turns(options.history, options.history_turns)
    usage, why = Usage(), ""
    if context.args["model"] == EXTRACTIVE:
        alone = rewrite_reply(request.question, turns)
    else:
        call = context.call(usd=options.selection.budget_usd, bulk=options.bulk)
        language = answer_language(request.question, options)
        messages = rewrite_messages(request.question, turns, language, options.prompts)
        chat = ChatRequest(messages=messages, temperature=0.0)
        try:
            alone = parse_rewrite((await context.services.models.whole("reduce", chat, call)).text, request.question)
        except (OutputCut, ContentRefused) as error:
            # Half a question, or none, asks something else: the one that was asked is better.
            alone, why = request.question, error.message
        usage = call.spent
    told = {"question": alone, "usage": usage.model_dump(), "why": why}
    data = json.dumps(told, ensure_ascii=False).encode()
    await context.save(context.keys.job(context.message.job, REWRITTEN), data)
    await context.in_ledger(context.step, Step("plan-alone", "communitree.query.plan.v1", {"alone": True}))
    return Outcome(event={"question": alone})


def walk(context: UnitContext) -> Outcome:
    """Take the ratings of a wave of a walk; ask for the next, or seal the map."""
    record = context.services.ledger.record(context.message.tenant, context.message.job)
    question = load_question(context, json.loads(record["models"]))
    selected = continue_walk(context, question, Planner(question, Prices.of(context.services.settings.model)))
    return Outcome() if selected is None else _seal(context, question, selected)


async def rate(context: UnitContext) -> Outcome:
    """Rate some communities for the question; what was rated before is taken over."""
    question = await prepared_question(context)
    options = question.options
    view = await context.to_thread(lambda: question.view)
    wanted: list[int] = context.args["communities"]
    built_in = context.args["model"] == EXTRACTIVE
    # GraphRAG's walk rates what GraphRAG's does; the built-in model looks for words, wherever they stand.
    outlines = not built_in and question.selection.strategy != "dynamic"
    texts = await context.to_thread(lambda: candidates(context, question, wanted, outlines=outlines))
    if built_in:
        reply = rate_reply([(c, texts[c]) for c in wanted], question.text, view.lexicon)
        return Outcome(data={"ratings": parse_ratings(reply, wanted)})
    await context.in_ledger(context.has_model, "rate")
    before = KnownRatings(context, question, texts)
    known = await context.in_ledger(before.known) if options.cache else {}
    ratings: dict[int, float | None] = dict(known)
    missing = [c for c in wanted if c not in known]
    call = context.call(usd=context.args.get("usd", options.selection.budget_usd), bulk=options.bulk)
    if missing:
        messages = rate_messages(
            [(c, texts[c]) for c in missing], question.text, question.language, options.prompts, encoding=view.encoding
        )
        votes: dict[int, list[float | None]] = {c: [] for c in missing}
        temperature = rate_temperature(
            context.services.settings.model("rate").temperature, options.selection.num_repeats
        )  # fmt: skip
        for turn in range(options.selection.num_repeats):
            chat = ChatRequest(
                messages=messages, schema=rate_schema(), json=True, temperature=temperature,
                seed=options.seed + turn,
            )  # fmt: skip
            try:
                answer = await context.services.models.whole("rate", chat, call)
            except CommunitreeError as error:
                return failed(error, call.spent)
            value = answer.value if answer.value is not None else answer.text
            for community, rating in parse_ratings(value, missing).items():
                votes[community].append(rating)
        fresh = {c: vote(v) for c, v in votes.items()}
        ratings |= fresh
        await context.in_ledger(before.keep, fresh)
    usage = call.spent.model_copy(update={"cached": call.spent.cached + len(known)})
    return Outcome(data={"ratings": ratings, "usage": usage.model_dump()}, event={"rated": len(missing)})
