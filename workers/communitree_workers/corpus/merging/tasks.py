"""The merge's tasks: shards into one graph, then long descriptions summarised by the model, one unit each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from communitree_shared.contract.messages import CorpusRequest, Unit
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.tables import COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_shared.errors import CommunitreeError
from communitree_shared.ledger import Stage, Step
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.corpus import losses
from communitree_workers.corpus.disk.downloads import in_order
from communitree_workers.corpus.extraction.model import describe_messages
from communitree_workers.corpus.extraction.tasks import PART
from communitree_workers.corpus.merging.long_descriptions import long_descriptions, with_summaries
from communitree_workers.corpus.merging.merge import merge_compact
from communitree_workers.model.chat import CallContext, ChatRequest, CutReply
from communitree_workers.model.client import ModelClient
from communitree_workers.prompts import load
from communitree_workers.runtime.context import Outcome, UnitContext, failed
from communitree_workers.tables.handover import Extraction
from communitree_workers.tables.io import Tables

TABLES = (TEXT_UNITS, ENTITIES, RELATIONSHIPS, COVARIATES)
DESCRIBED = Step("described", "communitree.corpus.described.v1")
CLUSTER = Step("cluster", "communitree.corpus.cluster.v1")


def merge_shards(context: UnitContext) -> Outcome:
    """Unite what the shards found into one table each."""
    request, options = context.corpus_request()
    services = context.services
    found = Extraction.load(services.store, context.keys, request)
    folder, parts = (context.keys.units(request.corpus, kind) for kind in ("extract", PART))
    failed = 0

    def stored(identity: str) -> bytes | None:
        data: bytes | None = services.store.find(folder + identity)
        return services.store.find(parts + identity) if data is None else data

    def shards() -> Iterator[bytes]:
        nonlocal failed
        for data in in_order(found.units, stored):
            if data is None:
                failed += 1  # its text is still held, by a `document` entity
            else:
                yield data

    context.carry(request.corpus, request.version, DOCUMENTS, "ingest", "merge")
    tables = context.read(request.corpus, request.version, TEXT_UNITS, made_by="ingest")
    by_model = found.model != EXTRACTIVE and not options.plan_only
    tables, stats = merge_compact(tables, shards(), options.extract, keep_long=by_model)
    context.write(request.corpus, request.version, tables, made_by="long" if by_model else "merge")
    about_files = [*losses.of_left_out(request.left_out), *losses.of_files(found.left_out), *found.notes]
    merged = {"failed": failed, "merge": stats, "warnings": [*about_files, *losses.of_merge(stats)]}
    found.model_copy(update=merged).save(services.store, context.keys, request)
    if by_model:
        open_describing(context, request, options, tables, found.language, found.model)
    else:
        context.step(CLUSTER)
    counts = {name: table.num_rows for name, table in tables.items()}
    return Outcome(data={"failed": failed}, event={**counts, "failed": failed})


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
        text = await summarise(context.services.models, messages, call)
    except CommunitreeError as error:
        return failed(error, call.spent)
    await context.save(key, text.encode())
    return Outcome(data={"usage": call.spent.model_dump()})


async def summarise(models: ModelClient, messages: list[dict[str, str]], call: CallContext) -> str:
    """Return one description of several; a cut one is asked for its rest, once.

    Raises:
        OutputCut: it was cut all the same. ModelError: the call failed.
    """
    chat = ChatRequest(messages=messages, temperature=0.0)
    reply = await models.complete("extract", chat, call)
    if isinstance(reply, CutReply):
        reply = await models.go_on("extract", chat, reply, call)
    return reply.whole().text.strip()


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
        extraction = Extraction.load(store, keys, request)
        told = losses.of_merge({"descriptions_cut": cut})
        warnings = [*(w for w in extraction.warnings if w not in told), *told]
        extraction.model_copy(update={"warnings": warnings}).save(store, keys, request)
    context.step(CLUSTER)
    return Outcome(data={"cut": cut}, event={"summarised": summarised, "cut": cut})
