"""Uploaded files as documents: the shell around `readers` and `ingest`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.tables import DOCUMENTS, TEXT_UNITS
from communitree_shared.errors import BadInput
from communitree_shared.objects import document_lists
from communitree_workers.corpus.documents import Source
from communitree_workers.corpus.fetching import LARGE, in_order, into_file
from communitree_workers.corpus.ingest import ingest_into
from communitree_workers.corpus.large_text import LargeText
from communitree_workers.corpus.readers import read_documents
from communitree_workers.corpus.samples import Samples
from communitree_workers.runtime.context import UnitContext
from communitree_workers.tables.io import TableFile


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


class _Written:
    """The tables on their way into the store, and what the next step wants to know of the text units."""

    def __init__(self, context: UnitContext, request: CorpusRequest) -> None:
        self.ids: list[str] = []
        self.sizes: list[int] = []
        self.samples = Samples()
        self.files = {name: TableFile(name) for name in (DOCUMENTS, TEXT_UNITS)}
        self._store = context.services.store
        self._key = partial(context.keys.text, request.corpus, request.version)

    def units(self, part: pa.Table) -> None:
        self.ids += part["id"].to_pylist()
        self.sizes += part["n_tokens"].to_pylist()
        for text in part["text"].to_pylist():
            self.samples.add(text)
        self.files[TEXT_UNITS].add(part)

    def documents(self, part: pa.Table) -> None:
        self.files[DOCUMENTS].add(part)

    def text(self, document: str, text: LargeText) -> str:
        """Store a text as an object of its own: no reader of the table must hold it."""
        self._store.put_file(self._key(document), text.file(), text.size)
        return ""


@dataclass
class Read:
    """What `read` made: ids and tokens of the text units, the language, notes, counts, and the bytes of the table."""

    ids: list[str]
    sizes: list[int]
    language: str
    notes: list[str]
    documents: int
    bytes: int


def read(context: UnitContext, request: CorpusRequest, options: IndexOptions) -> Read:
    """Read a request's files, and write `documents` and `text_units`.

    Raises:
        BadInput: there is no text in any.
    """
    sink = _Written(context, request)
    with sink.files[DOCUMENTS], sink.files[TEXT_UNITS]:
        report = ingest_into(sink, read_documents(_sources(context, request), options.read), options.read)
        notes = [f"{p.source}: {p.message}" for p in report.problems]
        notes += odd_encodings(report.encodings)
        if not sink.ids:
            raise BadInput(
                f"None of the {request.count:,} files of {request.corpus!r} holds text that can be read.",
                hint="; ".join(notes[:3]),
            )
        sizes = {}
        for name, table in sink.files.items():
            file, sizes[name] = table.close()
            key = context.keys.build(request.corpus, request.version, f"ingest/{name}.parquet")
            context.services.store.put_file(key, file, sizes[name])
    return Read(sink.ids, sink.sizes, sink.samples.language(), notes, report.documents, sizes[TEXT_UNITS])


def odd_encodings(encodings: Mapping[str, int]) -> list[str]:
    """Return a note for each encoding, other than UTF-8, that some files were read as."""
    odd = {name: n for name, n in sorted(encodings.items()) if name not in {"utf-8", "ascii"}}
    return [f"{n} {'file was' if n == 1 else 'files were'} read as {name}" for name, n in odd.items()]


def _sources(context: UnitContext, request: CorpusRequest) -> Iterator[Source]:
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
