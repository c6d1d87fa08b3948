"""A bounded cache of immutable things, by key: object bytes, parsed tables, views."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """Least recently used goes first; `limit` is in bytes as the caller states them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._entries: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._making: dict[str, concurrent.futures.Future[Any]] = {}
        self._lock = threading.Lock()

    def peek(self, key: str) -> Any | None:
        """Return the value of a key if it is there, at once."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def get(self, key: str, make: Callable[[], tuple[T, int]]) -> T:
        """Return the value of a key; `make` gives it and its size in bytes where it is not there."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                value: T = found[0]
                return value
            making = self._making.get(key)
            if making is None:
                mine = self._making[key] = concurrent.futures.Future()
        if making is not None:  # of a hundred threads that want it at once, one makes it
            return making.result()  # type: ignore[no-any-return]
        try:
            value, size = make()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            if size <= self.limit:
                self._entries[key] = (value, size)
                self.size += size
                while self.size > self.limit:
                    _, (_, freed) = self._entries.popitem(last=False)
                    self.size -= freed
        mine.set_result(value)
        return value
