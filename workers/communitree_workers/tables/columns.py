"""Ids to row numbers and back, list columns to pairs and back: whole columns at a time, no row in Python."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

#: Row number of a value that is not there.
ABSENT = -1


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the column as one array."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:  # combine_chunks would copy it
            return column.chunk(0)
        combined = column.combine_chunks()
        return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
    return column


def positions(values: pa.Array | pa.ChunkedArray, ids: pa.Array | pa.ChunkedArray) -> Ints:
    """Return for each value the row of its first occurrence in `ids`; `ABSENT` where there is none or it is null."""
    values, ids = one_chunk(values), one_chunk(ids)
    if len(ids) == 0 or len(values) == 0:
        return np.full(len(values), ABSENT, np.int64)
    if pa.types.is_null(values.type):
        return np.full(len(values), ABSENT, np.int64)
    found = pc.index_in(values, value_set=ids, skip_nulls=True)
    out: Ints = pc.fill_null(found, ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    return out


def lengths(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Return the number of values in each list; a null list has none."""
    out: Ints = pc.fill_null(pc.list_value_length(one_chunk(column)), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return out


def flatten(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Return the rows and the values of a list column: value i stands in the list of row `rows[i]`."""
    column = one_chunk(column)
    rows = np.repeat(np.arange(len(column), dtype=np.int64), lengths(column))
    return rows, one_chunk(pc.list_flatten(column))


def unique_pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs, sorted by left, then right. Both sides hold row numbers (≥ 0)."""
    if len(left) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    width = int(right.max()) + 1
    packed = distinct(left * width + right)
    return packed // width, packed % width


def distinct(values: Ints) -> Ints:
    """Return the distinct values, sorted. Sorting beats numpy's hashing `unique` on tens of millions of integers."""
    values = np.sort(values)
    first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def contained(values: Ints, known: Ints) -> npt.NDArray[np.bool_]:
    """Say of each value whether it is among `known`, which must be sorted."""
    if len(known) == 0:
        return np.zeros(len(values), bool)
    return np.asarray(known[np.searchsorted(known, values).clip(max=len(known) - 1)] == values)


def blocks(counts: Ints, most: int = 2_000_000) -> Iterator[slice]:
    """Yield runs of rows, all of them, whose counts add up to no more than `most`, or one row whose count is above."""
    ends = np.cumsum(counts)
    start, before = 0, 0
    while start < len(counts):
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(start, stop)
        start, before = stop, int(ends[stop - 1])


def to_lists(rows: Ints, values: pa.Array, count: int) -> pa.ListArray:
    """Return `count` lists: `values[i]` goes to list `rows[i]`; `rows` must be sorted."""
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def replace(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return the table with this column's values replaced, its place and type kept."""
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, values.cast(field.type))
