"""Whether a store did what it says: it names the MD5 of what it has taken, and of what it hands out, as ETag.

Nothing more is asked for as long as the two agree. Where they do not, either the bytes were lost or cut on the way
(by a proxy, a full disk, a damaged server), or the store's ETags are no MD5, as with SSE-KMS: one object is then read
back and compared, once a process, and ETags are not looked at any more where that was right.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

#: Parts of a large object: the ETag of the whole is made of those of its parts.
PART = 16 * 2**20
_MOST_PARTS = 10_000


class NotAsSent(OSError):
    """What the store has, or gave, is not what was sent: taken for an outage, and tried again."""


class Proofs:
    """What a process knows of a store's ETags."""

    def __init__(self) -> None:
        self._none = False  # ETags of this store prove nothing

    def check_put(self, key: str, etag: str, md5: str, same: Callable[[], bool]) -> None:
        """Look whether an object was stored.

        Args:
            key: its key.
            etag: what the store answered.
            md5: what it should be.
            same: reads the object back and says whether it is right; called at most once a process that goes well.

        Raises:
            NotAsSent: it was not.
        """
        etag = etag.strip('"').lower()
        if etag == md5 or (self._none and etag):
            return
        if not same():
            raise NotAsSent(f"it took {key}, and has not stored what was sent")
        self._none = bool(etag)

    def check_get(
        self, key: str, etag: str, data: bytes, length: Callable[[], int], again: Callable[[], bytes]
    ) -> None:
        """Look whether a whole object came, as `check_put`; `length` asks for its size, `again` for its bytes.

        Raises:
            NotAsSent: it did not.
        """
        etag = etag.strip('"').lower()
        if self._none or "-" in etag or etag == md5_of(data):  # a dash: of parts whose sizes nobody knows
            return
        whole = length()
        if whole != len(data):
            raise NotAsSent(f"it cut {key} short: {len(data):,} of {whole:,} bytes")
        if again() != data:
            raise NotAsSent(f"it gives other bytes of {key} each time")
        self._none = True


def check_range(key: str, said: str, data: bytes) -> None:
    """Look whether a range of an object came whole, by its `Content-Range`.

    Raises:
        NotAsSent: it did not.
    """
    found = re.match(r"bytes (\d+)-(\d+)/", said)
    if found is None:
        raise NotAsSent(f"it knows no ranges: it gave {len(data):,} bytes of {key}")
    if (wanted := int(found[2]) - int(found[1]) + 1) != len(data):
        raise NotAsSent(f"it cut {key} short: {len(data):,} of {wanted:,} bytes")


class Parts:
    """A stream on its way into the store in parts; knows the ETag that the whole must get."""

    def __init__(self, file: Any, size: int) -> None:
        self._file = file
        self.part = max(PART, -(-size // _MOST_PARTS))
        self._left, self._size = self.part, size
        self._now, self._ended = _md5(), b""
        self._count = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; they are counted."""
        data: bytes = self._file.read(size)
        rest = memoryview(data)
        while rest:
            piece = rest[: self._left]
            self._now.update(piece)
            self._left -= len(piece)
            rest = rest[len(piece) :]
            if not self._left:
                self._end_part()
        return data

    def etag(self) -> str:
        """Return the ETag of what was read."""
        if self._size <= self.part:
            return self._ended.hex() or self._now.hexdigest()
        if self._left != self.part:
            self._end_part()
        return f"{hashlib.md5(self._ended, usedforsecurity=False).hexdigest()}-{self._count}"

    def _end_part(self) -> None:
        self._ended += self._now.digest()
        self._count += 1
        self._now, self._left = _md5(), self.part


def md5_of(data: bytes) -> str:
    """Return the MD5 of bytes, in hexadecimal digits."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)
