"""Many objects in order, several on their way at a time: one after the other, each would wait for the store."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, TypeVar

from communitree_workers.corpus.disk.scratch import Ranged, Scratch

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 16
#: A larger object goes through a file, in pieces.
LARGE = 16 * 2**20
_PIECE = 8 * 2**20


def in_order(items: Iterable[T], work: Callable[[T], R], at_once: int = _AT_ONCE) -> Iterator[R]:
    """Yield `work(item)` of each item, in their order; at most `at_once` run ahead of the consumer."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= at_once:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def into_file(read: Callable[[int, int], bytes], size: int) -> Callable[[], BinaryIO]:
    """Put a large object on disk for as long as the returned function, or what it gives, lives: it opens the bytes.

    `read` takes offset and length; what it raises goes through.
    """
    disk = Scratch()
    for offset in range(0, size, _PIECE):
        disk.add(read(offset, min(_PIECE, size - offset)))
    return lambda: io.BufferedReader(Ranged(disk.read, disk.size))
