"""Batches: rows packed into map calls, whole prompts counted, nothing lost and nothing cut inside a sentence.

Independent of the question unless the selection is not; stored by content hash.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import itemgetter
from typing import Any, Literal, TypeVar

import orjson

from communitree_shared.errors import UsageError
from communitree_shared.options import BatchOptions
from communitree_shared.tokens import DEFAULT_ENCODING, count, truncate
from communitree_workers.query.rows import BREAK, Row, cell, columns, header, split_line
from communitree_workers.text.sentences import sentence_spans

T = TypeVar("T")

#: A prompt that leaves the table less room than this is a mistake in the settings.
_LEAST_ROOM = 100
#: Tokens of a seam between two pieces, with what it may cost the words beside it.
_SEAM = 4


@dataclass(frozen=True)
class Batch:
    """One map call's table. `ids[i]` and `row_tokens[i]` belong to `lines[i]`; parts of a report share its id.

    `anchors`: ids of the overview's rows that every batch scores. `prompt_tokens`: of the prompt without the question.
    """

    kind: Literal["reports", "sources"]
    context_name: str
    delimiter: str
    columns: list[str]
    overview: str
    anchors: list[int]
    ids: list[int]
    lines: list[str]
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
        return self.delimiter.join(self.columns) + "\n" + "".join(self.lines)

    def cells(self) -> list[dict[str, str]]:
        """Return the rows as column → text; `content` still has `¶` for line breaks."""
        return [
            dict(zip(self.columns, split_line(line, self.delimiter, len(self.columns)), strict=True))
            for line in self.lines
        ]

    def to_json(self) -> bytes:
        """Return the stored form; equal batches give equal bytes."""
        return orjson.dumps({name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def from_json(cls, data: bytes) -> Batch:
        """Return the batch of `to_json`."""
        return cls(**orjson.loads(data))

    @property
    def hash(self) -> str:
        """Return the content hash, 64 hex characters."""
        return self.stored()[0]

    def stored(self) -> tuple[str, bytes]:
        """Return the content hash and the stored form it is of."""
        data = self.to_json()
        return hashlib.sha256(data).hexdigest(), data


def make_batches(
    rows: Sequence[Row],
    options: BatchOptions,
    *,
    static_tokens: int,
    overview: str = "",
    anchors: Sequence[int] = (),
    kind: Literal["reports", "sources"] = "reports",
    encoding: str = DEFAULT_ENCODING,
) -> list[Batch]:
    """Cut rows into batches.

    Shuffled by `random_state` (from the order of ids, never of `rows`), cut at the budget into as few batches as that
    order allows, all about equally full; inside a batch by weight, then rank. A row larger than the budget becomes
    several with the same id, cut between findings, paragraphs or sentences.

    Args:
        rows: rendered rows with their tokens (`rows.py`).
        options: packing options.
        static_tokens: tokens of the prompt around the table, overview included, question not.
        overview: the rendered overview; `anchors`: the ids of it that are scored.
        kind: what the rows are; `encoding`: of the token counts.

    Raises:
        UsageError: there is no room for the table.
    """
    pack = _Packing(options, static_tokens, overview, anchors, kind, encoding)
    whole: list[Row] = []
    for row in sorted(rows, key=itemgetter(0)):  # by id
        whole.extend([row] if row.tokens <= pack.room else pack.split(row))
    return list(pack.batches(whole, [row.tokens for row in whole], lambda part: part))


def iter_batches(
    costs: Sequence[tuple[int, int]],
    render: Callable[[Sequence[int]], list[Row]],
    options: BatchOptions,
    *,
    static_tokens: int,
    overview: str = "",
    anchors: Sequence[int] = (),
    kind: Literal["reports", "sources"] = "reports",
    encoding: str = DEFAULT_ENCODING,
) -> Iterator[Batch]:
    """Cut rows into the batches of `make_batches`, holding the text of one at a time.

    `costs`: id and tokens of each row, each id once. `render`: gives the rows of some ids. The rest as there.
    """
    pack = _Packing(options, static_tokens, overview, anchors, kind, encoding)
    whole: list[int | Row] = []
    tokens: list[int] = []
    for id, cost in sorted(costs):
        parts = [id] if cost <= pack.room else pack.split(*render([id]))
        whole += parts
        tokens += [part.tokens if isinstance(part, Row) else cost for part in parts]

    def rows(part: list[int | Row]) -> list[Row]:
        ids = [item for item in part if not isinstance(item, Row)]
        return render(ids) + [item for item in part if isinstance(item, Row)]

    return pack.batches(whole, tokens, rows)


class _Packing:
    """How rows, or what stands for them, become batches."""

    def __init__(
        self, options: BatchOptions, static_tokens: int, overview: str, anchors: Sequence[int],
        kind: Literal["reports", "sources"], encoding: str,
    ) -> None:  # fmt: skip
        self.options, self.kind, self.encoding, self.anchors = options, kind, encoding, list(anchors)
        self.overview = overview
        self.room = table_room(options, static_tokens, encoding, kind)
        self.names = ["id", "title", "content"] if kind == "sources" else columns(options)
        self.around = static_tokens + count(options.column_delimiter.join(self.names) + "\n", encoding)

    def split(self, row: Row) -> list[Row]:
        return split_row(row, self.room, self.options.column_delimiter, len(self.names), self.encoding)

    def batches(self, whole: list[T], tokens: list[int], rows: Callable[[list[T]], list[Row]]) -> Iterator[Batch]:
        """Yield batches of items of so many tokens; `rows` gives the rows of some items."""
        options, places = self.options, list(range(len(whole)))
        if options.shuffle_data:
            random.Random(options.random_state).shuffle(places)
        name = options.context_name if self.kind == "reports" else "Sources"
        for start, end in spans([tokens[i] for i in places], self.room):
            part = sorted(rows([whole[i] for i in places[start:end]]), key=itemgetter(3))  # by order
            ids, lines, costs, _ = map(list, zip(*part, strict=True))
            yield Batch(
                self.kind, name, options.column_delimiter, self.names, self.overview, self.anchors, ids, lines, costs,
                self.around + sum(costs),
            )  # fmt: skip


def table_room(options: BatchOptions, static_tokens: int, encoding: str, kind: str = "reports") -> int:
    """Return the tokens that rows may take in one batch.

    Raises:
        UsageError: there is no room.
    """
    head = count(header(options), encoding)
    room = options.max_context_tokens - options.reserve_tokens - static_tokens - head
    if room < _LEAST_ROOM:
        needed = static_tokens + head + options.reserve_tokens + _LEAST_ROOM
        raise UsageError(
            f"max_context_tokens={options.max_context_tokens} leaves no room for {kind}: the prompt around the table "
            f"takes {static_tokens + head} tokens and {options.reserve_tokens} are kept for the question.",
            hint=f"Give at least {needed}, or lower reserve_tokens or overview_tokens.",
        )
    return room


def spans(tokens: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Cut a sequence into as few runs of at most `room` as its order allows, the largest run as small as possible."""
    if not tokens:
        return []
    ends = [0, *accumulate(tokens)]
    fewest = _runs(ends, room)
    low, high, best = max(max(tokens), -(-ends[-1] // len(fewest))), room, fewest
    while low < high:
        middle = (low + high) // 2
        found = _runs(ends, middle, len(fewest))
        if len(found) <= len(fewest):
            high, best = middle, found
        else:
            low = middle + 1
    return best


def _runs(ends: list[int], room: int, most: int | None = None) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    start, last = 0, len(ends) - 1
    span = 8  # how many items the next run may have: narrows the search
    while start < last:
        limit = ends[start] + room
        while start + span < last and ends[start + span] <= limit:
            span *= 2
        end = max(bisect_right(ends, limit, start + 1, min(last, start + span) + 1) - 1, start + 1)
        out.append((start, end))
        span = end - start + 2
        start = end
        if most is not None and len(out) > most:
            break
    return out


def split_row(row: Row, room: int, delimiter: str, n_columns: int, encoding: str) -> list[Row]:
    """Cut a row into several that fit, each with all cells but the last; findings stay whole where they fit."""
    *head, content = split_line(row.line, delimiter, n_columns)
    front = delimiter.join([head[0], *(cell(text, delimiter) for text in head[1:])]) + delimiter
    left = room - count(front + "\n", encoding) - 8  # quotes and seams
    if left < 16:
        front = delimiter.join([head[0], *("" for _ in head[1:])]) + delimiter
        left = room - count(front + "\n", encoding) - 8
    out: list[Row] = []
    for piece in _pieces(content, left, encoding):
        line = front + cell(piece, delimiter) + "\n"
        out.append(row._replace(line=line, tokens=count(line, encoding)))
    return out


def _pieces(content: str, room: int, encoding: str) -> list[str]:
    """Cut a flattened report before `##`, else between paragraphs, else between sentences, else anywhere."""
    paragraphs = [p for p in (part.strip() for part in content.split(BREAK)) if p]
    sections: list[list[str]] = []
    for paragraph in paragraphs:
        if paragraph.startswith("## ") or not sections:
            sections.append([])
        sections[-1].append(paragraph)
    seam = f" {BREAK} "
    units: list[str] = []
    for section in sections:
        text = seam.join(section)
        units += [text] if _cost(text, encoding) <= room else [u for p in section for u in _small(p, room, encoding)]
    return _fill(units, room, seam, encoding)


def _small(paragraph: str, room: int, encoding: str) -> list[str]:
    if _cost(paragraph, encoding) <= room:
        return [paragraph]
    sentences = [paragraph[a:b] for a, b in sentence_spans(paragraph)] or [paragraph]
    out: list[str] = []
    for sentence in _fill(sentences, room, " ", encoding):
        rest = sentence
        while _cost(rest, encoding) > room:
            limit, part = room, ""
            while not part or _cost(part, encoding) > room:
                part = truncate(rest, limit, encoding) or rest[:1]
                if limit <= 1:
                    break
                limit -= max(1, limit // 16)
            out.append(part)
            rest = rest[len(part) :].lstrip()
        if rest:
            out.append(rest)
    return out


def _fill(units: list[str], room: int, seam: str, encoding: str) -> list[str]:
    """Join neighbours while they fit; a unit's first word may take a token more behind a seam than at the start."""
    out: list[str] = []
    used = 0
    for unit in units:
        cost = _cost(unit, encoding)
        if out and used + cost + _SEAM <= room:
            out[-1] += seam + unit
            used += cost + _SEAM
        else:
            out.append(unit)
            used = cost
    return out


def _cost(text: str, encoding: str) -> int:
    return count(text.replace('"', '""'), encoding)


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
