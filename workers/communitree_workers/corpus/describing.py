"""Long descriptions summarised by the model: one unit each, between merge and clustering."""

from __future__ import annotations

import hashlib
import json
from functools import partial

import pyarrow as pa

from communitree_shared.errors import CommunitreeError
from communitree_shared.ledger import Stage, Step
from communitree_shared.messages import CorpusRequest, Unit
from communitree_shared.options import IndexOptions
from communitree_shared.tables import COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.corpus import losses
from communitree_workers.corpus.extract_model import describe_messages
from communitree_workers.corpus.fetching import in_order
from communitree_workers.corpus.long_descriptions import long_descriptions, with_summaries
from communitree_workers.model.chat import ChatRequest
from communitree_workers.prompts import load
from communitree_workers.runtime.context import Outcome, UnitContext, failed
from communitree_workers.tables.io import Tables

TABLES = (TEXT_UNITS, ENTITIES, RELATIONSHIPS, COVARIATES)
DESCRIBED = Step("described", "communitree.corpus.described.v1")


def open_describing(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, tables: Tables, language: str, model: str
) -> None:
    """Seal a stage with one unit for each description that is too long; those summarised before are taken over."""
    keys, store = context.keys, context.services.store
    found = long_descriptions(tables, options.extract)
    prompt = load("describe", language, options.prompts)
    units: dict[str, Unit] = {}
    index: dict[str, dict[str, str]] = {ENTITIES: {}, RELATIONSHIPS: {}}
    for entry in found:
        parts = [context.message.tenant, model, prompt, str(options.extract.max_description_tokens), entry.title]
        identity = hashlib.sha256("\n".join([*parts, *entry.descriptions]).encode()).hexdigest()[:40]
        index[entry.table][entry.id] = identity
        key = keys.build(request.corpus, request.version, f"describe/{identity}.json")
        body = {"title": entry.title, "descriptions": entry.descriptions}
        store.put_json(key, body)
        args = {"corpus": request.corpus, "version": request.version, "language": language}
        units[identity] = Unit(id=identity, args=args)
    store.put_json(keys.build(request.corpus, request.version, "describe.json"), index)
    done = store.present(keys.units(request.corpus, "describe"), units)
    missing = [u for u in units.values() if u.id not in done]
    stage = Stage("describe", "communitree.corpus.describe.v1", DESCRIBED, window=context.services.settings.window)
    context.open(stage, context.messages(stage, missing, local=False))


async def describe(context: UnitContext) -> Outcome:
    """Summarise one long description."""
    args, keys = context.args, context.keys
    key = keys.unit(args["corpus"], "describe", context.unit.id)
    if context.attempt > 1 and await context.to_thread(context.services.store.exists, key):
        return Outcome(event={"reused": 1})
    _, options = await context.to_thread(context.corpus_request)
    body = json.loads(
        await context.load(keys.build(args["corpus"], args["version"], f"describe/{context.unit.id}.json"))
    )
    messages = describe_messages(
        body["title"], body["descriptions"], options.extract, args["language"], options.prompts
    )
    call = context.call(usd=options.budget_usd, tokens=options.budget_tokens)
    try:
        reply = (await context.services.models.complete("extract", ChatRequest(messages=messages), call)).whole()
    except CommunitreeError as error:
        return failed(error, call.spent)
    if reply.text.strip():
        await context.save(key, reply.text.strip().encode())
    return Outcome(data={"usage": call.spent.model_dump()})


def described(context: UnitContext) -> Outcome:
    """Put the summaries in place; what has none is cut to the limit, counted."""
    request, options = context.corpus_request()
    keys, store = context.keys, context.services.store
    index = store.get_json(keys.build(request.corpus, request.version, "describe.json"))
    cut = summarised = 0
    folder = keys.units(request.corpus, "describe")

    def shortened(table: pa.Table, rows: dict[str, str]) -> pa.Table:
        nonlocal cut, summarised
        found = in_order(rows.values(), lambda identity: store.find(folder + identity))
        summaries = {row: data.decode() for row, data in zip(rows, found, strict=True) if data is not None}
        table, left = with_summaries(table, summaries, options.extract)
        summarised, cut = summarised + len(summaries), cut + left
        return table

    for name in TABLES:
        rows = index.get(name)
        change = partial(shortened, rows=rows) if rows else None
        context.carry(request.corpus, request.version, name, "long", "merge", change)
    if cut:
        key = keys.build(request.corpus, request.version, "extract.json")
        plan = store.get_json(key)
        told = losses.of_merge({"descriptions_cut": cut})
        plan["warnings"] = [*(w for w in plan["warnings"] if w not in told), *told]
        store.put_json(key, plan)
    context.step(Step("cluster", "communitree.corpus.cluster.v1"))
    return Outcome(data={"cut": cut}, event={"summarised": summarised, "cut": cut})
