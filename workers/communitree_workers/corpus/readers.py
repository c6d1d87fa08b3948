"""Files of any kind → documents, one by one; whatever cannot be read becomes a problem and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

from communitree_shared.contract.options import ReadOptions
from communitree_shared.contract.text_columns import text_column_of
from communitree_shared.errors import InfrastructureError
from communitree_workers.corpus import read_office, read_rows, read_text
from communitree_workers.corpus.documents import Document, Problem, Source

__all__ = ["FORMATS", "Document", "Problem", "Source", "read_documents"]

Reader = Callable[[Source, ReadOptions], Iterator[Document | Problem]]

#: File name ending → reader. Any other ending is read as text, if it is text.
FORMATS: dict[str, Reader] = {
    ".html": read_text.read_html,
    ".htm": read_text.read_html,
    ".xhtml": read_text.read_html,
    ".csv": read_rows.read_csv,
    ".tsv": read_rows.read_csv,
    ".json": read_rows.read_json,
    ".jsonl": read_rows.read_jsonl,
    ".ndjson": read_rows.read_jsonl,
    ".parquet": read_rows.read_parquet,
    ".docx": read_office.read_docx,
    ".pdf": read_office.read_pdf,
}


def read_documents(sources: Iterable[Source], options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the documents of all sources in order, and a `Problem` for whatever gives none.

    Equal texts are yielded as they come (`ingest` keeps one); `options.limit` counts them once. One source is open at a
    time; the memory needed is that of the largest document (rows: of one row, except for JSON), about twice its text.

    Raises:
        BadInput: `options.strict` and there is a problem of any kind.
    """
    seen: set[str] = set()
    for source in sources:
        for item in _read(source, options):
            if isinstance(item, Document):
                seen.add(item.content)
                if options.limit is not None and len(seen) > options.limit:
                    return
            elif options.strict:
                raise item.error()
            yield item


def _read(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    reader = FORMATS.get(PurePosixPath(source.name.lower()).suffix, read_text.read_text)
    if source.size == 0:
        yield Problem(source.name, "empty", "the file is empty")
        return
    try:
        own = text_column_of(options.text_column, source.name)
        yield from reader(source, options.model_copy(update={"text_column": own}))
    except InfrastructureError:  # the store is away, not the file bad: the whole is read again later
        raise
    except ImportError as error:
        yield Problem(source.name, "missing_library", str(error))
    except Exception as error:  # one bad file never stops the rest: parsers raise whatever they like
        yield Problem(source.name, "unreadable", f"{type(error).__name__}: {error}"[:500])
