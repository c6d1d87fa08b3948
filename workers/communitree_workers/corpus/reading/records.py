"""Tables and records of documents: CSV, TSV, JSON, JSON Lines, Parquet. One row, one document."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import orjson

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.reading.documents import Document, Problem, Source, as_text, document
from communitree_workers.corpus.reading.plain_text import opened

#: Tried in this order, in any case, where no column is named.
TEXT_COLUMNS = ("text", "content", "body", "document", "正文", "内容", "文本")
TITLE_COLUMNS = ("title", "name", "标题", "题目")

#: A cell may hold a whole book.
_FIELD_LIMIT = 1 << 30


def read_csv(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield a document for each row of a CSV or TSV file with a header line; the separator is told from the header."""
    wrapper, found, problems = opened(source)
    yield from problems
    if wrapper is None:
        return
    csv.field_size_limit(_FIELD_LIMIT)
    with wrapper:
        header = wrapper.readline()
        separator = "\t" if PurePosixPath(source.name.lower()).suffix == ".tsv" else _separator(header)
        names = next(csv.reader([header], delimiter=separator), [])
        rows = csv.DictReader(wrapper, fieldnames=[n.strip() for n in names], delimiter=separator)
        yield from _rows(source, options, ((n, _clean(row)) for n, row in enumerate(rows, 1)), found.encoding)


def read_jsonl(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield a document for each line; a line that is no JSON object or string is a `bad_row`."""
    wrapper, found, problems = opened(source)
    yield from problems
    if wrapper is None:
        return
    with wrapper:
        lines = ((n, _parsed(line)) for n, line in enumerate(wrapper, 1) if line.strip())
        yield from _rows(source, options, lines, found.encoding)


def read_json(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the documents of a JSON file: an object with a text, a list of them or of strings, or an object that holds
    such a list. The file is in memory as a whole."""
    wrapper, found, problems = opened(source)
    yield from problems
    if wrapper is None:
        return
    with wrapper:
        value = orjson.loads(wrapper.read())
    if isinstance(value, dict) and not _column(value, str(options.text_column), TEXT_COLUMNS):
        lists = [v for _, v in sorted(value.items()) if isinstance(v, list) and v]
        value = lists[0] if len(lists) == 1 else value
    values = value if isinstance(value, list) else [value]
    yield from _rows(source, options, enumerate(values, 1), found.encoding, single=not isinstance(value, list))


def read_parquet(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield a document for each row, a few hundred rows in memory at a time."""
    import pyarrow.parquet as pq  # as long to import as a thousand small files take to read

    with source.open() as stream:
        file = pq.ParquetFile(stream)
        names = file.schema_arrow.names
        wanted = {str(options.text_column), options.title_column, options.id_column, *options.metadata_columns}
        wanted |= {n for n in names if n.lower() in (*TEXT_COLUMNS, *TITLE_COLUMNS)}
        columns = [n for n in names if n in wanted]
        if not _column(dict.fromkeys(names), str(options.text_column), TEXT_COLUMNS):
            yield _no_text(source, options, names, None)
            return
        batches = (batch.to_pylist() for batch in file.iter_batches(batch_size=256, columns=columns))
        yield from _rows(source, options, enumerate((row for batch in batches for row in batch), 1), "utf-8")


def _rows(
    source: Source, options: ReadOptions, rows: Iterator[tuple[int, Any]] | Any, encoding: str, *, single: bool = False
) -> Iterator[Document | Problem]:
    """Turn rows (numbered from 1) into documents. Without any text column in the first row the file is given up."""
    any_text = False
    number = 0
    for number, row in rows:
        place = None if single else number
        if isinstance(row, str):
            row = {"text": row}
        if not isinstance(row, Mapping):
            message = str(row) if isinstance(row, ValueError) else f"a row must be an object, not {type(row).__name__}"
            yield Problem(source.name, "bad_row", message, row=place)
            continue
        column = _column(row, str(options.text_column), TEXT_COLUMNS)
        if not column:
            yield _no_text(source, options, list(row), place)
            if not any_text:
                return
            continue
        any_text = True
        text = as_text(row[column]).replace("\r\n", "\n")
        if not text or text.isspace():
            yield Problem(source.name, "empty", f"column {column} holds no text", row=place)
            continue
        title_column = _column(row, options.title_column, TITLE_COLUMNS)
        title = as_text(row.get(title_column)).strip() or (source.name if single else f"{source.name}#{number}")
        wanted = {name: row[name] for name in options.metadata_columns if name in row}
        given = as_text(row.get(options.id_column)) if options.id_column else ""
        yield document(text, title, source.name, given_id=given, encoding=encoding, metadata=wanted)
    if not number:
        yield Problem(source.name, "empty", "there are no rows in it")


def _column(row: Mapping[str, Any], wanted: str, candidates: tuple[str, ...]) -> str:
    if wanted:
        return wanted if wanted in row else ""
    by_lower = {str(name).lower(): str(name) for name in reversed(list(row))}
    return next((by_lower[c] for c in candidates if c in by_lower), "")


def _no_text(source: Source, options: ReadOptions, names: list[Any], row: int | None) -> Problem:
    tried = str(options.text_column) or " or ".join(TEXT_COLUMNS)
    message = f"no column named {tried}; there are: {', '.join(map(str, names[:30]))}. Name one with text_column."
    return Problem(source.name, "no_text_column", message, row=row)


def _separator(header: str) -> str:
    """The commonest of the usual separators in the header line, comma where there is none."""
    return max(",;\t|", key=lambda c: (header.count(c), c == ","))


def _clean(row: dict[str | None, Any]) -> dict[str, Any] | ValueError:
    extra = row.pop(None, None)
    if extra:
        return ValueError(f"{len(extra)} more cells than the header has columns; is a quotation mark missing?")
    return {str(k): v for k, v in row.items()}


def _parsed(line: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            return json.loads(line)  # NaN and lone surrogates, which Python's own writer emits
        except (ValueError, RecursionError) as error:
            return ValueError(f"no JSON: {error}")
