"""The corpus stage's tasks: read inputs, call the core, write outputs, say what follows."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from communitree_shared.errors import BadInput, CommunitreeError, OutputCut
from communitree_shared.ledger import Stage, Step
from communitree_shared.messages import CorpusRequest, Unit
from communitree_shared.options import IndexOptions
from communitree_shared.settings import EXTRACTIVE, MODEL_STAGES
from communitree_shared.tables import DOCUMENTS, ENTITIES, TEXT_UNITS
from communitree_workers.corpus import extract_model, uploads
from communitree_workers.corpus.describing import describe, described, open_describing
from communitree_workers.corpus.extract_builtin import extract_units
from communitree_workers.corpus.extract_plan import extraction_usage
from communitree_workers.corpus.graph_import import read_graph
from communitree_workers.corpus.merge import merge
from communitree_workers.model.chat import ChatRequest
from communitree_workers.runtime.context import Outcome, UnitContext, failed
from communitree_workers.runtime.runner import Handler
from communitree_workers.tables import io
from communitree_workers.text.words import language

MERGE = Step("merge", "communitree.corpus.merge.v1")
CLUSTER = Step("cluster", "communitree.corpus.cluster.v1")


def ingest(context: UnitContext) -> Outcome:
    """Read documents (or graph tables), cut text units, and seal the extraction."""
    request, options = context.corpus_request()
    services = context.services
    models = {stage: services.settings.model(stage).model for stage in MODEL_STAGES}
    services.ledger.update(context.message.tenant, context.message.job, {"models": json.dumps(models)})
    if options.graph:
        return _ingest_graph(context, request, options)
    tables, notes = uploads.read(context, request, options)
    if tables[TEXT_UNITS].num_rows == 0:
        raise BadInput(
            f"None of the {len(request.documents)} files of {request.corpus!r} holds text that can be read.",
            hint="; ".join(notes[:3]),
        )
    spoken = _language(tables)
    context.write(request.corpus, request.version, tables, made_by="ingest")
    done = set(services.store.keys(context.keys.units(request.corpus, "extract")))
    asked = models["extract"]
    if options.plan_only:
        models["extract"] = EXTRACTIVE  # what shows how large the graph may be, and costs nothing
    units = _extract_units(context, request, options, tables, models["extract"], spoken)
    missing = [u for u in units if context.keys.unit(request.corpus, "extract", u.id) not in done]
    plan = {
        "units": [u.id for u in units], "language": spoken, "notes": notes, "model": models["extract"],
        "reused": len(units) - len(missing),
    }  # fmt: skip
    if asked != models["extract"]:
        plan |= {"model": asked, "extraction": _planned(context, request, options, tables, asked, spoken, done)}
    services.store.put_json(context.keys.build(request.corpus, request.version, "extract.json"), plan)
    local = models["extract"] == EXTRACTIVE
    stage = Stage("extract", "communitree.corpus.extract.v1", MERGE, window=services.settings.window)
    context.open(stage, context.messages(stage, missing, local=local))
    counts = {"documents": tables[DOCUMENTS].num_rows, "text_units": tables[TEXT_UNITS].num_rows}
    return Outcome(data={"notes": notes[:100], **counts}, event={**counts, "notes": "; ".join(notes[:5])})


def _ingest_graph(context: UnitContext, request: CorpusRequest, options: IndexOptions) -> Outcome:
    services = context.services
    files = {d["name"]: uploads.uploaded(context, request, d["name"], d["sha256"]) for d in request.documents}
    graph = read_graph(files, options)
    context.write(request.corpus, request.version, graph.tables, made_by="merge")
    keep = graph.communities is not None and not options.cluster.recluster
    notes = [*graph.notes, *graph.warnings]
    plan = {
        "units": [], "language": _language(graph.tables), "notes": notes, "kept": keep,
        "warnings": graph.warnings, "model": EXTRACTIVE,
    }  # fmt: skip
    services.store.put_json(context.keys.build(request.corpus, request.version, "extract.json"), plan)
    for name, table in (("kept_communities", graph.communities), ("kept_reports", graph.reports)):
        if keep and table is not None:
            key = context.keys.build(request.corpus, request.version, f"{name}.parquet")
            services.store.put(key, io.to_bytes(table))
    context.step(CLUSTER)
    counts = {name: table.num_rows for name, table in graph.tables.items()}
    return Outcome(data={"notes": notes, **counts}, event={**counts, "notes": "; ".join(notes[:5])})


def _language(tables: io.Tables) -> str:
    source = tables[TEXT_UNITS]["text"] if tables[TEXT_UNITS].num_rows else tables[ENTITIES]["description"]
    # The middle says more about a corpus than its first page.
    step = max(1, len(source) // 20)
    return language("\n".join(str(source[i].as_py() or "")[:500] for i in range(0, len(source), step)))


def _extract_units(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, tables: io.Tables, model: str, spoken: str
) -> list[Unit]:
    """One unit a shard of the built-in extractor, or one a text unit for a model; ids are hashes of their input."""
    ids = tables[TEXT_UNITS]["id"].to_pylist()
    chosen = options.extract.model_dump_json()
    prompts = json.dumps({k: v for k, v in options.prompts.items() if k in extract_model.PROMPTS}, sort_keys=True)
    size = options.extract.shard_units if model == EXTRACTIVE else 1
    units = []
    for start in range(0, len(ids), size):
        part = ids[start : start + size]
        text = "\n".join([context.message.tenant, model, chosen, prompts, spoken, extract_model.VERSION, *part])
        identity = hashlib.sha256(text.encode()).hexdigest()[:40]
        args = {"start": start, "rows": len(part), "language": spoken, "model": model, "version": request.version}
        units.append(Unit(id=identity, args={**args, "corpus": request.corpus}))
    return units


def _planned(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, tables: io.Tables, model: str, spoken: str,
    done: set[str],
) -> dict[str, Any]:  # fmt: skip
    """Return the usage of the extraction by a model that a plan does not call, without the units that are known."""
    units = _extract_units(context, request, options, tables, model, spoken)
    sizes = tables[TEXT_UNITS]["n_tokens"].to_pylist()
    open_ = [u.args["start"] for u in units if context.keys.unit(request.corpus, "extract", u.id) not in done]
    usage = extraction_usage(
        [sizes[row] for row in open_], options.extract, spoken, options.prompts, options.read.encoding_model
    )
    return usage.model_dump()


async def extract(context: UnitContext) -> Outcome:
    """Find entities and relationships in one shard of text units."""
    args = context.args
    corpus, (_, options) = args["corpus"], await context.to_thread(context.corpus_request)
    key = context.keys.unit(corpus, "extract", context.unit.id)
    if context.attempt > 1 and await context.to_thread(context.services.store.exists, key):
        return Outcome(event={"reused": 1})
    tables = await context.to_thread(lambda: context.read(corpus, args["version"], TEXT_UNITS, made_by="ingest"))
    table = tables[TEXT_UNITS].slice(args["start"], args["rows"])
    if args["model"] == EXTRACTIVE:
        shard = extract_units(table, options.extract, args["language"])
        await context.save(key, shard.to_bytes())
        return Outcome(event={"text_units": args["rows"]})
    call = context.call(usd=options.budget_usd, tokens=options.budget_tokens)

    async def ask(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> tuple[str, Any]:
        chat = ChatRequest(messages=messages, schema=schema, json=schema is not None)
        reply = await context.services.models.complete("extract", chat, call)
        if reply.finish_reason == "length":
            raise OutputCut(f"The reply was cut off after {reply.usage.output_tokens} tokens.")
        return reply.text, reply.value

    row = table.to_pylist()[0]
    try:
        result = await extract_model.extract_unit(row, options.extract, args["language"], options.prompts, ask)
    except CommunitreeError as error:
        return failed(error, call.spent)
    await context.save(key, json.dumps(result, ensure_ascii=False, sort_keys=True).encode())
    lost = result.get("lost", 0)
    return Outcome(data={"usage": call.spent.model_dump(), "lost": lost}, event={"text_units": 1, "lost": lost})


def merge_shards(context: UnitContext) -> Outcome:
    """Unite what the shards found into one table each."""
    request, options = context.corpus_request()
    services = context.services
    plan = services.store.get_json(context.keys.build(request.corpus, request.version, "extract.json"))
    folder = context.keys.units(request.corpus, "extract")
    shards, failed = [], 0
    for identity in plan["units"]:
        data = services.store.find(folder + identity)
        if data is None:
            failed += 1  # its text is still held, by a `document` entity
        else:
            shards.append(data)
    tables = context.read(request.corpus, request.version, DOCUMENTS, TEXT_UNITS, made_by="ingest")
    by_model = plan["model"] != EXTRACTIVE and not options.plan_only
    tables, stats = merge(tables, shards, options.extract, keep_long=by_model)
    context.write(request.corpus, request.version, tables, made_by="long" if by_model else "merge")
    plan.update(failed=failed, merge=stats)
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
