"""Arrow tables with the agreed columns, and their Parquet bytes.

The bytes are a function of the rows alone: no timestamps, no pandas metadata, one writer version.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from communitree_shared.contract.tables import COLUMNS, DOCUMENTS, TEXT_UNITS
from communitree_workers.tables.columns import blocks, lengths, one_chunk

#: A corpus's tables by name.
Tables = dict[str, pa.Table]

#: Rows of one slice of a large table, and of one group of its file: fewer where a row may hold a page or more.
_SLICE = 100_000
_SLICES = {DOCUMENTS: 250, TEXT_UNITS: 1_000}
#: Ids in the lists of one slice: what two things share may be thousands of text units.
_VALUES = 1_000_000

FINDING = pa.struct([("explanation", pa.string()), ("summary", pa.string())])

_TYPES: dict[str, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "list[str]": pa.list_(pa.string()),
    "list[int]": pa.list_(pa.int64()),
    "list[finding]": pa.list_(FINDING),
}

_DEFAULTS: dict[str, Any] = {"str": "", "int": 0, "float": 0.0, "bool": False}


def schema(name: str) -> pa.Schema:
    """Return the Arrow schema of a table: GraphRAG's columns, then ours."""
    return pa.schema([(column, _TYPES[kind]) for column, kind in COLUMNS[name].items()])


def conform(name: str, table: pa.Table) -> pa.Table:
    """Return the table with exactly the agreed columns, cast; a missing column gets its type's empty value.

    Raises:
        pyarrow.ArrowInvalid: a column cannot be cast without loss.
    """
    columns = []
    for field in schema(name):
        if field.name in table.column_names:
            columns.append(one_chunk(table[field.name]).cast(field.type))
            continue
        default = _DEFAULTS.get(COLUMNS[name][field.name], [])
        columns.append(pa.array([default] * table.num_rows, field.type))
    return pa.table(columns, schema=schema(name))


def from_rows(name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return a conforming table of these rows; keys that are no columns are ignored."""
    present = {key for row in rows for key in row}
    fields = [field for field in schema(name) if field.name in present]
    return conform(name, pa.table([[row.get(f.name) for row in rows] for f in fields], schema=pa.schema(fields)))


def empty(name: str) -> pa.Table:
    """Return a table without rows."""
    return schema(name).empty_table()


def to_bytes(table: pa.Table) -> bytes:
    """Return the table as Parquet."""
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(None), sink, compression="zstd", store_schema=False)
    return sink.getvalue()


@contextlib.contextmanager
def to_file(name: str, table: pa.Table) -> Iterator[tuple[BinaryIO, int]]:
    """Write a table as Parquet into a file that is gone afterwards; yield it, and its bytes.

    It is made to conform a slice at a time: dictionary columns become plain strings that are never held all at once.
    """
    with TableFile(name) as file:
        most = _SLICES.get(name, _SLICE)
        cost = np.full(table.num_rows, max(1, _VALUES // most), dtype=np.int64)
        for column in table.columns:
            if pa.types.is_list(column.type):
                cost += lengths(column)
        for part in blocks(cost, _VALUES):
            rows = part.stop - part.start
            # taken, not only sliced: a cast of sliced lists casts all values before them, too
            file.add(conform(name, table.slice(part.start, rows).take(pa.array(np.arange(rows)))))
        yield file.close()


class TableFile:
    """A table that is written piece by piece, each a row group, into a file that is gone at the context's end.

    The file has no name: of a process that is killed nothing is left.
    """

    def __init__(self, name: str) -> None:
        self._file: BinaryIO = tempfile.TemporaryFile(prefix="communitree-")  # noqa: SIM115
        self._writer = pq.ParquetWriter(self._file, schema(name), compression="zstd", store_schema=False)

    def __enter__(self) -> TableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._file.close()

    def add(self, part: pa.Table) -> None:
        """Write rows that conform."""
        if part.num_rows:
            self._writer.write_table(part, row_group_size=part.num_rows)

    def close(self) -> tuple[BinaryIO, int]:
        """Return the file and its bytes; no rows can be added any more."""
        self._writer.close()
        return self._file, self._file.seek(0, io.SEEK_END)


def from_bytes(data: bytes, columns: list[str] | None = None) -> pa.Table:
    """Return the table of Parquet bytes, or some of its columns."""
    return pq.read_table(io.BytesIO(data), columns=columns)
