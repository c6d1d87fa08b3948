"""What the query tasks share: the view of a version, its report texts, and the batches of a selection.

Batches do not depend on the question where the selection does not: they are cut once, stored by content hash, and
found again by a hash of what decides them.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.messages import QueryRequest
from communitree_shared.options import QueryOptions
from communitree_shared.results import Coverage, Selection
from communitree_shared.settings import ModelSettings, ModelStage
from communitree_shared.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_workers.prompts import load
from communitree_workers.query.batch import Batch, make_batches
from communitree_workers.query.corpus_view import FORMAT, CorpusView
from communitree_workers.query.map import static_tokens
from communitree_workers.query.question import read_question
from communitree_workers.query.rows import report_rows, text_rows
from communitree_workers.query.select.common import Selected
from communitree_workers.query.view import build_view
from communitree_workers.runtime.context import UnitContext
from communitree_workers.runtime.formats import check_format

#: Name of the stored view beside a version's tables. Each format has a name of its own: while an upgrade rolls, workers
#: of two releases read the same version.
VIEW = f"view-{FORMAT}.bin"

#: What the view is made of.
VIEW_TABLES = (COMMUNITIES, COMMUNITY_REPORTS, COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS)

#: Part of the hash that finds a selection's batches again: rises when they would be cut otherwise.
CUT_FORMAT = 1


@dataclass(frozen=True)
class CutBatch:
    """A stored batch as a plan knows it."""

    key: str
    ids: list[int]
    tokens: int
    prompt_tokens: int


def load_view(context: UnitContext, corpus: str, version: str) -> CorpusView:
    """Return the view of a version, from the process's cache where it is there.

    One that another release published has no view of our format: it is made from the tables, and kept beside the other.

    Raises:
        CorpusNotFound: the version is gone. IntegrityError: its tables cannot be read by this release.
    """
    store, key = context.services.store, context.keys.artifact(corpus, version, VIEW)

    def read() -> tuple[CorpusView, int]:
        data = store.find(key)
        if data is None:
            check_format(context, corpus, version)
            data = build_view(context.read(corpus, version, *VIEW_TABLES)).to_bytes()
            store.put_new(key, data)
        return CorpusView.from_bytes(data), 2 * len(data)

    view: CorpusView = context.services.value(key + "#view", read)
    return view


def asked(context: UnitContext, request: QueryRequest, options: QueryOptions) -> str:
    """Return the question that stands alone: rewritten where it came with a conversation."""
    if not options.history:
        return request.question
    found = json.loads(context.services.object(context.keys.job(context.message.job, "question.json")))
    return str(found["question"])


def answer_language(question: str, options: QueryOptions) -> str:
    """Return the language of the answer: as asked for, else the question's."""
    return options.answer.language or read_question(question).language


def prices(context: UnitContext) -> dict[str, ModelSettings]:
    """Return the model settings of the stages that a query pays for."""
    stages: tuple[ModelStage, ...] = ("map", "reduce", "rate")
    return {stage: context.services.settings.model(stage) for stage in stages}


def contents(context: UnitContext, request: QueryRequest, selected: Selected, options: QueryOptions) -> dict[int, str]:
    """Return the text of each selected report or text unit."""
    if selected.kind == "sources":
        table = context.read(request.corpus, request.version, TEXT_UNITS)[TEXT_UNITS]
        names = ("human_readable_id", "text")
    else:
        table = context.read(request.corpus, request.version, COMMUNITY_REPORTS)[COMMUNITY_REPORTS]
        names = ("community", "summary" if options.batch.use_community_summary else "full_content")
    chosen = pc.is_in(table[names[0]], pa.array(selected.ids, table[names[0]].type))
    ids, texts = (table[name].filter(chosen).to_pylist() for name in names)
    return {number: text or "" for number, text in zip(ids, texts, strict=True)}


def cut(
    context: UnitContext, request: QueryRequest, view: CorpusView, selected: Selected, options: QueryOptions
) -> list[CutBatch]:
    """Return the batches of a selection, cutting and storing them where that has not been done."""
    services, keys = context.services, context.keys
    overview, anchors, around = _frame(context, request, view, _context_name(selected, options), options)
    decides = [
        CUT_FORMAT, request.version, selected.kind, selected.ids, options.batch.model_dump(mode="json"), around,
        [load("map", tongue, options.prompts) for tongue in ("en", "zh")],
    ]  # fmt: skip
    digest = hashlib.sha256(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)).hexdigest()[:40]
    index = keys.batch_index(request.corpus, request.version, digest)

    def find() -> tuple[Any, int]:
        found = services.store.find_json(index)
        return found, 200 * len(found) if found else 10**12  # what is not there is not remembered

    known = services.value(index, find)
    if known is not None:
        return [CutBatch(**entry) for entry in known]
    texts = contents(context, request, selected, options)
    rows = text_rows if selected.kind == "sources" else report_rows
    made = make_batches(
        rows(view, selected.ids, texts, options.batch), options.batch, static_tokens=around, overview=overview,
        anchors=anchors, kind=selected.kind, encoding=view.encoding,
    )  # fmt: skip

    def keep(batch: Batch) -> dict[str, Any]:
        digest, data = batch.stored()
        services.store.put(keys.batch(request.corpus, digest), data)
        return {"key": digest, "ids": batch.reports, "tokens": batch.tokens, "prompt_tokens": batch.prompt_tokens}

    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(keep, made))
    services.store.put_json(index, entries)
    return [CutBatch(**entry) for entry in entries]


def _frame(
    context: UnitContext, request: QueryRequest, view: CorpusView, name: str, options: QueryOptions
) -> tuple[str, list[int], int]:
    """Return the overview, its rows that are scored, and the tokens around a table: found once for equal options."""
    decides = [
        context.message.tenant, request.corpus, request.version, name, options.batch.model_dump(mode="json"),
        options.answer.map_max_length, options.answer.language, options.prompts.get("map", ""),
    ]  # fmt: skip
    key = f"{hashlib.sha256(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)).hexdigest()}#frame"

    def make() -> tuple[tuple[str, list[int], int], int]:
        overview, anchors = view.overview.render(options.batch, view.encoding)
        around = static_tokens(overview, anchors, options.answer, options.prompts, name, view.encoding)
        return (overview, anchors, around), 2 * len(overview)

    found: tuple[str, list[int], int] = context.services.value(key, make)
    return found


def _context_name(selected: Selected, options: QueryOptions) -> str:
    return "Sources" if selected.kind == "sources" else options.batch.context_name


def dump_selected(selected: Selected) -> dict[str, Any]:
    """Return a selection as JSON."""
    return {
        "ids": selected.ids, "selection": selected.selection.model_dump(), "coverage": selected.coverage.model_dump(),
        "kind": selected.kind, "warnings": selected.warnings,
    }  # fmt: skip


def load_selected(data: dict[str, Any]) -> Selected:
    """Return the selection of `dump_selected`."""
    return Selected(
        data["ids"], Selection.model_validate(data["selection"]), Coverage.model_validate(data["coverage"]),
        kind=data["kind"], warnings=data["warnings"],
    )  # fmt: skip
