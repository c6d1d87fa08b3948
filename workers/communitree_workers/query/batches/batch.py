"""Batches: the table of one map call, stored by content hash, and read in halves where a whole one is too much."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import orjson

from communitree_shared.errors import UsageError
from communitree_shared.tokens import DEFAULT_ENCODING
from communitree_workers.query.batches.row_split import split_row
from communitree_workers.query.batches.rows import Row
from communitree_workers.query.question.question import RowKind
from communitree_workers.query.view.cells import split_line


@dataclass(frozen=True)
class Batch:
    """One map call's table. `ids[i]` and `row_tokens[i]` belong to `lines[i]`; parts of a report share its id.

    `lines`: UTF-8, each with its line break. `anchors`: ids of the overview's rows that every batch scores.
    `prompt_tokens`: of the prompt without the question.
    """

    kind: RowKind
    context_name: str
    delimiter: str
    columns: list[str]
    overview: str
    anchors: list[int]
    ids: list[int]
    lines: list[bytes]
    row_tokens: list[int]
    prompt_tokens: int

    @property
    def reports(self) -> list[int]:
        """Return the distinct ids of the table, in its order."""
        return list(dict.fromkeys(self.ids))

    @property
    def tokens(self) -> int:
        """Return the tokens of the rows."""
        return sum(self.row_tokens)

    @property
    def table(self) -> str:
        """Return the table with its header."""
        return self.delimiter.join(self.columns) + "\n" + b"".join(self.lines).decode()

    def cells(self) -> list[dict[str, str]]:
        """Return the rows as column → text; `content` still has `¶` for line breaks."""
        return [
            dict(zip(self.columns, split_line(line.decode(), self.delimiter, len(self.columns)), strict=True))
            for line in self.lines
        ]

    def to_bytes(self) -> bytes:
        """Return the stored form: a line of JSON with all but the rows, then these; equal batches give equal bytes."""
        head = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "lines"}
        return b"".join((orjson.dumps(head), b"\n", *self.lines))

    @classmethod
    def from_bytes(cls, data: bytes) -> Batch:
        """Return the batch of `to_bytes`."""
        head, _, rows = data.partition(b"\n")
        return cls(**orjson.loads(head), lines=rows.splitlines(keepends=True))  # no row has a break but its last

    @property
    def hash(self) -> str:
        """Return the content hash, 64 hex characters."""
        return self.stored()[0]

    def stored(self) -> tuple[str, bytes]:
        """Return the content hash and the stored form it is of."""
        data = self.to_bytes()
        return hashlib.sha256(data).hexdigest(), data


def can_split(batch: Batch, encoding: str = DEFAULT_ENCODING) -> bool:
    """Say whether a batch can be read in two halves."""
    return len(batch.lines) > 1 or len(_halves(batch, encoding)) > 1


def split_batch(batch: Batch, encoding: str = DEFAULT_ENCODING) -> tuple[Batch, Batch]:
    """Return two halves, by rows; a single row is cut between findings or sentences.

    Raises:
        UsageError: the batch is one row that cannot be cut.
    """
    rows = list(zip(batch.ids, batch.lines, batch.row_tokens, strict=True))
    if len(rows) == 1:
        rows = [(row.id, row.line, row.tokens) for row in _halves(batch, encoding)]
    if len(rows) < 2:
        raise UsageError("A batch of one short row cannot be split.", hint="Allow longer map replies.")
    half, total, running = 1, sum(r[2] for r in rows), 0
    for i, row in enumerate(rows[:-1]):
        running += row[2]
        if running * 2 <= total or i == 0:
            half = i + 1
    around = batch.prompt_tokens - batch.tokens
    return _part(batch, rows[:half], around), _part(batch, rows[half:], around)


def _halves(batch: Batch, encoding: str) -> list[Row]:
    row = Row(batch.ids[0], batch.lines[0], batch.row_tokens[0], (0.0, 0.0, batch.ids[0]))
    room = max(40, row.tokens * 2 // 3)
    if row.tokens <= room:
        return [row]
    return split_row(row, room, batch.delimiter, len(batch.columns), encoding)


def _part(batch: Batch, rows: list[Any], around: int) -> Batch:
    return replace(
        batch,
        ids=[r[0] for r in rows],
        lines=[r[1] for r in rows],
        row_tokens=[r[2] for r in rows],
        prompt_tokens=around + sum(r[2] for r in rows),
    )


@dataclass(frozen=True)
class CutBatch:
    """A stored batch as a plan knows it."""

    key: str
    ids: list[int]
    tokens: int
    prompt_tokens: int
