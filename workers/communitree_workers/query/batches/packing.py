"""Packing rows into batches: whole prompts counted, nothing lost and nothing cut inside a sentence.

Independent of the question unless the selection is not.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter

from communitree_shared.contract.options import BatchOptions
from communitree_shared.errors import UsageError
from communitree_shared.tokens import count
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.batches.frame import Frame
from communitree_workers.query.batches.row_split import split_row
from communitree_workers.query.batches.rows import Row, columns, header
from communitree_workers.query.question.question import context_name

#: A prompt that leaves the table less room than this is a mistake in the settings.
_LEAST_ROOM = 100


def make_batches(rows: Sequence[Row], options: BatchOptions, frame: Frame) -> list[Batch]:
    """Return the batches of `iter_batches`, all at once, from rows that are there (in any order)."""
    held = sorted(rows, key=attrgetter("id"))
    tokens = [row.tokens for row in held]
    return list(iter_batches(tokens, lambda places: [held[place] for place in places], options, frame))


def iter_batches(
    tokens: Sequence[int], render: Callable[[Sequence[int]], list[Row]], options: BatchOptions, frame: Frame
) -> Iterator[Batch]:
    """Cut rows into batches, holding the text of one at a time.

    Shuffled by `random_state`, cut at the budget into as few batches as that order allows, all about equally full;
    inside a batch by weight, then rank. A row larger than the budget becomes several with the same id, cut between
    findings, paragraphs or sentences.

    Args:
        tokens: of each row, in the order of their ids.
        render: gives the rows of some places in that order.
        options: packing options.
        frame: what stands around the table.

    Raises:
        UsageError: there is no room for the table.
    """
    delimiter = options.column_delimiter
    names = ["id", "title", "content"] if frame.kind == "sources" else columns(options)
    room = table_room(options, frame.tokens, frame.encoding, frame.kind)
    items = array("q")  # places of rows, and behind all of these the places of parts; arrays, for there may be many
    sizes, parts = array("q", tokens), list[Row]()
    for place, size in enumerate(tokens):
        if size <= room:
            items.append(place)
        else:
            (row,) = render([place])
            pieces = split_row(row, room, delimiter, len(names), frame.encoding)
            items.extend(range(len(sizes), len(sizes) + len(pieces)))
            sizes.extend(piece.tokens for piece in pieces)
            parts += pieces
    if options.shuffle_data:
        random.Random(options.random_state).shuffle(items)
    around = frame.tokens + count(delimiter.join(names) + "\n", frame.encoding)
    name = context_name(frame.kind, options)

    def batch(run: Sequence[int]) -> Batch:
        rows = render([item for item in run if item < len(tokens)])
        rows += [parts[item - len(tokens)] for item in run if item >= len(tokens)]
        rows.sort(key=attrgetter("order"))
        ids, lines, costs, _ = map(list, zip(*rows, strict=True))
        return Batch(
            frame.kind, name, delimiter, names, frame.overview, list(frame.anchors), ids, lines, costs,
            around + sum(costs),
        )  # fmt: skip

    return (batch(items[start:end]) for start, end in spans([sizes[item] for item in items], room))


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
            hint=f"Give --max-context-tokens {needed} or more, or lower --reserve-tokens or --overview-tokens.",
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
