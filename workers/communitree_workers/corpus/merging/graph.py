"""The graph between extraction and tables: columns of numbers and Arrow strings, no object for an entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Rows of `Graph.claims`: numbers of entities (−1: none) and of the text unit, and what is said.
CLAIM_WORDS = ("type", "status", "start_date", "end_date", "description", "source_text")
CLAIMS = pa.schema(
    [("subject", pa.int64()), ("object", pa.int64()), ("unit", pa.int64()), *((n, pa.string()) for n in CLAIM_WORDS)]
)


def no_ints() -> Ints:
    """Return an empty column."""
    return np.zeros(0, dtype=np.int64)


def no_strings() -> pa.Array:
    """Return an empty column of strings. All text columns are large: 2 GB of descriptions are no limit."""
    return pa.array([], pa.large_string())


@dataclass
class Graph:
    """Entities by number, in the order of (title, id); edges by number, ends a < b, in the order of (a, b).

    That is the order of the tables. Text columns are Arrow's (`aliases`: lists). `mention_*`: each (entity, text unit)
    once; `edge_unit_*`: each (edge, text unit) once. Text units are rows of the table `text_units`. `edge_weight` is in
    units of 1/WEIGHT_SCALE. `claims` has the columns of `CLAIMS`.
    """

    ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    titles: pa.Array = field(default_factory=no_strings)
    types: pa.Array = field(default_factory=no_strings)
    descriptions: pa.Array = field(default_factory=no_strings)
    aliases: pa.Array = field(default_factory=lambda: pa.array([], pa.list_(pa.string())))
    mention_entity: Ints = field(default_factory=no_ints)
    mention_unit: Ints = field(default_factory=no_ints)
    edge_a: Ints = field(default_factory=no_ints)
    edge_b: Ints = field(default_factory=no_ints)
    edge_weight: Ints = field(default_factory=no_ints)
    edge_descriptions: pa.Array = field(default_factory=no_strings)
    edge_unit_edge: Ints = field(default_factory=no_ints)
    edge_unit_unit: Ints = field(default_factory=no_ints)
    claims: pa.Table = field(default_factory=CLAIMS.empty_table)
    #: What extraction has to say: failed units, damaged rows, candidates dropped.
    notes: dict[str, Any] = field(default_factory=dict)


def unique_pairs(first: Ints, second: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct pairs, sorted; `size` is above every value of `second`."""
    joined = distinct(first * np.int64(max(size, 1)) + second)
    return joined // max(size, 1), joined % max(size, 1)


def distinct(values: Ints) -> Ints:
    """Return the distinct values, sorted (in place of numpy's `unique`, which hashes and takes twice the memory)."""
    values = np.sort(values)
    if len(values):
        first = np.concatenate(([True], values[1:] != values[:-1]))
        values = values[first]
    return values


def hex_column(ids: Iterable[str]) -> pa.Array:
    """Return ids of 32 characters as a column, without a list of them."""
    data = bytearray()
    for identity in ids:
        data += identity.encode()
    count = len(data) // 32
    offsets = pa.py_buffer(np.arange(0, 32 * count + 1, 32, dtype=np.int32))
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(data))


def slices(column: pa.Array, rows: int = 100_000) -> Iterator[pa.Array]:
    """Yield a column in pieces: only so many of its values need to be Python objects at a time."""
    return (column.slice(start, rows) for start in range(0, len(column), rows))
