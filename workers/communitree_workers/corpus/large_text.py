"""A large text as UTF-8 bytes: a string of it would take two or four bytes a character as soon as one is not Latin."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

#: Bytes between two places whose character offset is known.
_STRIDE = 1 << 16


class LargeText:
    """UTF-8 bytes that can be cut like a string: offsets count characters, a slice is a string.

    Args:
        raw: valid UTF-8.
    """

    def __init__(self, raw: bytes | bytearray) -> None:
        self.raw = raw
        self._bytes = np.frombuffer(raw, dtype=np.uint8)
        counts = [
            int(np.count_nonzero((self._bytes[at : at + _STRIDE] & 0xC0) != 0x80))
            for at in range(0, len(self._bytes), _STRIDE)
        ]
        #: Characters that begin before each stride, and of the whole.
        self._before = np.concatenate(([0], np.cumsum(np.asarray(counts, dtype=np.int64))))

    @classmethod
    def joined(cls, pieces: Iterable[str]) -> LargeText:
        """Return the text of pieces; what no UTF-8 can hold becomes a question mark."""
        raw = bytearray()
        for piece in pieces:
            raw += piece.encode("utf-8", "replace")
        return cls(raw)

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, part: slice) -> str:
        start, stop, step = part.indices(len(self))
        assert step == 1
        return bytes(self.raw[self._place(start) : self._place(stop)]).decode() if start < stop else ""

    def isspace(self) -> bool:
        """Say whether there is nothing but white space in it."""
        return all(not piece or piece.isspace() for piece in self.pieces())

    def pieces(self, characters: int = 1_000_000) -> Iterable[str]:
        """Yield the text piece by piece."""
        return (self[at : at + characters] for at in range(0, len(self), characters))

    def _place(self, character: int) -> int:
        """Return the byte at which a character begins."""
        if character >= len(self):
            return len(self._bytes)
        stride = int(np.searchsorted(self._before, character, side="right")) - 1
        at = stride * _STRIDE
        starts = np.flatnonzero((self._bytes[at : at + _STRIDE] & 0xC0) != 0x80)
        return at + int(starts[character - int(self._before[stride])])
