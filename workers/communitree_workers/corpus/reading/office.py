"""Word and PDF files, by libraries of the `documents` extra."""

from __future__ import annotations

import importlib
import io
import zipfile
from collections.abc import Iterator
from typing import Any

from communitree_shared.contract.options import ReadOptions
from communitree_workers.corpus.reading.documents import Document, Problem, Source, document

#: A Word file is a zip archive: a few kilobytes may unpack to anything.
MAX_UNPACKED = 256 * 2**20


def read_docx(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the one document of a Word file: paragraphs and tables in their order, table cells apart by tabs."""
    docx = _library("docx", "python-docx", source)
    with source.open() as stream:
        data = stream.read()
    unpacked = sum(part.file_size for part in zipfile.ZipFile(io.BytesIO(data)).infolist())
    if unpacked > MAX_UNPACKED:
        said = f"it would unpack to {unpacked:,} bytes; {MAX_UNPACKED:,} are read at most"
        yield Problem(source.name, "unreadable", said)
        return
    file = docx.Document(io.BytesIO(data))
    parts = []
    for block in file.iter_inner_content():
        if hasattr(block, "rows"):
            parts.append("\n".join("\t".join(cell.text.strip() for cell in row.cells) for row in block.rows))
        else:
            parts.append(block.text)
    yield from _whole(source, "\n\n".join(part for part in parts if part.strip()), "the file holds no text")


def read_pdf(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the one document of a PDF file, its pages apart by empty lines. A page that fails is named."""
    pypdf = _library("pypdf", "pypdf", source)
    with source.open() as stream:
        file = pypdf.PdfReader(io.BytesIO(stream.read()))
    if file.is_encrypted and not file.decrypt(""):
        yield Problem(source.name, "unreadable", "the file is protected by a password")
        return
    parts: list[str] = []
    for number, page in enumerate(file.pages, 1):
        try:
            parts.append(page.extract_text() or "")
        except Exception as error:  # a damaged page: pypdf raises many kinds
            yield Problem(source.name, "unreadable", f"page {number}: {error}"[:500], row=number, kept=True)
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    yield from _whole(source, text, f"none of its {len(file.pages)} pages holds text (scanned images need OCR first)")


def _whole(source: Source, text: str, nothing: str) -> Iterator[Document | Problem]:
    text = text.strip()
    if not text:
        yield Problem(source.name, "no_text", nothing)
    else:
        yield document(text, source.name, source.name)


def _library(module: str, package: str, source: Source) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"reading {source.name} needs {package}; install the extra: pip install 'communitree[documents]'"
        ) from None
