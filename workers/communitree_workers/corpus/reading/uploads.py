"""Uploaded files, fetched from the store as `formats` wants to read them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.errors import BadInput
from communitree_shared.objects import document_lists
from communitree_workers.corpus.disk.downloads import LARGE, in_order, into_file
from communitree_workers.corpus.reading.documents import Source
from communitree_workers.runtime.context import UnitContext


def uploaded(context: UnitContext, request: CorpusRequest, name: str, sha256: str, size: int) -> bytes:
    """Return an uploaded file; no more of it is fetched than `size`, which a request of any program's may misstate.

    Raises:
        BadInput: it is not there, or of another size.
    """
    key = context.keys.document(request.corpus, sha256)
    try:
        data = context.services.store.get_range(key, 0, size + 1)
    except KeyError:
        raise _missing(name, key) from None
    if len(data) != size:
        raise BadInput(f"{name!r} is not the {size:,} bytes that the request says: {key}.", hint="State its size.")
    return data


def listed(context: UnitContext, request: CorpusRequest) -> Iterator[dict[str, Any]]:
    """Yield the documents that a request lists, or the object that it names: name, sha256, size.

    Raises:
        BadInput: that object is not there, or not what it was when the request was taken.
    """
    if request.document_list is None:
        return iter(request.documents)
    return document_lists.read(context.services.store, context.keys, request.corpus, request.document_list)


def odd_encodings(encodings: Mapping[str, int]) -> list[str]:
    """Return a note for each encoding, other than UTF-8, that some files were read as."""
    odd = {name: n for name, n in sorted(encodings.items()) if name not in {"utf-8", "ascii"}}
    return [f"{n} {'file was' if n == 1 else 'files were'} read as {name}" for name, n in odd.items()]


def sources(context: UnitContext, request: CorpusRequest) -> Iterator[Source]:
    """Yield the files in order; small ones are on their way before they are asked for, each is fetched once."""
    store = context.services.store

    def source(entry: dict[str, Any]) -> Source:
        name, size = entry["name"], int(entry["size"])
        if size <= LARGE:
            try:
                data = uploaded(context, request, name, entry["sha256"], size)
            except BadInput as missing:  # told where the file is read, and the rest goes on
                return Source(name, partial(_raise, missing), size)
            return Source(name, lambda: io.BytesIO(data), size)
        key = context.keys.document(request.corpus, entry["sha256"])
        found: list[Callable[[], BinaryIO]] = []

        def opened() -> BinaryIO:
            if not found:
                try:
                    found.append(into_file(partial(store.get_range, key), size))
                except KeyError:
                    raise _missing(name, key) from None
            return found[0]()

        return Source(name, opened, size)

    return in_order(listed(context, request), source)


def _raise(error: BadInput) -> BinaryIO:
    raise error


def _missing(name: str, key: str) -> BadInput:
    return BadInput(f"{name!r} was not uploaded: there is no object {key}.", hint="Put it there first.")
