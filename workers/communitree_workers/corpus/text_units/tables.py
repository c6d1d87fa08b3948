"""Documents → the tables `documents` and `text_units`, and what there is to say about the input.

Texts lie on disk and rows leave in pieces, so that neither a large file nor many small ones are ever held as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from communitree_shared.contract.options import ReadOptions
from communitree_shared.contract.tables import DOCUMENTS, TEXT_UNITS
from communitree_shared.tokens import count
from communitree_workers.corpus.disk.large_text import LargeText, Shelf
from communitree_workers.corpus.reading.documents import Document, Held, Problem, as_text
from communitree_workers.corpus.text_units.windows import iter_text_units
from communitree_workers.tables.io import Tables, conform, empty

#: Rows that are given to the sink together (each gift may be a group of its file), fewer where their texts have so many
#: characters.
_BATCH = 1_000
_CHARACTERS = 4_000_000
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


class Sink(Protocol):
    """Where rows go. Each table comes in pieces that conform, in the order of its rows, of many documents or of one."""

    def units(self, part: pa.Table) -> None:
        """Take rows of `text_units`."""

    def documents(self, part: pa.Table) -> None:
        """Take rows of `documents`."""

    def text(self, document: str, text: LargeText) -> str:
        """Take the text of a document (its id) that is large; return what is to stand for it in the table."""


class InMemory:
    """Rows as two tables; large texts stand in theirs."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = {DOCUMENTS: [empty(DOCUMENTS)], TEXT_UNITS: [empty(TEXT_UNITS)]}

    def units(self, part: pa.Table) -> None:
        """Take rows of `text_units`."""
        self._parts[TEXT_UNITS].append(part)

    def documents(self, part: pa.Table) -> None:
        """Take rows of `documents`."""
        self._parts[DOCUMENTS].append(part)

    def text(self, document: str, text: LargeText) -> str:
        """Return a large text as a string."""
        return text[:]

    def tables(self) -> Tables:
        """Return what came."""
        return {name: pa.concat_tables(parts).combine_chunks() for name, parts in self._parts.items()}


def ingest(items: Iterable[Document | Problem], options: ReadOptions) -> tuple[Tables, IngestReport]:
    """Return the tables and the report of `ingest_into`, for what fits into memory."""
    sink = InMemory()
    report = ingest_into(sink, items, options)
    return sink.tables(), report


def ingest_into(sink: Sink, items: Iterable[Document | Problem], options: ReadOptions) -> IngestReport:
    """Give the rows of what `read_documents` yields to a sink; return the report.

    Documents are numbered by (title, id) and text units by document and place, whatever the order of the input; of
    equal documents the one with the first title is kept.

    Raises:
        BadInput: `options.strict` and a document is there twice.
    """
    report = IngestReport()
    shelf = Shelf()
    documents = _in_order(items, shelf, report, options)
    units, rows = _Rows(TEXT_UNITS, sink.units), _Rows(DOCUMENTS, sink.documents)
    for n, (document, number) in enumerate(documents):
        whole = replace(document, text=shelf.take(number))
        text = whole.text
        ids: list[str] = []
        for unit in iter_text_units(whole, options):
            ids.append(unit["id"])
            units.add({**unit, "human_readable_id": report.text_units})
            report.text_units += 1
        row = _row(n, whole, ids, options)
        rows.add({**row, "text": text if isinstance(text, str) else sink.text(whole.id, text)})
        report.characters += len(text)
        report.n_tokens += row["n_tokens"]
        report.encodings[document.encoding] += 1
    units.end()
    rows.end()
    report.documents = len(documents)
    return report


class _Rows:
    """Rows of a table on their way to a sink: many small documents share a piece, a large one has several."""

    def __init__(self, name: str, give: Callable[[pa.Table], None]) -> None:
        self._name, self._give = name, give
        self._waiting: list[dict[str, Any]] = []
        self._characters = 0

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        self._characters += len(row["text"])
        if len(self._waiting) >= _BATCH or self._characters > _CHARACTERS:
            self.end()

    def end(self) -> None:
        """Give what waits."""
        if self._waiting:
            self._give(conform(self._name, pa.Table.from_pylist(self._waiting)))
            self._waiting, self._characters = [], 0


def _in_order(
    items: Iterable[Document | Problem], shelf: Shelf, report: IngestReport, options: ReadOptions
) -> list[tuple[Document, int]]:
    """Put all texts on the shelf; return the documents without theirs, in order and each once, with its number."""
    documents: list[tuple[Document, int]] = []
    for item in items:
        if isinstance(item, Problem):
            report.problems.append(item)
        else:
            documents.append((replace(item, text=""), shelf.put(item.text)))
    documents.sort(key=lambda d: (d[0].title, d[0].id, d[0].source))
    held, kept = Held(), []
    for document, number in documents:
        outcome = held.add(document)
        if isinstance(outcome, Problem):
            if options.strict:
                raise outcome.error()
            report.problems.append(outcome)
        else:
            kept.append((outcome, number))
    report.problems.sort(key=lambda p: (p.source, p.row or 0, p.offset or 0, p.reason, p.message))
    return kept


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
