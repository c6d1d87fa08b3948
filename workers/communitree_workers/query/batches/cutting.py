"""What the query tasks share: the view of a version, its report texts, and the batches of a selection.

Batches do not depend on the question where the selection does not: they are cut once, stored by content hash, and
found again by a hash of what decides them.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import BatchOptions, QueryOptions
from communitree_shared.contract.results import Coverage, Selection
from communitree_shared.contract.tables import (
    COMMUNITY_REPORTS,
    TEXT_UNITS,
)
from communitree_shared.languages import language_code
from communitree_shared.settings import ModelSettings, ModelStage
from communitree_workers.prompts import load
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.batches.frame import Frame, static_tokens
from communitree_workers.query.batches.packing import iter_batches, make_batches
from communitree_workers.query.batches.rows import ReportRows, text_rows
from communitree_workers.query.question.words import read_question
from communitree_workers.query.selection.choice import Selected
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.runtime.context import UnitContext
from communitree_workers.tables.columns import ABSENT, positions
from communitree_workers.tables.texts import Utf8Texts

#: Part of the hash that finds a selection's batches again: rises when they would be cut otherwise.
CUT_FORMAT = 2

#: So many groups of batches are stored side by side.
_PUTS = 8
#: The most batches of a group. The first groups have one, so that a few batches are all stored at once; handing a group
#: to a thread takes as long as hashing a batch.
_GROUP = 4


@dataclass(frozen=True)
class CutBatch:
    """A stored batch as a plan knows it."""

    key: str
    ids: list[int]
    tokens: int
    prompt_tokens: int


def asked(context: UnitContext, request: QueryRequest, options: QueryOptions) -> str:
    """Return the question that stands alone: rewritten where it came with a conversation."""
    if not options.history:
        return request.question
    found = json.loads(context.services.object(context.keys.job(context.message.job, "question.json")))
    return str(found["question"])


def answer_language(question: str, options: QueryOptions) -> str:
    """Return the language of the answer: as asked for, else the question's."""
    return language_code(options.answer.language) or _language_of(question)


@lru_cache(256)
def _language_of(question: str) -> str:
    return read_question(question).language


def prices(context: UnitContext) -> dict[str, ModelSettings]:
    """Return the model settings of the stages that a query pays for."""
    stages: tuple[ModelStage, ...] = ("map", "reduce", "rate")
    return {stage: context.services.settings.model(stage) for stage in stages}


def _texts(
    context: UnitContext, request: QueryRequest, selected: Selected, ids: Sequence[int], options: BatchOptions
) -> Utf8Texts:
    """Return the texts of these reports or text units.

    Raises:
        CorpusNotFound: the version is gone. KeyError: it has no such report or text unit.
    """
    numbers, texts = _numbered(context, request, selected, options)
    rows = positions(pa.array(ids, pa.int64()), numbers)
    if (rows == ABSENT).any():
        raise KeyError(ids[int(np.argmin(rows))])
    return Utf8Texts(texts, rows)


def _numbered(
    context: UnitContext, request: QueryRequest, selected: Selected, options: BatchOptions
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the numbers and the texts of all reports or text units of the version."""
    if selected.kind == "sources":
        name, number, text = TEXT_UNITS, "human_readable_id", "text"
    else:
        name, number = COMMUNITY_REPORTS, "community"
        text = "summary" if options.use_community_summary else "full_content"
    table = context.read(request.corpus, request.version, name)[name]
    return table[number], table[text]


def stands(context: UnitContext, request: QueryRequest, selected: Selected, options: BatchOptions, word: str) -> bool:
    """Say whether a word stands anywhere in the version's reports, or text units, in whichever case."""
    _, texts = _numbered(context, request, selected, options)
    return bool(pc.any(pc.match_substring(texts, word, ignore_case=True)).as_py())


def cut(
    context: UnitContext, request: QueryRequest, view: CorpusView, selected: Selected, options: QueryOptions
) -> list[CutBatch]:
    """Return the batches of a selection, cutting and storing them where that has not been done."""
    services, keys = context.services, context.keys
    frame = _frame(context, request, view, selected, options)
    decides = [
        CUT_FORMAT, request.version, selected.kind, selected.ids, options.batch.model_dump(mode="json"), frame.tokens,
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

    made = _store(context, request, _made(context, request, view, selected, options.batch, frame))
    services.store.put_json(index, [batch.__dict__ for batch in made])
    return made


def _store(context: UnitContext, request: QueryRequest, batches: Iterator[Batch]) -> list[CutBatch]:
    """Store batches, a few at a time: all of them together may be a large share of a worker's memory."""
    services, keys = context.services, context.keys

    def put(group: list[tuple[str, bytes]]) -> None:
        for digest, data in group:
            services.store.put(keys.batch(request.corpus, digest), data)

    out: list[CutBatch] = []
    with ThreadPoolExecutor(_PUTS) as pool:
        waiting: deque[Future[None]] = deque()
        while group := list(islice(batches, min(_GROUP, 1 + len(out) // 64))):
            stored = [batch.stored() for batch in group]
            waiting.append(pool.submit(put, stored))
            out += [
                CutBatch(digest, batch.reports, batch.tokens, batch.prompt_tokens)
                for (digest, _), batch in zip(stored, group, strict=True)
            ]
            if len(waiting) > _PUTS:
                waiting.popleft().result()
        for last in waiting:
            last.result()
    return out


def _made(
    context: UnitContext,
    request: QueryRequest,
    view: CorpusView,
    selected: Selected,
    options: BatchOptions,
    frame: Frame,
) -> Iterator[Batch]:
    ids = sorted(selected.ids)
    texts = _texts(context, request, selected, ids, options)
    if selected.kind == "sources":
        return iter(make_batches(text_rows(view, ids, texts, options), options, frame))
    rows = ReportRows(view, ids, texts, options)
    if rows.tokens is None:
        return iter(make_batches(rows.render(range(len(ids))), options, frame))
    return iter_batches(rows.tokens, rows.render, options, frame)


def _frame(
    context: UnitContext, request: QueryRequest, view: CorpusView, selected: Selected, options: QueryOptions
) -> Frame:
    """Return what stands around the tables: found once for equal options."""
    decides = [
        context.message.tenant, request.corpus, request.version, selected.kind, options.batch.model_dump(mode="json"),
        options.answer.map_max_length, options.answer.language, options.prompts.get("map", ""),
    ]  # fmt: skip
    key = f"{hashlib.sha256(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)).hexdigest()}#frame"

    def make() -> tuple[Frame, int]:
        overview, anchors = view.overview.render(options.batch, view.encoding)
        name = "Sources" if selected.kind == "sources" else options.batch.context_name
        tokens = static_tokens(overview, anchors, options.answer, options.prompts, name, view.encoding)
        return Frame(tokens, overview, anchors, selected.kind, view.encoding), 2 * len(overview)

    found: Frame = context.services.value(key, make)
    return found


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
