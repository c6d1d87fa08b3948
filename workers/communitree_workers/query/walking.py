"""Between plan and map: the question rewritten to stand alone, and walks of the tree that ask for ratings.

A walk goes wave by wave: the ratings of a wave are the units of one stage, and the step behind it decides the next.
Ratings are kept per (report, question, prompt, model), so that an equal question later costs none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any

import redis

from communitree_shared import clock
from communitree_shared import rediskeys as rk
from communitree_shared.errors import CommunitreeError
from communitree_shared.keys import encode_name
from communitree_shared.ledger import Stage, Step
from communitree_shared.messages import QueryRequest, Unit
from communitree_shared.options import QueryOptions
from communitree_shared.results import Usage
from communitree_shared.settings import EXTRACTIVE
from communitree_shared.tables import COMMUNITY_REPORTS
from communitree_workers.model.chat import ChatRequest, CutReply
from communitree_workers.prompts import load
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.extractive import rate_reply, rewrite_reply
from communitree_workers.query.plan import Planner, Prices
from communitree_workers.query.rate import parse_ratings, rate_messages, rate_schema, vote
from communitree_workers.query.rewrite import last_turns, parse_rewrite, rewrite_messages
from communitree_workers.query.select import check_budget, must_read
from communitree_workers.query.select.budget import Price
from communitree_workers.query.select.common import Selected
from communitree_workers.query.select.dynamic import Dynamic
from communitree_workers.query.select.relevant import Relevant
from communitree_workers.query.select.walk import Why
from communitree_workers.query.shell import answer_language, asked, load_view, prices
from communitree_workers.runtime.context import Outcome, UnitContext, failed

WALKS = ("relevant", "dynamic")

#: The share of the time until the map's deadline that ratings may take; the rest is for reading.
_RATING_SHARE = 0.5
#: No wave is opened when less than this share of the time for ratings is left.
_LAST_WAVE = 1 / 8
#: Causes of failed units, as the account of a walk tells them.
_WHY: dict[str, Why] = {"budget": "money", "deadline": "deadline"}


async def rewrite(context: UnitContext) -> Outcome:
    """Rewrite the question so that it stands without the conversation; then plan."""
    await context.load(context.keys.job(context.message.job, "request.json"))
    request, options = context.query_request()
    turns = last_turns(options.history, options.history_turns)
    language = answer_language(request.question, options)
    usage = Usage()
    if context.args["model"] == EXTRACTIVE:
        alone = rewrite_reply(request.question, turns)
    else:
        call = context.call(usd=options.selection.budget_usd, bulk=options.bulk)
        messages = rewrite_messages(request.question, turns, language, options.prompts)
        reply = await context.services.models.complete("reduce", ChatRequest(messages=messages, temperature=0.0), call)
        usage = call.spent
        # Half a question asks something else: the one that was asked is better.
        alone = request.question if isinstance(reply, CutReply) else parse_rewrite(reply.text, request.question)
    data = json.dumps({"question": alone, "usage": usage.model_dump()}, ensure_ascii=False).encode()
    await context.save(context.keys.job(context.message.job, "question.json"), data)
    await context.in_ledger(context.step, Step("plan-alone", "communitree.query.plan.v1", {"alone": True}))
    return Outcome(event={"question": alone})


def begin_walk(
    context: UnitContext, request: QueryRequest, options: QueryOptions, view: CorpusView, models: dict[str, str]
) -> Selected | None:
    """Open the first wave of a walk; returns the selection where nothing has to be rated."""
    if options.selection.strategy == "relevant":
        check_budget(view, options.selection, options.batch, _price(context, request, options, view))
    walk = _walk(context, request, options, view)
    until = context.services.ledger.record(context.message.tenant, context.message.job).get("map_deadline")
    now = clock.now()
    time = [now, now + _RATING_SHARE * (float(until) - now)] if until else None
    return _go_on(context, request, options, walk, 0, models["rate"], time)


def continue_walk(
    context: UnitContext, request: QueryRequest, options: QueryOptions, view: CorpusView, models: dict[str, str]
) -> Selected | None:
    """Take the ratings of a wave; open the next, or return the selection."""
    services, message = context.services, context.message
    wave = int(context.args["wave"])
    walk = _walk(context, request, options, view)
    state = json.loads(services.object(context.keys.job(message.job, f"walk-{wave}.json")))
    walk.restore(state)
    ratings: dict[int, float | None] = {}
    why: dict[int, Why] = {}
    used = Usage()
    told = services.ledger.outcomes(message.tenant, message.job, f"rate-{wave}")
    for n, communities in enumerate(walk.ask()):
        outcome = told.get(_unit(wave, n), {})
        used = used + Usage.model_validate(outcome.get("usage", {}))
        if "ratings" in outcome:
            ratings |= {int(c): r for c, r in outcome["ratings"].items()}
        else:
            why |= dict.fromkeys(communities, _WHY.get(outcome.get("cause", ""), "failed"))
    walk.tell(ratings, used.calls, why)
    if "money" in why.values():
        walk.stop("money")
    elif not ratings and "deadline" in why.values():  # nor would the next: what is read shall be coarse, not everything
        walk.stop("deadline")
    return _go_on(context, request, options, walk, wave + 1, models["rate"], state.get("time"))


def rating_usage(context: UnitContext) -> Usage:
    """Return what all waves of a query's walk have used."""
    ledger, message = context.services.ledger, context.message
    total = Usage()
    for name in ledger.stage_names(message.tenant, message.job):
        if name.startswith("rate-"):
            for outcome in ledger.outcomes(message.tenant, message.job, name).values():
                total = total + Usage.model_validate(outcome.get("usage", {}))
    return total


