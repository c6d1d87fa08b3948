"""A few rows of a large stored table, without the others: its footer and the groups of rows that hold them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from communitree_workers.corpus.disk.scratch import Part, Ranged

#: Keeps what `make` gives as (value, bytes) under a name.
Keep = Callable[[str, Callable[[], tuple[Any, int]]], Any]
#: A group of rows is wanted by its neighbours soon or never: it leaves the cache before what is wanted for long.
_WEIGHT = 4


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
        return pq.ParquetFile(Ranged(part, size), metadata=metadata)

    def footer() -> tuple[tuple[pq.FileMetaData, NDArray[np.int64]], int]:
        found = opened(None).metadata
        counts = [found.row_group(n).num_rows for n in range(found.num_row_groups)]
        ends = np.cumsum([0, *counts])
        return (found, ends), int(found.serialized_size) + ends.nbytes

    metadata, ends = keep("footer", footer)

    def group(number: int) -> tuple[pa.Table, int]:
        table = opened(metadata).read_row_group(number, columns=columns)
        return table, _WEIGHT * table.nbytes

    first = int(np.searchsorted(ends, start, side="right")) - 1
    last = int(np.searchsorted(ends, start + rows, side="left"))
    groups = [keep(f"{n} {' '.join(columns)}", partial(group, n)) for n in range(first, last)]
    return pa.concat_tables(groups).slice(start - int(ends[first]), rows)
