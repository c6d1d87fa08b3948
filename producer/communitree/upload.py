"""Documents into the object store, by content: what is there already is not sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from communitree.sources import Document
from communitree_shared.errors import UsageError
from communitree_shared.keys import Keys
from communitree_shared.store import Store

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
            store.put_file(key, str(document.path))
            with document.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != document.sha256:
                store.delete(key)  # what lies at a hash is never sent again: it must not be something else
                raise _changed(document)
            return
        data = document.data if document.path is None else document.path.read_bytes()
    except OSError as error:
        raise UsageError(f"{document.name} cannot be read any more: {error.strerror}.") from error
    if hashlib.sha256(data).hexdigest() != document.sha256:
        raise _changed(document)
    store.put(key, data)


def _changed(document: Document) -> UsageError:
    return UsageError(f"{document.name} changed while it was read.", hint="Try again when it has settled.")