def rewriting_usage(context: UnitContext, options: QueryOptions) -> Usage:
    """Return what making one question of a conversation has used."""
    if not options.history:
        return Usage()
    told = json.loads(context.services.object(context.keys.job(context.message.job, "question.json")))
    return Usage.model_validate(told["usage"])


def _walk(context: UnitContext, request: QueryRequest, options: QueryOptions, view: CorpusView) -> Relevant | Dynamic:
    question = asked(context, request, options)
    language = answer_language(question, options)
    if options.selection.strategy == "dynamic":
        return Dynamic(view, options.selection, question, batch=options.batch, language=language)
    return Relevant(
        view, options.selection, question, batch=options.batch, language=language, seed=options.seed,
        price=_price(context, request, options, view),
    )  # fmt: skip


def _price(context: UnitContext, request: QueryRequest, options: QueryOptions, view: CorpusView) -> Price | None:
    budget = options.selection.budget_usd
    return None if budget is None else planner_of(context, request, options, view).price()


def planner_of(context: UnitContext, request: QueryRequest, options: QueryOptions, view: CorpusView) -> Planner:
    """Return what sizes and prices a query: with the question as it stands alone, at the prices of its models."""
    return Planner(view, options, asked(context, request, options), Prices.of(prices(context)))


def _unit(wave: int, n: int) -> str:
    return f"r{wave}-{n}"


def _go_on(
    context: UnitContext, request: QueryRequest, options: QueryOptions, walk: Relevant | Dynamic, wave: int, model: str,
    time: list[float] | None,
) -> Selected | None:  # fmt: skip
    """Open a wave, or return the selection. `time`: when ratings began, and until when they may be asked for.

    A wave has half of the time that is left: calls that hang in one leave something for the next.
    """
    until = None
    if time is not None:
        left = time[1] - clock.now()
        until = time[1] - left / 2
        if left < _LAST_WAVE * (time[1] - time[0]):
            walk.stop("deadline")
    if walk.done:
        if isinstance(walk, Relevant):
            walk.spent = (rating_usage(context) + rewriting_usage(context, options)).usd or 0.0
        return must_read(walk.selected())
    services, message = context.services, context.message
    state = json.dumps({**walk.to_state(), "time": time}).encode()
    services.store.put(context.keys.job(message.job, f"walk-{wave}.json"), state)
    args: dict[str, Any] = {"model": model}
    if options.selection.budget_usd is not None:
        args["usd"] = planner_of(context, request, options, walk.view).for_rating()
    units = [
        Unit(id=_unit(wave, n), args={"communities": communities, **args}) for n, communities in enumerate(walk.ask())
    ]
    then = Step(f"walk-{wave}", "communitree.query.walk.v1", {"wave": wave})
    window = options.concurrency or services.settings.window
    stage = Stage(f"rate-{wave}", "communitree.query.rate.v1", then, window=window, deadline=until)
    most = 1 if options.concurrency else 4
    context.open(stage, context.messages(stage, units, local=model == EXTRACTIVE, per_message=most))
    return None


