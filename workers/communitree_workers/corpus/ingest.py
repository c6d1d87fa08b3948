"""Documents → the tables `documents` and `text_units`, and what there is to say about the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from communitree_shared.options import ReadOptions
from communitree_shared.tables import DOCUMENTS, TEXT_UNITS
from communitree_shared.tokens import count
from communitree_workers.corpus.chunk import iter_text_units
from communitree_workers.corpus.documents import Document, Held, Problem, as_text
from communitree_workers.tables.io import Tables, conform, empty

#: Rows of one Arrow batch: Python strings of no more than these live beside the table.
_BATCH = 500
_COUNT_BLOCK = 1_000_000


@dataclass
class IngestReport:
    """Counts and names of what came in and what did not."""

    documents: int = 0
    text_units: int = 0
    characters: int = 0
    n_tokens: int = 0
    encodings: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def as_json(self, at_most: int = 1000) -> dict[str, Any]:
        """Return it as JSON: problems counted by reason, the first `at_most` of them in full."""
        return {
            "documents": self.documents,
            "text_units": self.text_units,
            "characters": self.characters,
            "n_tokens": self.n_tokens,
            "encodings": dict(sorted(self.encodings.items())),
            "problem_counts": dict(sorted(Counter(p.reason for p in self.problems).items())),
            "problems": [p.as_json() for p in self.problems[:at_most]],
        }


def ingest(items: Iterable[Document | Problem], options: ReadOptions) -> tuple[Tables, IngestReport]:
    """Return the tables and the report of what `read_documents` gives.

    Documents are numbered by (title, id) and text units by document and place, whatever the order of the input; of
    equal documents the one with the first title is kept.

    Raises:
        BadInput: `options.strict` and a document is there twice.
    """
    report = IngestReport()
    documents: list[Document] = []
    for item in items:
        if isinstance(item, Problem):
            report.problems.append(item)
        else:
            documents.append(item)
    documents.sort(key=lambda d: (d.title, d.id, d.source))
    held, kept = Held(), []
    for document in documents:
        outcome = held.add(document)
        if isinstance(outcome, Problem):
            if options.strict:
                raise outcome.error()
            report.problems.append(outcome)
        else:
            kept.append(outcome)
    report.problems.sort(key=lambda p: (p.source, p.row or 0, p.offset or 0, p.reason, p.message))
    units, unit_ids = _units(kept, options)
    rows = [_row(n, document, unit_ids[n], options) for n, document in enumerate(kept)]
    report.documents, report.text_units = len(rows), units.num_rows
    report.characters = sum(len(d.text) for d in kept)
    report.n_tokens = sum(row["n_tokens"] for row in rows)
    report.encodings = Counter(d.encoding for d in kept)
    table = empty(DOCUMENTS)
    if rows:
        texts = [d.text if isinstance(d.text, str) else d.text.raw for d in kept]
        table = conform(DOCUMENTS, pa.Table.from_pylist(rows).append_column("text", pa.array(texts, pa.string())))
    return {DOCUMENTS: table, TEXT_UNITS: units}, report


def _units(documents: list[Document], options: ReadOptions) -> tuple[pa.Table, list[list[str]]]:
    ids: list[list[str]] = []

    def rows() -> Iterator[dict[str, Any]]:
        number = 0
        for document in documents:
            ids.append([])
            for row in iter_text_units(document, options):
                ids[-1].append(row["id"])
                yield {**row, "human_readable_id": number}
                number += 1

    stream = rows()
    batches = []
    while batch := list(islice(stream, _BATCH)):
        batches.append(conform(TEXT_UNITS, pa.Table.from_pylist(batch)))
    # In pieces as they are: put together they would be held twice.
    return (pa.concat_tables(batches) if batches else empty(TEXT_UNITS)), ids


def _row(number: int, document: Document, unit_ids: list[str], options: ReadOptions) -> dict[str, Any]:
    return {
        "id": document.id,
        "human_readable_id": number,
        "title": document.title,
        "text_unit_ids": unit_ids,
        "raw_data": as_text(dict(document.metadata)) if document.metadata else "",
        "n_tokens": sum(
            count(document.text[at : at + _COUNT_BLOCK], options.encoding_model)
            for at in range(0, len(document.text), _COUNT_BLOCK)
        ),
    }
