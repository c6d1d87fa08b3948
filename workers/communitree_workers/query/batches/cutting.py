"""The batches of a selection, cut from its reports' texts and stored.

Batches do not depend on the question where the selection does not: they are cut once, stored by content hash, and
found again by a hash of what decides them.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import (
    COMMUNITY_REPORTS,
    TEXT_UNITS,
)
from communitree_workers.citing.grades import Evidence
from communitree_workers.prompts import load
from communitree_workers.query.batches.batch import Batch, CutBatch
from communitree_workers.query.batches.frame import Frame, frame_of
from communitree_workers.query.batches.packing import iter_batches, make_batches
from communitree_workers.query.batches.rows import ReportRows, text_rows
from communitree_workers.query.question.question import Question, RowKind
from communitree_workers.query.selection.choice import Selected
from communitree_workers.runtime.context import UnitContext
from communitree_workers.tables.columns import ABSENT, positions
from communitree_workers.tables.texts import Utf8Texts

#: Part of the hash that finds a selection's batches again: rises when they would be cut otherwise.
CUT_FORMAT = 3

#: So many groups of batches are stored side by side.
_PUTS = 8
#: The most batches of a group. The first groups have one, so that a few batches are all stored at once; handing a group
#: to a thread takes as long as hashing a batch.
_GROUP = 4


def _texts(context: UnitContext, question: Question, kind: str, ids: Sequence[int]) -> Utf8Texts:
    """Return the texts of these reports or text units.

    Raises:
        CorpusNotFound: the version is gone. KeyError: it has no such report or text unit.
    """
    numbers, texts = _numbered(context, question, kind)
    rows = positions(pa.array(ids, pa.int64()), numbers)
    if (rows == ABSENT).any():
        raise KeyError(ids[int(np.argmin(rows))])
    return Utf8Texts(texts, rows)


def _numbered(context: UnitContext, question: Question, kind: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the numbers and the texts of all reports or text units of the version."""
    if kind == "sources":
        name, number, text = TEXT_UNITS, "human_readable_id", "text"
    else:
        name, number = COMMUNITY_REPORTS, "community"
        text = "summary" if question.batch.use_community_summary else "full_content"
    table = context.read(question.request.corpus, question.request.version, name)[name]
    return table[number], table[text]


def unit_evidence(context: UnitContext, question: Question, kind: str, id: int) -> Evidence | None:
    """Return a text unit, to grade citations of it by; None: there is none of this number."""
    if kind != "sources":
        return None
    try:
        text = _texts(context, question, kind, [id])[0].decode()
    except KeyError:
        return None
    return Evidence("", (text,))


def stands(context: UnitContext, question: Question, kind: str, word: str) -> bool:
    """Say whether a word stands anywhere in the version's reports, or text units, in whichever case."""
    _, texts = _numbered(context, question, kind)
    return bool(pc.any(pc.match_substring(texts, word, ignore_case=True)).as_py())


def cut(context: UnitContext, question: Question, selected: Selected) -> list[CutBatch]:
    """Return the batches of a selection, cutting and storing them where that has not been done."""
    services, keys, options = context.services, context.keys, question.options
    corpus, version = question.request.corpus, question.request.version
    frame = _frame(context, question, selected.kind)
    decides = [
        CUT_FORMAT, version, selected.kind, selected.ids, options.batch.model_dump(mode="json"), frame.tokens,
        [load("map", tongue, options.prompts) for tongue in ("en", "zh")],
    ]  # fmt: skip
    digest = hashlib.sha256(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)).hexdigest()[:40]
    index = keys.batch_index(corpus, version, digest)

    def find() -> tuple[Any, int]:
        found = services.store.find_json(index)
        return found, 200 * len(found) if found else 10**12  # what is not there is not remembered

    known = services.value(index, find)
    if known is not None:
        return [CutBatch(**entry) for entry in known]

    made = _store(context, corpus, _made(context, question, selected, frame))
    services.store.put_json(index, [batch.__dict__ for batch in made])
    return made


def _store(context: UnitContext, corpus: str, batches: Iterator[Batch]) -> list[CutBatch]:
    """Store batches, a few at a time: all of them together may be a large share of a worker's memory."""
    services, keys = context.services, context.keys

    def put(group: list[tuple[str, bytes]]) -> None:
        for digest, data in group:
            services.store.put(keys.batch(corpus, digest), data)

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


def _made(context: UnitContext, question: Question, selected: Selected, frame: Frame) -> Iterator[Batch]:
    view, options = question.view, question.batch
    ids = sorted(selected.ids)
    texts = _texts(context, question, selected.kind, ids)
    if selected.kind == "sources":
        return iter(make_batches(text_rows(view, ids, texts, options), options, frame))
    rows = ReportRows(view, ids, texts, options)
    if rows.tokens is None:
        return iter(make_batches(rows.render(range(len(ids))), options, frame))
    return iter_batches(rows.tokens, rows.render, options, frame)


def _frame(context: UnitContext, question: Question, kind: RowKind) -> Frame:
    """Return what stands around the tables: found once for equal options."""
    request, options = question.request, question.options
    decides = [
        context.message.tenant, request.corpus, request.version, kind, options.batch.model_dump(mode="json"),
        options.answer.map_max_length, options.answer.language, options.prompts.get("map", ""),
    ]  # fmt: skip
    key = f"{hashlib.sha256(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)).hexdigest()}#frame"

    def make() -> tuple[Frame, int]:
        frame = frame_of(question.view, options, kind)
        return frame, 2 * len(frame.overview)

    found: Frame = context.services.value(key, make)
    return found
