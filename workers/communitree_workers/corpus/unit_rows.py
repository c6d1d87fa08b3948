"""A few rows of a large stored table, without the others: its footer and the groups of rows that hold them."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Gives bytes of an object by offset and length.
Part = Callable[[int, int], bytes]
#: Keeps what `make` gives as (value, bytes) under a name.
Keep = Callable[[str, Callable[[], tuple[Any, int]]], Any]
#: A group of rows is wanted by its neighbours soon or never: it leaves the cache before what is wanted for long.
_WEIGHT = 4


class _Stored(io.RawIOBase):
    """A stored object as a file."""

    def __init__(self, part: Part, size: int) -> None:
        self._part, self._size, self._at = part, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        data = self._part(self._at, length)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def rows_of(part: Part, size: int, start: int, rows: int, columns: list[str], keep: Keep) -> pa.Table:
    """Return rows of a stored Parquet table.

    Args:
        part: reads the object.
        size: its bytes.
        start: first row.
        rows: how many, all of them in the table.
        columns: which columns.
        keep: a cache for the footer and for the groups of rows, which neighbours share.
    """

    def opened(metadata: pq.FileMetaData | None) -> pq.ParquetFile:
        return pq.ParquetFile(_Stored(part, size), metadata=metadata)

    def footer() -> tuple[pq.FileMetaData, int]:
        found = opened(None).metadata
        return found, int(found.serialized_size)

    metadata = keep("footer", footer)

    def group(number: int) -> tuple[pa.Table, int]:
        table = opened(metadata).read_row_group(number, columns=columns)
        return table, _WEIGHT * table.nbytes

    counts = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    ends = np.cumsum(counts)
    first = int(np.searchsorted(ends, start, side="right"))
    last = int(np.searchsorted(ends, start + rows, side="left"))
    groups = [keep(f"{n} {' '.join(columns)}", partial(group, n)) for n in range(first, last + 1)]
    return pa.concat_tables(groups).slice(start - (int(ends[first]) - counts[first]), rows)
