"""The corpus stage's tasks: read inputs, call the core, write outputs, say what follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from communitree_shared.errors import CommunitreeError, CorpusNotFound
from communitree_shared.settings import EXTRACTIVE
from communitree_shared.tables import DOCUMENTS, TEXT_UNITS
from communitree_workers.corpus import extract_model, extract_spacy, losses
from communitree_workers.corpus.describing import describe, described, open_describing
from communitree_workers.corpus.extract_builtin import extract_units
from communitree_workers.corpus.fetching import in_order
from communitree_workers.corpus.ingesting import CLUSTER, ingest
from communitree_workers.corpus.merge import merge_compact
from communitree_workers.corpus.unit_rows import rows_of
from communitree_workers.model.chat import ChatRequest
from communitree_workers.runtime.context import Outcome, UnitContext, failed
from communitree_workers.runtime.runner import Handler


async def extract(context: UnitContext) -> Outcome:
    """Find entities and relationships in one shard of text units."""
    args = context.args
    corpus, (_, options) = args["corpus"], await context.to_thread(context.corpus_request)
    key = context.keys.unit(corpus, "extract", context.unit.id)
    if context.attempt > 1 and await context.to_thread(context.services.store.exists, key):
        return Outcome(event={"reused": 1})
    table = await context.to_thread(_text_units, context)
    if args["model"] == EXTRACTIVE:
        found = extract_spacy.extract_units if options.extract.extractor == "spacy" else extract_units
        shard = found(table, options.extract, args["language"])
        await context.save(key, shard.to_bytes())
        return Outcome(event={"text_units": args["rows"]})
    call = context.call(usd=options.budget_usd, tokens=options.budget_tokens)

    async def ask(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> tuple[str, Any]:
        chat = ChatRequest(messages=messages, schema=schema, json=schema is not None)
        reply = (await context.services.models.complete("extract", chat, call)).whole()  # a cut one is read in halves
        return reply.text, reply.value

    row = table.to_pylist()[0]
    try:
        result = await extract_model.extract_unit(row, options.extract, args["language"], options.prompts, ask)
    except CommunitreeError as error:
        return failed(error, call.spent)
    await context.save(key, json.dumps(result, ensure_ascii=False, sort_keys=True).encode())
    lost = result.get("lost", 0)
    return Outcome(data={"usage": call.spent.model_dump(), "lost": lost}, event={"text_units": 1, "lost": lost})


def _text_units(context: UnitContext) -> pa.Table:
    """Return the text units of a shard.

    Raises:
        CorpusNotFound: they are gone.
    """
    args, services = context.args, context.services
    if "bytes" not in args:  # a message of an older release
        table = context.read(args["corpus"], args["version"], TEXT_UNITS, made_by="ingest")[TEXT_UNITS]
        return table.slice(args["start"], args["rows"])
    key = context.keys.build(args["corpus"], args["version"], f"ingest/{TEXT_UNITS}.parquet")
    try:
        return rows_of(
            lambda offset, length: services.part(key, offset, length),
            args["bytes"], args["start"], args["rows"], ["id", "text", "n_tokens"],
            lambda name, make: services.value(f"{key}#{args['bytes']}#{name}", make),
        )  # fmt: skip
    except KeyError:
        raise CorpusNotFound(
            f"{key} is gone: the corpus {args['corpus']!r} was deleted or indexed anew meanwhile.",
            hint="`communitree corpora` lists what there is.",
        ) from None


def merge_shards(context: UnitContext) -> Outcome:
    """Unite what the shards found into one table each."""
    request, options = context.corpus_request()
    services = context.services
    plan = services.store.get_json(context.keys.build(request.corpus, request.version, "extract.json"))
    folder = context.keys.units(request.corpus, "extract")
    failed = 0

    def shards() -> Iterator[bytes]:
        nonlocal failed
        for data in in_order(plan["units"], lambda identity: services.store.find(folder + identity)):
            if data is None:
                failed += 1  # its text is still held, by a `document` entity
            else:
                yield data

    context.carry(request.corpus, request.version, DOCUMENTS, "ingest", "merge")
    tables = context.read(request.corpus, request.version, TEXT_UNITS, made_by="ingest")
    by_model = plan["model"] != EXTRACTIVE and not options.plan_only
    tables, stats = merge_compact(tables, shards(), options.extract, keep_long=by_model)
    context.write(request.corpus, request.version, tables, made_by="long" if by_model else "merge")
    about_files = [*losses.of_left_out(request.left_out), *losses.of_files(plan["notes"])]
    plan.update(failed=failed, merge=stats, warnings=[*about_files, *losses.of_merge(stats)])
    services.store.put_json(context.keys.build(request.corpus, request.version, "extract.json"), plan)
    if by_model:
        open_describing(context, request, options, tables, plan["language"], plan["model"])
    else:
        context.step(CLUSTER)
    counts = {name: table.num_rows for name, table in tables.items()}
    return Outcome(data={"failed": failed}, event={**counts, "failed": failed})


HANDLERS: dict[str, Handler] = {
    "communitree.corpus.ingest.v1": ingest,
    "communitree.corpus.extract.v1": extract,
    "communitree.corpus.merge.v1": merge_shards,
    "communitree.corpus.describe.v1": describe,
    "communitree.corpus.described.v1": described,
}
