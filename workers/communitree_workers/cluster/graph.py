"""The graph that is clustered: members in canonical order, undirected edges with summed fixed-point weights."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from communitree_workers.tables.columns import Ints

Digests = npt.NDArray[np.uint64]

_SLICE = 200_000


@dataclass(frozen=True)
class Graph:
    """Members 0 … n-1 in canonical order, and the edges between them.

    Attributes:
        digests: one 64-bit hash of each member's id; they seed the generator of a split, so that a split depends
            on who the members are and not on where they stand in a larger graph.
        low, high: ends of each edge, low < high, sorted by (low, high), each pair once.
        weight: fixed point, > 0, in units of 1 / WEIGHT_SCALE.
    """

    digests: Digests
    low: Ints
    high: Ints
    weight: Ints

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self.digests)

    @property
    def members(self) -> Ints:
        """Return all members."""
        return np.arange(len(self), dtype=np.int64)

    @cached_property
    def _first(self) -> Ints:
        return offsets(self.low, len(self))

    def part(self, members: Ints) -> Graph:
        """Return the graph of these members (ascending) and the edges between them, renumbered from 0."""
        if len(members) == len(self):
            return self
        first, last = self._first[members], self._first[members + 1]
        place = np.full(len(self), -1, np.int64)
        place[members] = np.arange(len(members))
        edges = ranges(first, last)
        high = place[self.high[edges]]
        inside = np.flatnonzero(high >= 0)
        low = np.repeat(np.arange(len(members), dtype=np.int64), last - first)[inside]
        return Graph(self.digests[members], low, high[inside], self.weight[edges[inside]])

    def to_bytes(self) -> bytes:
        """Return the graph as an `npz` file without pickled objects."""
        return packed(digests=self.digests, low=self.low, high=self.high, weight=self.weight)

    @classmethod
    def from_bytes(cls, data: bytes) -> Graph:
        """Return the graph of `to_bytes`."""
        arrays = unpacked(data)
        ends = (np.asarray(arrays[name], np.int64) for name in ("low", "high", "weight"))
        return cls(np.asarray(arrays["digests"], np.uint64), *ends)


def packed(**arrays: npt.NDArray[np.generic]) -> bytes:
    """Return named arrays as a compressed `npz` file."""
    sink = io.BytesIO()
    np.savez_compressed(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def unpacked(data: bytes) -> dict[str, npt.NDArray[np.generic]]:
    """Return the named arrays of `packed`; pickled objects are refused."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def digests(ids: pa.Array) -> Digests:
    """Return a 64-bit hash of each id: the same in every process and for every hash seed."""
    out = np.empty(len(ids), np.uint64)
    for at in range(0, len(ids), _SLICE):  # the hash wants Python strings: only so many at a time
        values = np.asarray(ids.slice(at, _SLICE).to_numpy(zero_copy_only=False), dtype=object)
        out[at : at + _SLICE] = pd.util.hash_array(values, categorize=False)
    return out


def offsets(rows: Ints, count: int) -> Ints:
    """Return where each row number's entries begin in a sorted column of row numbers, and the end."""
    out = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=out[1:])
    return out


def grouping(labels: Ints, count: int) -> Ints:
    """Return the stable order that groups labels 0 … count-1. Short integers sort digit by digit, many times faster."""
    return np.argsort(labels.astype(np.uint16) if count <= 1 << 16 else labels, kind="stable").astype(np.int64)


def ranges(start: Ints, stop: Ints) -> Ints:
    """Return start[0] … stop[0]-1, start[1] … stop[1]-1, and so on, as one array."""
    sizes = stop - start
    total = int(sizes.sum())
    if total == 0:
        return np.empty(0, np.int64)
    shift = np.repeat(start - (np.cumsum(sizes) - sizes), sizes)
    return shift + np.arange(total, dtype=np.int64)


def distinct(keys: Ints) -> Ints:
    """Return the distinct values, sorted. `numpy.unique` hashes, which takes a hundred times as long here."""
    keys = np.sort(keys)
    return keys[np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))] if len(keys) else keys


def distinct_pairs(left: Ints, right: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the distinct pairs of row numbers, sorted by left, then right; `right` is below `width`."""
    keys = distinct(left * width + right)
    left = keys // max(width, 1)
    return left, keys - left * width


def summed(one: Ints, other: Ints, weight: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Return (low, high, weight) with parallel and reversed edges added up and self-loops left out.

    The sums are of integers: no order of rows can change them.
    """
    low, high = np.minimum(one, other), np.maximum(one, other)
    real = low != high
    keys = low[real] * count + high[real]
    order = np.argsort(keys, kind="stable")
    keys, weight = keys[order], weight[real][order]
    if len(keys) == 0:
        return keys, keys.copy(), weight
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    keys = keys[first]
    return keys // count, keys % count, np.add.reduceat(weight, first)


def components(count: int, low: Ints, high: Ints) -> Ints:
    """Return for each member the smallest member of its connected component."""
    label = np.arange(count, dtype=np.int64)
    while True:
        low, high = label[low], label[high]
        apart = low != high
        if not apart.any():
            return label
        low, high = np.minimum(low[apart], high[apart]), np.maximum(low[apart], high[apart])
        # every end is the label of its group: hook the larger on the smaller, then flatten
        np.minimum.at(label, high, low)
        while True:
            flat = label[label]
            if np.array_equal(flat, label):
                break
            label = flat
