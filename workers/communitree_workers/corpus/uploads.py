"""Uploaded files as documents: the shell around `readers` and `ingest`."""

from __future__ import annotations

import io

from communitree_shared.errors import BadInput
from communitree_shared.messages import CorpusRequest
from communitree_shared.options import IndexOptions
from communitree_workers.corpus.documents import Source
from communitree_workers.corpus.ingest import ingest
from communitree_workers.corpus.readers import read_documents
from communitree_workers.runtime.context import UnitContext
from communitree_workers.tables.io import Tables


def uploaded(context: UnitContext, request: CorpusRequest, name: str, sha256: str) -> bytes:
    """Return an uploaded file.

    Raises:
        BadInput: it is not there.
    """
    key = context.keys.document(request.corpus, sha256)
    try:
        return context.services.store.get(key)
    except KeyError:
        raise BadInput(f"{name!r} was not uploaded: there is no object {key}.", hint="Put it there first.") from None


def read(context: UnitContext, request: CorpusRequest, options: IndexOptions) -> tuple[Tables, list[str]]:
    """Return `documents` and `text_units` of a request's files, and a line for each thing that could not be read."""

    def source(name: str, sha256: str, size: int) -> Source:
        return Source(name=name, open=lambda: io.BytesIO(uploaded(context, request, name, sha256)), size=size)

    sources = [source(d["name"], d["sha256"], int(d["size"])) for d in request.documents]
    tables, report = ingest(read_documents(sources, options.read), options.read)
    notes = [f"{p.source}: {p.message}" for p in report.problems]
    odd = {name: n for name, n in sorted(report.encodings.items()) if name not in {"utf-8", "ascii"}}
    notes += [f"{n} files were read as {name}" for name, n in odd.items()]
    return tables, notes
