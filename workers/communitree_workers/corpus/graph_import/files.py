"""Which file is which table, and the bytes of a file as a table of whatever columns it has."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from communitree_shared.contract.graph_files import table_name
from communitree_shared.encodings import detect
from communitree_shared.errors import BadInput

#: Where a file's bytes come from: themselves, a path, or something that opens them.
Source = bytes | Path | Callable[[], BinaryIO]

#: No row of a CSV file may be larger than this.
_CSV_BLOCK = 256 << 20

_AGAIN = "Correct this place and send the tables again; nothing was imported."


@dataclass
class Raw:
    """A file's table before its columns are understood; `named` = its column names in lower case."""

    file: str
    table: pa.Table
    have: list[str] = field(default_factory=list)
    encoding: str = "utf-8"
    named: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.have = self.have or list(self.table.column_names)
        self.named = {name.strip().lower(): name for name in reversed(self.table.column_names)}

    def find(self, *names: str) -> str | None:
        """Return the first of these columns that the table has, by its own spelling."""
        return next((self.named[name] for name in names if name in self.named), None)

    def __len__(self) -> int:
        return int(self.table.num_rows)


def sort_out(files: Mapping[str, Source]) -> tuple[dict[str, str], list[str]]:
    """Return table → file for the files whose name says what they are, and the other files, both sorted.

    Raises:
        BadInput: two files for one table.
    """
    known: dict[str, str] = {}
    others = []
    for file in sorted(files):
        name = table_name(file)
        if name is None:
            others.append(file)
        elif name in known:
            raise BadInput(
                f"{known[name]} and {file} both hold the table {name}.",
                hint="Keep one of them: point at the folder of one run, in one format.",
            )
        else:
            known[name] = file
    return known, others


def load(file: str, source: Source, wanted: Collection[str] = ()) -> Raw:
    """Return the file's table. `wanted`: the only columns to read of a Parquet file, in lower case; () is all.

    Raises:
        BadInput: the file is damaged or not what its name says; names the place as far as it is known.
    """
    suffix = PurePosixPath(file.lower()).suffix
    try:
        if suffix == ".parquet":
            return _parquet(file, source, wanted)
        data, encoding = _utf8(_bytes(source))
        if suffix in (".csv", ".tsv"):
            return Raw(file, _csv(data, "\t" if suffix == ".tsv" else None), encoding=encoding)
        return Raw(file, _json(data, file, suffix), encoding=encoding)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        expected = "tables in Parquet" if suffix == ".parquet" else f"a table as {suffix[1:].upper()}"
        raise BadInput(
            f"{file}: expected {expected}: {error}", hint="Write the file again; nothing was imported."
        ) from error


def _parquet(file: str, source: Source, wanted: Collection[str]) -> Raw:
    """Leave unread what nobody asks for: embeddings are most of an old entities table."""
    stored = pq.ParquetFile(source if isinstance(source, Path) else pa.BufferReader(_bytes(source)))
    have = list(stored.schema_arrow.names)
    chosen = [name for name in have if not wanted or name.strip().lower() in wanted]
    table = stored.read(columns=chosen)
    return Raw(file, table if chosen else pa.table({}), have)


def _bytes(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, Path):
        return source.read_bytes()
    with source() as stream:
        return stream.read()


def _utf8(data: bytes) -> tuple[bytes, str]:
    """Return the bytes in UTF-8, and the encoding that they had: spreadsheets write that of their country."""
    found = detect(io.BytesIO(data))
    if found.encoding.startswith("utf-8") or not found.encoding or found.bad_offset is not None:
        return data, "utf-8"
    return data.decode(found.encoding).encode(), found.encoding


def _csv(data: bytes, delimiter: str | None) -> pa.Table:
    """Read all columns as text: what a column is, we know better than a guess by its first rows."""
    data = data.removeprefix(codecs.BOM_UTF8)
    head = data[: 1 << 16].decode("utf-8", errors="ignore")
    first = head.splitlines()[0] if head.strip() else ""
    if delimiter is None:
        delimiter = max(",;\t", key=first.count)
    if not first:
        return pa.table({})
    names = next(csv.reader(io.StringIO(head), delimiter=delimiter))
    unnamed = [name if name.strip() else f"unnamed: {place}" for place, name in enumerate(names)]
    return pa_csv.read_csv(
        io.BytesIO(data),
        read_options=pa_csv.ReadOptions(
            column_names=unnamed, skip_rows_after_names=1, block_size=min(_CSV_BLOCK, max(1 << 20, len(data) + 1))
        ),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(unnamed, pa.string()), strings_can_be_null=False
        ),
    )


def _json(data: bytes, file: str, suffix: str) -> pa.Table:
    """Read rows of objects. Types are not guessed from texts, so that dates stay as they were written."""
    rows: list[dict[str, Any]] = []
    if suffix == ".json":
        try:
            loaded = orjson.loads(data.removeprefix(codecs.BOM_UTF8))
        except orjson.JSONDecodeError as error:
            raise BadInput(f"{file}: expected a JSON array of objects: {error}", hint=_AGAIN) from error
        numbered = enumerate(loaded, 1) if isinstance(loaded, list) else [(1, loaded)]
    else:
        numbered = _lines(data, file)
    for place, row in numbered:
        if not isinstance(row, dict):
            raise BadInput(f"{file}: row {place}: expected an object, found {str(row)[:80]!r}.", hint=_AGAIN)
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _array([row.get(name) for row in rows]) for name in names})


def _lines(data: bytes, file: str) -> Any:
    for place, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield place, orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadInput(f"{file}: line {place}: expected one JSON object: {error}", hint=_AGAIN) from error


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        mixed = [v if v is None or isinstance(v, str) else orjson.dumps(v).decode() for v in values]
        return pa.array(mixed, pa.string())
