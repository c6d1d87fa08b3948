"""What the query tasks share: the view of a version, its report texts, and the batches of a selection.

Batches do not depend on the question where the selection does not: they are cut once, stored by content hash, and
found again by a hash of what decides them.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from communitree_shared.messages import QueryRequest
from communitree_shared.options import BatchOptions, QueryOptions
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
from communitree_workers.query.batch import Batch, iter_batches, make_batches
from communitree_workers.query.corpus_view import FORMAT, CorpusView
from communitree_workers.query.map import static_tokens
from communitree_workers.query.question import read_question
from communitree_workers.query.rows import ReportRows, text_rows
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

#: So many batches are stored at once.
_PUTS = 8


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
    return options.answer.language or _language_of(question)


@lru_cache(256)
def _language_of(question: str) -> str:
    return read_question(question).language


def prices(context: UnitContext) -> dict[str, ModelSettings]:
    """Return the model settings of the stages that a query pays for."""
    stages: tuple[ModelStage, ...] = ("map", "reduce", "rate")
    return {stage: context.services.settings.model(stage) for stage in stages}


class Contents(Mapping[int, str]):
    """The texts of selected reports or text units, each read from its table when it is asked for."""

    def __init__(self, context: UnitContext, request: QueryRequest, selected: Selected, options: QueryOptions) -> None:
        """Raises CorpusNotFound: the version is gone."""
        if selected.kind == "sources":
            table = context.read(request.corpus, request.version, TEXT_UNITS)[TEXT_UNITS]
            names = ("human_readable_id", "text")
        else:
            table = context.read(request.corpus, request.version, COMMUNITY_REPORTS)[COMMUNITY_REPORTS]
            names = ("community", "summary" if options.batch.use_community_summary else "full_content")
        self._texts = table[names[1]]
        self._row = {number: row for row, number in enumerate(table[names[0]].to_pylist())}

    def __getitem__(self, number: int) -> str:
        """Return a text; KeyError where there is none."""
        return self._texts[self._row[number]].as_py() or ""

    def __iter__(self) -> Iterator[int]:
        """Return the numbers of all texts."""
        return iter(self._row)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._row)


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
    texts = Contents(context, request, selected, options)
    around_it: dict[str, Any] = {
        "static_tokens": around, "overview": overview, "anchors": anchors, "kind": selected.kind,
        "encoding": view.encoding,
    }  # fmt: skip
    made = _made(view, selected, texts, options.batch, around_it)

    def keep(batch: Batch) -> dict[str, Any]:
        digest, data = batch.stored()
        services.store.put(keys.batch(request.corpus, digest), data)
        return {"key": digest, "ids": batch.reports, "tokens": batch.tokens, "prompt_tokens": batch.prompt_tokens}

    entries: list[dict[str, Any]] = []
    with ThreadPoolExecutor(_PUTS) as pool:
        waiting: deque[Future[dict[str, Any]]] = deque()
        for batch in made:  # a few at a time: all of them together may be a large share of a worker's memory
            waiting.append(pool.submit(keep, batch))
            if len(waiting) > 2 * _PUTS:
                entries.append(waiting.popleft().result())
        entries += [done.result() for done in waiting]
    services.store.put_json(index, entries)
    return [CutBatch(**entry) for entry in entries]


def _made(
    view: CorpusView, selected: Selected, texts: Contents, options: BatchOptions, around: dict[str, Any]
) -> Iterable[Batch]:
    if selected.kind == "reports":
        rows = ReportRows(view, options)
        costs = rows.tokens(selected.ids)
        if costs is not None:
            return iter_batches(costs, lambda ids: rows.render(ids, texts), options, **around)
        return make_batches(rows.render(selected.ids, texts), options, **around)
    return make_batches(text_rows(view, selected.ids, texts, options), options, **around)


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
