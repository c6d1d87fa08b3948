"""Bytes on disk that nobody has to remove, and bytes that are read by offset and length as a file."""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

#: Gives bytes of an object by offset and length.
Part = Callable[[int, int], bytes]


class Scratch:
    """A temporary file without a name: its bytes are gone with the object and with the process, also a killed one."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="communitree-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self.size = 0

    def add(self, data: bytes) -> None:
        """Put bytes behind the others."""
        self._file.write(data)
        self.size += len(data)

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes; fewer where it ends."""
        self._file.flush()
        return os.pread(self._file.fileno(), length, offset)


class Ranged(io.RawIOBase):
    """Bytes that are read by offset and length as a file, without a buffer: each reading is one call of `part`.

    Args:
        part: gives bytes; it lives as long as the file.
        size: how many there are.
    """

    def __init__(self, part: Part, size: int) -> None:
        self._part, self._size, self._at = part, size, 0

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; return it, from the start."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return how many bytes came: fewer at the end."""
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        data = self._part(self._at, length)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
