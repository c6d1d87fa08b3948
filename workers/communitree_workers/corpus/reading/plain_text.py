"""Plain text, Markdown and HTML."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from communitree_shared.contract.options import ReadOptions
from communitree_shared.encodings import Detected, detect
from communitree_workers.corpus.disk.large_text import LargeText
from communitree_workers.corpus.reading.documents import Document, Problem, Source, document
from communitree_workers.corpus.reading.html_pages import html_to_text

#: A larger file becomes no string: that may take four bytes a character.
_LARGE = 16 * 2**20
#: Characters read at a time then.
_PIECE = 1 << 20
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_ENCODED_XML = re.compile(rb"^\s*<\?xml[^>]{0,100}encoding\s*=\s*[\"']([\w-]+)")


def read_text(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the one document of a text file; its line ends become `\\n`."""
    yield from _one(source, html=False)


def read_html(source: Source, options: ReadOptions) -> Iterator[Document | Problem]:
    """Yield the one document of an HTML file: its visible text."""
    yield from _one(source, html=True)


def opened(source: Source, declared: str = "") -> tuple[io.TextIOWrapper | None, Detected, list[Problem]]:
    """Open a source as text: the stream (None: not text), what it was taken for, and what is to be said about it."""
    with source.open() as stream:
        found = detect(stream, declared)
    if not found.encoding:
        return None, found, [Problem(source.name, "binary", "this is no text in any encoding known here")]
    problems = []
    if found.bad_offset is not None:
        message = f"bytes that are not {found.encoding} were replaced by U+FFFD, the first at byte {found.bad_offset}"
        problems.append(Problem(source.name, "bad_bytes", message, offset=found.bad_offset, kept=True))
    stream = source.open()
    return io.TextIOWrapper(stream, encoding=found.encoding, errors="replace", newline=None), found, problems


def _one(source: Source, *, html: bool) -> Iterator[Document | Problem]:
    wrapper, found, problems = opened(source, _declared(source) if html else "")
    yield from problems
    if wrapper is None:
        return
    with wrapper:
        if source.size > _LARGE and not html:
            text: str | LargeText = LargeText(iter(lambda: wrapper.read(_PIECE), ""))
        else:
            text = html_to_text(wrapper.read()) if html else wrapper.read()
    if not text or text.isspace():
        yield Problem(source.name, "empty", "there is no text in it")
        return
    yield document(text, source.name, source.name, encoding=found.encoding)


def _declared(source: Source) -> str:
    with source.open() as stream:
        head = stream.read(4096)
    match = _CHARSET.search(head) or _ENCODED_XML.search(head)
    return match.group(1).decode("ascii") if match else ""