async def rate(context: UnitContext) -> Outcome:
    """Rate some communities for the question; what was rated before is taken over."""
    await context.load(context.keys.job(context.message.job, "request.json"))
    request, options = context.query_request()
    view = await context.to_thread(load_view, context, request.corpus, request.version)
    question = await context.to_thread(asked, context, request, options)
    wanted: list[int] = context.args["communities"]
    texts = await context.to_thread(_texts, context, request, options, wanted)
    if context.args["model"] == EXTRACTIVE:
        reply = rate_reply([(c, texts[c]) for c in wanted], question, view.lexicon)
        return Outcome(data={"ratings": parse_ratings(reply, wanted)})
    language = answer_language(question, options)
    prompt = load("rate", language, options.prompts)
    keys = {c: _rating_key(context, request.corpus, prompt, question, texts[c], options) for c in wanted}
    known = await context.in_ledger(_known, context, keys) if options.cache else {}
    ratings: dict[int, float | None] = dict(known)
    missing = [c for c in wanted if c not in known]
    call = context.call(usd=context.args.get("usd", options.selection.budget_usd), bulk=options.bulk)
    if missing:
        messages = rate_messages(
            [(c, texts[c]) for c in missing], question, language, options.prompts, encoding=view.encoding
        )
        votes: dict[int, list[float | None]] = {c: [] for c in missing}
        for turn in range(options.selection.num_repeats):
            chat = ChatRequest(messages=messages, schema=rate_schema(), json=True, seed=options.seed + turn)
            try:
                answer = (await context.services.models.complete("rate", chat, call)).whole()
            except CommunitreeError as error:
                return failed(error, call.spent)
            value = answer.value if answer.value is not None else answer.text
            for community, rating in parse_ratings(value, missing).items():
                votes[community].append(rating)
        fresh = {c: vote(v) for c, v in votes.items()}
        ratings |= fresh
        await context.in_ledger(_keep, context, {keys[c]: r for c, r in fresh.items() if r is not None})
    usage = call.spent.model_copy(update={"cached": call.spent.cached + len(known)})
    return Outcome(data={"ratings": ratings, "usage": usage.model_dump()}, event={"rated": len(missing)})


def _texts(context: UnitContext, request: QueryRequest, options: QueryOptions, wanted: list[int]) -> dict[int, str]:
    table = context.read(request.corpus, request.version, COMMUNITY_REPORTS)[COMMUNITY_REPORTS]
    row_of = {c: n for n, c in enumerate(table["community"].to_pylist())}
    name = "summary" if options.selection.rate_use_summary else "full_content"
    texts = {}
    for community in wanted:
        row = row_of.get(community)
        title, text = (table["title"][row].as_py(), table[name][row].as_py()) if row is not None else ("", "")
        texts[community] = str(text) if str(text).startswith("#") else f"{title}\n{text}"
    return texts


def _rating_key(context: UnitContext, corpus: str, prompt: str, question: str, text: str, options: QueryOptions) -> str:
    parts = [context.args["model"], prompt, question, text, str(options.selection.num_repeats)]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]
    return rk.rating(context.message.tenant, encode_name(corpus), digest)


def _known(context: UnitContext, keys: dict[int, str]) -> dict[int, float]:
    try:
        values: Any = context.services.ledger.redis.mget(list(keys.values()))
    except redis.RedisError:
        return {}  # what cannot be looked up is rated
    return {c: float(v) for c, v in zip(keys, values, strict=True) if v is not None}


def _keep(context: UnitContext, ratings: dict[str, float]) -> None:
    pipe = context.services.ledger.redis.pipeline(transaction=False)
    for key, rating in ratings.items():
        pipe.set(key, rating, ex=int(context.services.settings.map_cache_ttl))
    with contextlib.suppress(redis.RedisError):  # what is not kept is rated again, some day
        pipe.execute()
