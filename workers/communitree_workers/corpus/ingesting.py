"""The first step of a corpus job: documents read, text units cut, the extraction's units sealed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from communitree_shared.contract import corpus_settings
from communitree_shared.contract.messages import CorpusRequest, Unit
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.tables import ENTITIES, TEXT_UNITS
from communitree_shared.ledger import Stage, Step
from communitree_shared.settings import EXTRACTIVE, MODEL_STAGES
from communitree_workers.corpus import extract_builtin, extract_model, extract_spacy, losses, uploads
from communitree_workers.corpus.extract_plan import extraction_usage
from communitree_workers.corpus.graph_import import read_graph
from communitree_workers.corpus.samples import language_of
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.tables import io

MERGE = Step("merge", "communitree.corpus.merge.v1")
CLUSTER = Step("cluster", "communitree.corpus.cluster.v1")

#: What a request to a model depends on: a change of anything else finds the old replies again.
_ASKED = {"entity_types", "max_gleanings", "claims", "claim_description"}


def ingest(context: UnitContext) -> Outcome:
    """Read documents (or graph tables), cut text units, and seal the extraction."""
    request, options = context.corpus_request()
    services = context.services
    models: dict[str, str] = {stage: services.settings.model(stage).model for stage in MODEL_STAGES}
    if options.extract.extractor != "auto":
        models["extract"] = EXTRACTIVE
    services.ledger.update(context.message.tenant, context.message.job, {"models": json.dumps(models)})
    changes = corpus_settings.changes(_published(context, request.corpus), options, models)
    about = {"models": models, "changes": changes}
    if options.graph:
        return _ingest_graph(context, request, options, about)
    pipeline = extract_spacy.identity(options.extract) if options.extract.extractor == "spacy" else ""
    read = uploads.read(context, request, options)
    spoken, notes = read.language, read.notes
    asked = models["extract"]
    if options.plan_only:
        models["extract"] = EXTRACTIVE  # what shows how large the graph may be, and costs nothing
    units = extract_units(context, options, read, models["extract"], pipeline)
    done = services.store.present(context.keys.units(request.corpus, "extract"), (u.id for u in units))
    missing = [u for u in units if u.id not in done]
    plan = {
        "units": [u.id for u in units], "language": spoken, "notes": notes, "model": models["extract"],
        "reused": len(units) - len(missing), **about,
    }  # fmt: skip
    if asked != models["extract"]:
        units = extract_units(context, options, read, asked, pipeline)
        plan |= {"model": asked, "extraction": _planned(options, read, units, done)}
    services.store.put_json(context.keys.build(request.corpus, request.version, "extract.json"), plan)
    local = models["extract"] == EXTRACTIVE
    stage = Stage("extract", "communitree.corpus.extract.v1", MERGE, window=services.settings.window)
    context.open(stage, context.messages(stage, missing, local=local))
    counts = {"documents": read.documents, "text_units": len(read.ids)}
    return Outcome(data={"notes": notes[:100], **counts}, event={**counts, "notes": "; ".join(notes[:5])})


def _published(context: UnitContext, corpus: str) -> dict[str, Any] | None:
    """Return the manifest of the version that is published now, or None."""
    store, keys = context.services.store, context.keys
    current = store.find_json(keys.current(corpus))
    manifest: dict[str, Any] | None = store.find_json(keys.manifest(corpus, current["version"])) if current else None
    return manifest


def _ingest_graph(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, about: dict[str, Any]
) -> Outcome:
    services = context.services
    files = {
        d["name"]: uploads.uploaded(context, request, d["name"], d["sha256"], int(d["size"]))
        for d in uploads.listed(context, request)
    }
    graph = read_graph(files, options)
    context.write(request.corpus, request.version, graph.tables, made_by="merge")
    keep = graph.communities is not None and not options.cluster.recluster
    warnings = [*losses.of_left_out(request.left_out), *graph.warnings]
    said = [*warnings, *graph.notes]
    plan = {
        "units": [], "language": _language(graph.tables), "notes": graph.notes, "kept": keep,
        "warnings": warnings, "model": EXTRACTIVE, **about,
    }  # fmt: skip
    services.store.put_json(context.keys.build(request.corpus, request.version, "extract.json"), plan)
    for name, table in (("kept_communities", graph.communities), ("kept_reports", graph.reports)):
        if keep and table is not None:
            key = context.keys.build(request.corpus, request.version, f"{name}.parquet")
            services.store.put(key, io.to_bytes(table))
    context.step(CLUSTER)
    counts = {name: table.num_rows for name, table in graph.tables.items()}
    return Outcome(data={"notes": said, **counts}, event={**counts, "notes": "; ".join(said[:5])})


def _language(tables: io.Tables) -> str:
    source = tables[TEXT_UNITS]["text"] if tables[TEXT_UNITS].num_rows else tables[ENTITIES]["description"]
    return language_of(text.as_py() for text in source)


def extract_units(
    context: UnitContext, options: IndexOptions, read: uploads.Read, model: str, pipeline: str
) -> list[Unit]:
    """Return the extraction's units: a shard of the built-in extractor's each, or one text unit for a model.

    Ids are hashes of what the unit reads, so that one that was made before is found again. `pipeline` is spaCy's, ""
    for another extractor.
    """
    if model == EXTRACTIVE:
        size, how = options.extract.shard_units, [pipeline or extract_builtin.VERSION]
    else:
        prompts = {k: v for k, v in options.prompts.items() if k in extract_model.ASKED}
        chosen = options.extract.model_dump_json(include=_ASKED)
        size, how = 1, [model, chosen, json.dumps(prompts, sort_keys=True), extract_model.VERSION]
    request, _ = context.corpus_request()
    where: dict[str, Any] = {
        "language": read.language,
        "model": model,
        "version": request.version,
        "corpus": request.corpus,
    }
    where["bytes"] = read.bytes
    units = []
    for start in range(0, len(read.ids), size):
        part = read.ids[start : start + size]
        text = "\n".join([context.message.tenant, *how, read.language, *part])
        identity = hashlib.sha256(text.encode()).hexdigest()[:40]
        units.append(Unit(id=identity, args={"start": start, "rows": len(part), **where}))
    return units


def _planned(options: IndexOptions, read: uploads.Read, units: list[Unit], done: set[str]) -> dict[str, Any]:
    """Return the usage of the extraction by a model that a plan does not call, without the units that are known."""
    open_ = [u.args["start"] for u in units if u.id not in done]
    usage = extraction_usage(
        [read.sizes[row] for row in open_], options.extract, read.language, options.prompts, options.read.encoding_model
    )
    return usage.model_dump()
