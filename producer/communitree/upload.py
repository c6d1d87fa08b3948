"""Documents into the object store, by content: what is there already is not sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from communitree.finding import open_regular
from communitree.sources import Document
from communitree_shared.errors import UsageError
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store

_AT_ONCE = 8

#: Larger files go up in parts, straight from the disk.
_IN_PARTS = 16 * 2**20


def upload(
    store: Store, keys: Keys, corpus: str, documents: Sequence[Document], progress: Callable[[int, int], None]
) -> int:
    """Upload each content once; return how many were sent. `progress` takes (ended, all).

    Raises:
        UsageError: a file changed between its first reading and its upload.
        InfrastructureError: the store did not take them.
    """
    folder = f"{keys.corpus(corpus)}documents/"
    there = {key.removeprefix(folder) for key in store.keys(folder)}
    todo = [d for d in {d.sha256: d for d in documents}.values() if d.sha256 not in there]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for n, _ in enumerate(pool.map(lambda d: _put(store, keys.document(corpus, d.sha256), d), todo), 1):
            progress(n, len(todo))
    return len(todo)


def _put(store: Store, key: str, document: Document) -> None:
    try:
        if document.path is not None and document.size > _IN_PARTS:
            with open_regular(document.path) as file:
                store.put_file(key, _Watched(file, document), document.size)
            return
        if document.path is None:
            data = document.data
        else:
            with open_regular(document.path) as file:
                data = file.read(document.size + 1)
    except OSError as error:
        raise _unreadable(document, error) from error
    if hashlib.sha256(data).hexdigest() != document.sha256:
        raise _changed(document)
    store.put(key, data)


class _Watched:
    """A file on its way into the store: its last bytes are handed out only if all are those of its first reading.

    What lies at a hash is never sent again, so nothing else may stand there, not even for a while: an equal index might
    send the right bytes meanwhile, and what takes the wrong ones away would take these.
    """

    def __init__(self, file: BinaryIO, document: Document) -> None:
        self._file, self._document = file, document
        self._left, self._digest = document.size, hashlib.sha256()

    def seek(self, offset: int, /) -> int:
        """Begin anew: there is no other place to go to."""
        assert offset == 0
        self._left, self._digest = self._document.size, hashlib.sha256()
        return self._file.seek(0)

    def read(self, size: int, /) -> bytes:
        """Return the next bytes.

        Raises:
            UsageError: they are not what they were, or cannot be read.
        """
        size = min(size, self._left)
        try:
            data = self._file.read(size)
        except OSError as error:  # the store would take it for a fault of the server
            raise _unreadable(self._document, error) from error
        self._digest.update(data)
        self._left -= len(data)
        if len(data) < size or (not self._left and self._digest.hexdigest() != self._document.sha256):
            raise _changed(self._document)
        return data


def _unreadable(document: Document, error: OSError) -> UsageError:
    return UsageError(f"{document.name} cannot be read any more: {error.strerror}.")


def _changed(document: Document) -> UsageError:
    return UsageError(f"{document.name} changed while it was read.", hint="Try again when it has settled.")
