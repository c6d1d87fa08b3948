"""Rows of any number in bounded memory: spread over parts by a hash, on disk where they outgrow a limit.

All rows with one hash are in one part, so that parts can be sorted and grouped one by one. What a part holds depends on
the rows alone; whether it came through a file changes nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: Rows that are held in memory; more go to disk, in so many parts.
HELD = 400_000
PARTS = 64


class Runs:
    """Rows of one schema. Use as a context: the files, which have no names, are gone at its end or the process's.

    Args:
        schema: of the rows.
        held: rows in memory before they go to disk.
        parts: number of files then.
    """

    def __init__(self, schema: pa.Schema, held: int = HELD, parts: int = PARTS) -> None:
        self.schema = schema
        self.rows = 0
        self._limit, self._parts = held, parts
        self._held: list[tuple[pa.Table, NDArray[np.uint64]]] = []
        self._in_memory = 0
        self._files: list[BinaryIO] = []
        self._writers: list[Any] = []

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        for file in self._files:
            file.close()

    def add(self, table: pa.Table, hashes: NDArray[np.uint64]) -> None:
        """Add rows with the hash of each."""
        self.rows += table.num_rows
        self._in_memory += table.num_rows
        self._held.append((table, hashes))
        if self._in_memory > self._limit:
            self._spill()

    def parts(self) -> Iterator[pa.Table]:
        """Yield the parts one by one; nothing can be added any more."""
        if not self._files:
            yield pa.concat_tables([table for table, _ in self._held]) if self._held else self.schema.empty_table()
            return
        self._spill()
        self._close()
        for file in self._files:
            file.seek(0)
            with pa.ipc.open_stream(file) as reader:
                yield reader.read_all()

    def _spill(self) -> None:
        if not self._files:
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            for _ in range(self._parts):
                self._files.append(tempfile.TemporaryFile(prefix="communitree-"))  # noqa: SIM115
                self._writers.append(pa.ipc.new_stream(self._files[-1], self.schema, options=options))
        if not self._held:
            return
        table = pa.concat_tables([table for table, _ in self._held])
        target = (np.concatenate([hashes for _, hashes in self._held]) % np.uint64(self._parts)).astype(np.int64)
        self._held, self._in_memory = [], 0
        order = np.argsort(target, kind="stable")
        bounds = np.searchsorted(target[order], np.arange(self._parts + 1)).tolist()
        for n, writer in enumerate(self._writers):
            if bounds[n + 1] > bounds[n]:
                writer.write_table(table.take(pa.array(order[bounds[n] : bounds[n + 1]])))

    def _close(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers = []
