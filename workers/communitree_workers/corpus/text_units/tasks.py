"""The first step of a corpus job: documents read, text units cut, the extraction's units sealed."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyarrow as pa

from communitree_shared.contract import corpus_settings
from communitree_shared.contract.messages import CorpusRequest, Unit
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.results import LeftOutGroup, Usage
from communitree_shared.contract.tables import DOCUMENTS, TEXT_UNITS
from communitree_shared.errors import BadInput
from communitree_shared.ledger import Stage, Step
from communitree_shared.settings import EXTRACTIVE, MODEL_STAGES
from communitree_workers.corpus import losses
from communitree_workers.corpus.disk.large_text import LargeText
from communitree_workers.corpus.extraction import spacy_pipeline
from communitree_workers.corpus.extraction.estimate import extraction_usage
from communitree_workers.corpus.extraction.units import TextUnits, extraction_units
from communitree_workers.corpus.graph_import.tasks import import_graph
from communitree_workers.corpus.reading.formats import read_documents
from communitree_workers.corpus.reading.isolated import IsolatedReader
from communitree_workers.corpus.reading.uploads import odd_encodings, sources
from communitree_workers.corpus.text_units.tables import ingest_into
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.tables.handover import Extraction
from communitree_workers.tables.io import TableFile
from communitree_workers.text.language import Samples

MERGE = Step("merge", "communitree.corpus.merge.v1")


def ingest(context: UnitContext) -> Outcome:
    """Read documents (or graph tables), cut text units, and seal the extraction."""
    request, options = context.corpus_request()
    services, keys = context.services, context.keys
    models: dict[str, str] = {stage: services.settings.model(stage).model for stage in MODEL_STAGES}
    if options.extract.extractor != "auto":
        models["extract"] = EXTRACTIVE
    services.ledger.update(context.message.tenant, context.message.job, {"models": json.dumps(models)})
    changes = corpus_settings.changes(_published(context, request.corpus), options, models)
    if options.graph:
        return import_graph(context, request, options, models, changes)
    pipeline = spacy_pipeline.identity(options.extract) if options.extract.extractor == "spacy" else ""
    read, counts, notes, left_out = _read(context, request, options)
    asked = models["extract"]
    if options.plan_only:
        models["extract"] = EXTRACTIVE  # what shows how large the graph may be, and costs nothing
    writer = models["extract"]
    units = extraction_units(read, options, writer, pipeline)
    done = services.store.present(keys.units(request.corpus, "extract"), (u.id for u in units))
    missing = [u for u in units if u.id not in done]
    made = {
        "units": [u.id for u in units], "language": read.language, "notes": notes, "left_out": left_out, "model": asked,
        "reused": len(units) - len(missing), "models": models, "changes": changes,
    }  # fmt: skip
    if asked != writer:
        made["extraction"] = _planned(options, read, extraction_units(read, options, asked, pipeline), done)
    Extraction(**made).save(services.store, keys, request)
    stage = Stage("extract", "communitree.corpus.extract.v1", MERGE, window=services.settings.window)
    context.open(stage, context.messages(stage, missing, local=writer == EXTRACTIVE))
    told = [*losses.of_files(left_out), *notes]
    return Outcome(data={"notes": told[:100], **counts}, event={**counts, "notes": "; ".join(told[:5])})


def _published(context: UnitContext, corpus: str) -> dict[str, Any] | None:
    """Return the manifest of the version that is published now, or None."""
    store, keys = context.services.store, context.keys
    current = store.find_json(keys.current(corpus))
    manifest: dict[str, Any] | None = store.find_json(keys.manifest(corpus, current["version"])) if current else None
    return manifest


def _read(
    context: UnitContext, request: CorpusRequest, options: IndexOptions
) -> tuple[TextUnits, dict[str, int], list[str], list[LeftOutGroup]]:
    """Read a request's files, write `documents` and `text_units`; return the latter, counts, notes, and
    what was left out.

    Raises:
        BadInput: there is no text in any.
    """
    sink = _Written(context, request)
    with sink.files[DOCUMENTS], sink.files[TEXT_UNITS]:
        with IsolatedReader() as reader:
            items = read_documents(sources(context, request), options.read, reader)
            report = ingest_into(sink, items, options.read)
        left_out = losses.grouped(report.problems)
        notes = odd_encodings(report.encodings)
        if not sink.ids:
            raise BadInput(
                f"None of the {request.count:,} files of {request.corpus!r} holds text that can be read.",
                hint="; ".join(losses.of_files(left_out)[:3]),
            )
        sizes = {}
        for name, table in sink.files.items():
            file, sizes[name] = table.close()
            key = context.keys.build(request.corpus, request.version, f"ingest/{name}.parquet")
            context.services.store.put_file(key, file, sizes[name])
    units = TextUnits(
        tenant=context.message.tenant,
        corpus=request.corpus,
        version=request.version,
        ids=sink.ids,
        n_tokens=sink.sizes,
        language=sink.samples.language(),
        bytes=sizes[TEXT_UNITS],
    )
    return units, {"documents": report.documents, "text_units": len(sink.ids)}, notes, left_out


class _Written:
    """The tables on their way into the store, and what the next step wants to know of the text units."""

    def __init__(self, context: UnitContext, request: CorpusRequest) -> None:
        self.ids: list[str] = []
        self.sizes: list[int] = []
        self.samples = Samples()
        self.files = {name: TableFile(name) for name in (DOCUMENTS, TEXT_UNITS)}
        self._store = context.services.store
        self._key = partial(context.keys.text, request.corpus, request.version)

    def units(self, part: pa.Table) -> None:
        self.ids += part["id"].to_pylist()
        self.sizes += part["n_tokens"].to_pylist()
        for text in part["text"].to_pylist():
            self.samples.add(text)
        self.files[TEXT_UNITS].add(part)

    def documents(self, part: pa.Table) -> None:
        self.files[DOCUMENTS].add(part)

    def text(self, document: str, text: LargeText) -> str:
        """Store a text as an object of its own: no reader of the table must hold it."""
        self._store.put_file(self._key(document), text.file(), text.size)
        return ""


def _planned(options: IndexOptions, read: TextUnits, units: list[Unit], done: set[str]) -> Usage:
    """Return the usage of the extraction by a model that a plan does not call, without the units that are known."""
    sizes = [read.n_tokens[u.args["start"]] for u in units if u.id not in done]
    return extraction_usage(sizes, options.extract, read.language, options.prompts, options.read.encoding_model)
