"""Texts on disk: a large one that is cut like a string, and many small ones in one file.

A string of a large text would take one to four bytes a character, and all texts of a corpus may be more than fits.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

#: Bytes between two places whose character offset is known.
_STRIDE = 1 << 16


class LargeText:
    """UTF-8 in a temporary file that can be cut like a string: offsets count characters, a slice is a string.

    The file lives as long as the object. `path` is where it lies, `sha256` that of its bytes.

    Args:
        pieces: the text; what no UTF-8 can hold becomes a question mark.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        folder = tempfile.mkdtemp(prefix="communitree-text-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = str(Path(folder, "text"))
        digest = hashlib.sha256()
        with open(self.path, "wb") as file:
            for piece in pieces:
                raw = piece.encode("utf-8", "replace")
                digest.update(raw)
                file.write(raw)
        self.sha256 = digest.hexdigest()
        self._file = os.open(self.path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._size = os.fstat(self._file).st_size
        counts = [len(self._starts(at)) for at in range(0, self._size, _STRIDE)]
        #: Characters that begin before each stride, and of the whole.
        self._before = np.concatenate(([0], np.cumsum(np.asarray(counts, dtype=np.int64))))

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, part: slice) -> str:
        start, stop, step = part.indices(len(self))
        assert step == 1
        if start >= stop:
            return ""
        first = self._place(start)
        return os.pread(self._file, self._place(stop) - first, first).decode()

    def isspace(self) -> bool:
        """Say whether there is nothing but white space in it."""
        return all(piece.isspace() for piece in self.pieces())

    def pieces(self, characters: int = 1_000_000) -> Iterator[str]:
        """Yield the text piece by piece."""
        return (self[at : at + characters] for at in range(0, len(self), characters))

    def _place(self, character: int) -> int:
        """Return the byte at which a character begins."""
        if character >= len(self):
            return self._size
        stride = int(np.searchsorted(self._before, character, side="right")) - 1
        return stride * _STRIDE + int(self._starts(stride * _STRIDE)[character - int(self._before[stride])])

    def _starts(self, at: int) -> np.ndarray:
        """Return where in a stride characters begin."""
        stride = np.frombuffer(os.pread(self._file, _STRIDE, at), dtype=np.uint8)
        return np.flatnonzero((stride & 0xC0) != 0x80)


class Shelf:
    """Texts put away in one temporary file, to be taken down one at a time; large ones keep their own."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="communitree-texts-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._places: list[tuple[int, int] | LargeText] = []
        self._end = 0

    def put(self, text: str | LargeText) -> int:
        """Put a text away; return its number."""
        if isinstance(text, LargeText):
            self._places.append(text)
        else:
            raw = text.encode()
            self._file.write(raw)
            self._places.append((self._end, len(raw)))
            self._end += len(raw)
        return len(self._places) - 1

    def take(self, number: int) -> str | LargeText:
        """Return a text by its number."""
        place = self._places[number]
        if isinstance(place, LargeText):
            return place
        offset, size = place
        self._file.flush()
        return os.pread(self._file.fileno(), size, offset).decode()
