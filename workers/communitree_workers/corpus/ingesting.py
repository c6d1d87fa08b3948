"""The first step of a corpus job: documents read, text units cut, the extraction's units sealed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from communitree_shared import corpus_settings
from communitree_shared.errors import BadInput
from communitree_shared.ledger import Stage, Step
from communitree_shared.messages import CorpusRequest, Unit
from communitree_shared.options import IndexOptions
from communitree_shared.settings import EXTRACTIVE, MODEL_STAGES
from communitree_shared.tables import DOCUMENTS, ENTITIES, TEXT_UNITS
from communitree_workers.corpus import extract_builtin, extract_model, extract_spacy, uploads
from communitree_workers.corpus.extract_plan import extraction_usage
from communitree_workers.corpus.graph_import import read_graph
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.tables import io
from communitree_workers.text.words import language

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
    tables, notes = uploads.read(context, request, options)
    if tables[TEXT_UNITS].num_rows == 0:
        raise BadInput(
            f"None of the {len(request.documents)} files of {request.corpus!r} holds text that can be read.",
            hint="; ".join(notes[:3]),
        )
    spoken = _language(tables)
    context.write(request.corpus, request.version, tables, made_by="ingest")
    asked = models["extract"]
    if options.plan_only:
        models["extract"] = EXTRACTIVE  # what shows how large the graph may be, and costs nothing
    ids = tables[TEXT_UNITS]["id"].to_pylist()
    units = extract_units(context, options, ids, models["extract"], spoken, pipeline)
    done = services.store.present(context.keys.units(request.corpus, "extract"), (u.id for u in units))
    missing = [u for u in units if u.id not in done]
    plan = {
        "units": [u.id for u in units], "language": spoken, "notes": notes, "model": models["extract"],
        "reused": len(units) - len(missing), **about,
    }  # fmt: skip
    if asked != models["extract"]:
        units = extract_units(context, options, ids, asked, spoken, pipeline)
        plan |= {"model": asked, "extraction": _planned(context, request, options, tables, units, spoken, done)}
    services.store.put_json(context.keys.build(request.corpus, request.version, "extract.json"), plan)
    local = models["extract"] == EXTRACTIVE
    stage = Stage("extract", "communitree.corpus.extract.v1", MERGE, window=services.settings.window)
    context.open(stage, context.messages(stage, missing, local=local))
    counts = {"documents": tables[DOCUMENTS].num_rows, "text_units": tables[TEXT_UNITS].num_rows}
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
        d["name"]: uploads.uploaded(context, request, d["name"], d["sha256"], int(d["size"])) for d in request.documents
    }
    graph = read_graph(files, options)
    context.write(request.corpus, request.version, graph.tables, made_by="merge")
    keep = graph.communities is not None and not options.cluster.recluster
    said = [*graph.warnings, *graph.notes]
    plan = {
        "units": [], "language": _language(graph.tables), "notes": graph.notes, "kept": keep,
        "warnings": graph.warnings, "model": EXTRACTIVE, **about,
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
    # The middle says more about a corpus than its first page.
    step = max(1, len(source) // 20)
    return language("\n".join(str(source[i].as_py() or "")[:500] for i in range(0, len(source), step)))


def extract_units(
    context: UnitContext, options: IndexOptions, ids: list[str], model: str, spoken: str, pipeline: str
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
    where = {"language": spoken, "model": model, "version": request.version, "corpus": request.corpus}
    units = []
    for start in range(0, len(ids), size):
        part = ids[start : start + size]
        text = "\n".join([context.message.tenant, *how, spoken, *part])
        identity = hashlib.sha256(text.encode()).hexdigest()[:40]
        units.append(Unit(id=identity, args={"start": start, "rows": len(part), **where}))
    return units


def _planned(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, tables: io.Tables, units: list[Unit],
    spoken: str, done: set[str],
) -> dict[str, Any]:  # fmt: skip
    """Return the usage of the extraction by a model that a plan does not call, without the units that are known."""
    sizes = tables[TEXT_UNITS]["n_tokens"].to_pylist()
    open_ = [u.args["start"] for u in units if u.id not in done]
    usage = extraction_usage(
        [sizes[row] for row in open_], options.extract, spoken, options.prompts, options.read.encoding_model
    )
    return usage.model_dump()
