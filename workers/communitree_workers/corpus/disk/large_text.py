"""Texts on disk: a large one that is cut like a string, and many small ones in one file.

A string of a large text would take one to four bytes a character, and all texts of a corpus may be more than fits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from copy import copy

import numpy as np

from communitree_workers.corpus.disk.scratch import Ranged, Scratch

#: Bytes between two places whose character offset is known.
_STRIDE = 1 << 16
#: Bytes that are copied at a time.
_COPIED = 1 << 20


class LargeText:
    """UTF-8 on disk that can be cut like a string: offsets count characters, a slice is a string.

    `sha256` is that of its bytes, `size` their number. One that is kept for long belongs on a `Shelf`: each other holds
    a file open.

    Args:
        pieces: the text; what no UTF-8 can hold becomes a question mark.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self._disk, self._begin = Scratch(), 0
        digest = hashlib.sha256()
        for piece in pieces:
            raw = piece.encode("utf-8", "replace")
            digest.update(raw)
            self._disk.add(raw)
        self.sha256 = digest.hexdigest()
        self.size = self._disk.size
        counts = [len(self._starts(at)) for at in range(0, self.size, _STRIDE)]
        #: Characters that begin before each stride, and of the whole.
        self._before = np.concatenate(([0], np.cumsum(np.asarray(counts, dtype=np.int64))))

    def moved(self, disk: Scratch) -> LargeText:
        """Return the text with its bytes at the end of another file; its own is closed with the last that holds it."""
        other = copy(self)
        other._disk, other._begin = disk, disk.size
        for at in range(0, self.size, _COPIED):
            disk.add(self._read(at, min(_COPIED, self.size - at)))
        return other

    def file(self) -> Ranged:
        """Return its bytes as a file."""
        return Ranged(self._read, self.size)

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, part: slice) -> str:
        start, stop, step = part.indices(len(self))
        assert step == 1
        if start >= stop:
            return ""
        first = self._place(start)
        return self._read(first, self._place(stop) - first).decode()

    def isspace(self) -> bool:
        """Say whether there is nothing but white space in it."""
        return all(piece.isspace() for piece in self.pieces())

    def pieces(self, characters: int = 1_000_000) -> Iterator[str]:
        """Yield the text piece by piece."""
        return (self[at : at + characters] for at in range(0, len(self), characters))

    def _place(self, character: int) -> int:
        """Return the byte at which a character begins."""
        if character >= len(self):
            return self.size
        stride = int(np.searchsorted(self._before, character, side="right")) - 1
        return stride * _STRIDE + int(self._starts(stride * _STRIDE)[character - int(self._before[stride])])

    def _starts(self, at: int) -> np.ndarray:
        """Return where in a stride characters begin."""
        stride = np.frombuffer(self._read(at, min(_STRIDE, self.size - at)), dtype=np.uint8)
        return np.flatnonzero((stride & 0xC0) != 0x80)

    def _read(self, offset: int, length: int) -> bytes:
        return self._disk.read(self._begin + offset, length)


class Shelf:
    """Texts put away in one temporary file, to be taken down one at a time: however many, one file is open."""

    def __init__(self) -> None:
        self._disk = Scratch()
        self._places: list[tuple[int, int] | LargeText] = []

    def put(self, text: str | LargeText) -> int:
        """Put a text away; return its number."""
        if isinstance(text, LargeText):
            self._places.append(text.moved(self._disk))
        else:
            raw = text.encode()
            self._places.append((self._disk.size, len(raw)))
            self._disk.add(raw)
        return len(self._places) - 1

    def take(self, number: int) -> str | LargeText:
        """Return a text by its number."""
        place = self._places[number]
        return place if isinstance(place, LargeText) else self._disk.read(*place).decode()
