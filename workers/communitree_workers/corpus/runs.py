"""Rows of any number in bounded memory: spread over parts by a hash, on disk where they outgrow a limit.

All rows with one hash are in one part, so that parts can be sorted and grouped one by one. What a part holds depends on
the rows alone; whether it came through a file changes nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: Rows that are held in memory; more go to disk, in so many parts.
HELD = 400_000
PARTS = 64


class Runs:
    """Rows of one schema. Use as a context: the files are removed at its end.

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
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Any] = []

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, table: pa.Table, hashes: NDArray[np.uint64]) -> None:
        """Add rows with the hash of each."""
        self.rows += table.num_rows
        self._in_memory += table.num_rows
        self._held.append((table, hashes))
        if self._in_memory > self._limit:
            self._spill()

    def parts(self) -> Iterator[pa.Table]:
        """Yield the parts one by one; nothing can be added any more."""
        if self._folder is None:
            yield pa.concat_tables([table for table, _ in self._held]) if self._held else self.schema.empty_table()
            return
        self._spill()
        self._close()
        for part in range(self._parts):
            with pa.OSFile(self._path(part)) as file, pa.ipc.open_stream(file) as reader:
                yield reader.read_all()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="communitree-runs-")
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            for part in range(self._parts):
                self._files.append(pa.ipc.new_stream(self._path(part), self.schema, options=options))
        if not self._held:
            return
        table = pa.concat_tables([table for table, _ in self._held])
        target = (np.concatenate([hashes for _, hashes in self._held]) % np.uint64(self._parts)).astype(np.int64)
        self._held, self._in_memory = [], 0
        order = np.argsort(target, kind="stable")
        bounds = np.searchsorted(target[order], np.arange(self._parts + 1)).tolist()
        for n, file in enumerate(self._files):
            if bounds[n + 1] > bounds[n]:
                file.write_table(table.take(pa.array(order[bounds[n] : bounds[n + 1]])))

    def _close(self) -> None:
        for file in self._files:
            file.close()
        self._files = []

    def _path(self, part: int) -> str:
        assert self._folder is not None
        return str(Path(self._folder.name, f"{part:03}"))
