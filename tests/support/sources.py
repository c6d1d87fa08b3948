"""Documents from memory."""

import io

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.reading.documents import Document, Problem, Source
from communitree_workers.corpus.reading.formats import read_documents


def source(name: str, data: bytes | str) -> Source:
    raw = data.encode() if isinstance(data, str) else data
    return Source(name, lambda: io.BytesIO(raw), len(raw))


def read(*files: tuple[str, bytes | str], **options: object) -> tuple[list[Document], list[Problem]]:
    items = list(read_documents([source(n, d) for n, d in files], ReadOptions(**options)))
    return [i for i in items if isinstance(i, Document)], [i for i in items if isinstance(i, Problem)]
