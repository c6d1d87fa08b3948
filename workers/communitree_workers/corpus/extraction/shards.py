"""Shards of the built-in extractor, as tables and as bytes."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pyarrow as pa

FORMS = pa.schema(
    [("key", pa.string()), ("title", pa.string()), ("kind", pa.int8()), ("type", pa.string()), ("parts", pa.string())]
)
SENTENCES = pa.schema(
    [("unit", pa.int32()), ("start", pa.int32()), ("end", pa.int32()), ("forms", pa.list_(pa.int32()))]
)
UNITS = pa.schema([("id", pa.string())])


@dataclass(frozen=True)
class Shard:
    """Candidates by sentence.

    `units`: id. `forms`: the distinct candidates (key, title, kind, type, parts). `sentences`: unit (row of `units`),
    start and end in the unit's text, forms (rows of `forms`, in order, with repetitions).
    """

    units: pa.Table
    forms: pa.Table
    sentences: pa.Table

    def to_bytes(self) -> bytes:
        """Return the shard as three Arrow streams, one after the other."""
        sink = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        for table in (self.units, self.forms, self.sentences):
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                writer.write_table(table)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Shard:
        """Return the shard of `to_bytes`."""
        source = pa.BufferReader(data)
        units, forms, sentences = (pa.ipc.open_stream(source).read_all() for _ in range(3))
        return cls(units, forms, sentences)
