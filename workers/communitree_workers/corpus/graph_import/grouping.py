"""Rows made one: what several rows of a group say together, whole columns at a time."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_workers.tables.columns import Ints, flatten, one_chunk, positions, to_lists, unique_pairs


def content_ids(*parts: pa.Array) -> pa.Array:
    """Return an id for each row: a hash of its parts."""
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "\x00")
    return pa.array([hashlib.sha256(text.encode()).hexdigest()[:32] for text in joined.to_pylist()], pa.string())


def reordered(columns: dict[str, pa.Array], rows: Ints) -> dict[str, pa.Array]:
    """Return these rows of all columns, without a copy where they are all rows in order."""
    count = len(next(iter(columns.values())))
    if len(rows) == count and (rows == np.arange(count)).all():
        return columns
    indices = pa.array(rows)
    return {name: column.take(indices) for name, column in columns.items()}


def numbered(given: pa.Array) -> bool:
    """Say whether each row has a number of its own."""
    if given.null_count or not len(given):
        return not len(given)
    ranked = np.sort(given.to_numpy())
    return bool(ranked[0] >= 0 and (np.diff(ranked) > 0).all())


def canonical_order(*keys: pa.Array) -> Ints:
    """Return the rows sorted by these keys, so that the order of rows in a file changes nothing."""
    table = pa.table(list(keys), names=[str(i) for i in range(len(keys))])
    indices = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    out: Ints = indices.to_numpy().astype(np.int64)
    return out


def groups_of(*keys: pa.Array) -> tuple[Ints, Ints]:
    """Return each row's group number (numbered by first row) and the first row of each group."""
    code = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        part = one_chunk(key.dictionary_encode()).indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, code = np.unique(code * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    return renumber(code)


def renumber(code: Ints) -> tuple[Ints, Ints]:
    """Return codes numbered by their first row, and the first row of each."""
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order].astype(np.int64)


def united(lists: pa.Array, group: Ints, count: int) -> pa.Array:
    """Return the distinct members of all lists of each group."""
    rows, values = flatten(lists)
    known = pc.unique(values).sort() if len(values) else values
    left, right = unique_pairs(group[rows], positions(values, known))
    return to_lists(left, known.take(pa.array(right)), count)


def joined(texts: pa.Array, group: Ints, count: int) -> pa.Array:
    """Return the distinct non-empty texts of each group, one a line, in row order."""
    said = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(said)
    texts, group = texts.take(pa.array(rows)), group[rows]
    code = one_chunk(texts.dictionary_encode()).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_index=True)
    first = np.sort(first)
    first = first[np.argsort(group[first], kind="stable")]
    return pc.binary_join(to_lists(group[first], texts.take(pa.array(first)), count), "\n")


def numbering(given: pa.Array, order: Ints) -> Ints:
    """Return a distinct number for each row.

    Numbers that are there stay (the first row in `order` that has one keeps it); the others follow the highest.
    """
    values = pc.fill_null(given, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    ranked = values[order]
    _, first = np.unique(ranked, return_index=True)
    keeps = np.zeros(len(ranked), bool)
    keeps[first] = True
    keeps &= ranked >= 0
    start = int(ranked[keeps].max(initial=-1)) + 1
    ranked = ranked.copy()
    ranked[~keeps] = start + np.arange(int((~keeps).sum()))
    out = np.empty(len(values), np.int64)
    out[order] = ranked
    return out
