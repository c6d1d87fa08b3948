"""Files of any kind → documents, one by one; whatever cannot be read becomes a problem and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

from communitree_shared.contract.options import ReadOptions
from communitree_shared.contract.text_columns import text_column_of
from communitree_shared.errors import InfrastructureError
from communitree_workers.corpus.reading import office, plain_text, records
from communitree_workers.corpus.reading.documents import Document, Problem, Source

__all__ = ["FORMATS", "Document", "Problem", "Reader", "Source", "needs_parser", "read_documents", "read_one"]

Reader = Callable[[Source, ReadOptions], Iterator[Document | Problem]]

#: File name ending → reader. Any other ending is read as text, if it is text.
FORMATS: dict[str, Reader] = {
    ".html": plain_text.read_html,
    ".htm": plain_text.read_html,
    ".xhtml": plain_text.read_html,
    ".csv": records.read_csv,
    ".tsv": records.read_csv,
    ".json": records.read_json,
    ".jsonl": records.read_jsonl,
    ".ndjson": records.read_jsonl,
    ".parquet": records.read_parquet,
    ".docx": office.read_docx,
    ".pdf": office.read_pdf,
}


def read_documents(
    sources: Iterable[Source], options: ReadOptions, read: Reader | None = None
) -> Iterator[Document | Problem]:
    """Yield the documents of all sources in order, and a `Problem` for whatever gives none.

    Equal texts are yielded as they come (`ingest` keeps one); `options.limit` counts them once. One source is open at a
    time; the memory needed is that of the largest document (rows: of one row, except for JSON), about twice its text.

    Args:
        read: reads one source; `read_one`, in this process, if none is given (see `isolated`).

    Raises:
        BadInput: `options.strict` and there is a problem of any kind.
    """
    seen: set[str] = set()
    for source in sources:
        for item in (read or read_one)(source, options):
            if isinstance(item, Document):
                seen.add(item.content)
                if options.limit is not None and len(seen) > options.limit:
                    return
            elif options.strict:
                raise item.error()
            yield item


def needs_parser(name: str) -> bool:
    """Say whether a file of this name is read by more than decoding its bytes."""
    return _ending(name) in FORMATS


def read_one(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the documents of one source and what is wrong with it; only a store that is away raises."""
    reader = FORMATS.get(_ending(source.name), plain_text.read_text)
    if source.size == 0:
        yield Problem(source.name, "empty", "the file is empty")
        return
    try:
        own = text_column_of(options.text_column, source.name)
        yield from reader(source, options.model_copy(update={"text_column": own}))
    except InfrastructureError:  # the store is away, not the file bad: the whole is read again later
        raise
    except MemoryError:
        yield Problem(source.name, "limit", "reading it takes more memory than a file of its size is given")
    except ImportError as error:
        yield Problem(source.name, "missing_library", str(error))
    except Exception as error:  # one bad file never stops the rest: parsers raise whatever they like
        yield Problem(source.name, "unreadable", f"{type(error).__name__}: {error}"[:500])


def _ending(name: str) -> str:
    return PurePosixPath(name.lower()).suffix
