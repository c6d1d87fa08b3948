"""The texts of a string column, one at a time, as the bytes that they are in the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from communitree_workers.tables.columns import Ints


class Utf8Texts:
    """The texts of some rows of a column by their place among these: made when asked for, b"" for null."""

    def __init__(self, column: pa.Array | pa.ChunkedArray, rows: Ints) -> None:
        """Find them, without a copy. `rows`: row numbers (≥ 0).

        Raises:
            IndexError: the column has no such row.
        """
        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
        column = column.cast(pa.large_binary())
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        bounds = [np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset :][: len(chunk) + 1] for chunk in chunks]
        none = np.empty(0, np.int64)
        starts = np.concatenate([none, *(bound[:-1] for bound in bounds)])[rows]
        ends = np.concatenate([none, *(bound[1:] for bound in bounds)])[rows]
        if column.null_count:  # what a null's bounds hold does not matter
            ends = np.where(column.is_valid().to_numpy()[rows], ends, starts)
        self._texts = [memoryview(chunk.buffers()[2] or b"") for chunk in chunks]
        self._chunk = np.searchsorted(np.cumsum(list(map(len, chunks))), rows, side="right").data
        self._starts, self._ends = starts.data, ends.data  # an item of these costs less than one of an array

    def __getitem__(self, place: int) -> bytes:
        """Return the text at a place."""
        return bytes(self._texts[self._chunk[place]][self._starts[place] : self._ends[place]])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._starts)
