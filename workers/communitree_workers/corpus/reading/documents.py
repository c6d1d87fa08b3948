"""What goes into reading and what comes out: sources, documents, problems."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

from communitree_shared.errors import BadInput
from communitree_workers.corpus.disk.large_text import LargeText


@dataclass(frozen=True)
class Source:
    """A file or stored object. `open` gives a new stream from the start each time; `size` is in bytes, -1 unknown."""

    name: str
    open: Callable[[], BinaryIO]
    size: int = -1


@dataclass(frozen=True)
class Document:
    """A text with a name, as a string or, where it is large, on disk and cut like one.

    `content` is the sha256 of the text, `id` the same unless the row brought its own; `encoding` is how the bytes were
    read; `metadata` holds the wanted columns of the row.
    """

    id: str
    content: str
    title: str
    text: str | LargeText = field(repr=False)
    source: str
    encoding: str = "utf-8"
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """Something that could not be read as it stands.

    Reasons: `empty`, `binary`, `duplicate`, `unreadable`, `bad_bytes`, `bad_row`, `no_text_column`, `no_text`,
    `missing_library`, `limit` (of time, memory, or what it unpacks to). `offset` counts bytes, `row` counts from 1.
    `kept` says that a document came out all the same.
    """

    source: str
    reason: str
    message: str
    offset: int | None = None
    row: int | None = None
    kept: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the fields that say something."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def error(self) -> BadInput:
        """Return the problem as an error, for strict reading."""
        place = f", row {self.row}" if self.row is not None else ""
        place += f", byte {self.offset}" if self.offset is not None else ""
        return BadInput(
            f"{self.source}{place}: {self.message}", hint="Mend or leave out the file, or read without --strict."
        )


def document(
    text: str | LargeText,
    title: str,
    source: str,
    *,
    given_id: str = "",
    encoding: str = "utf-8",
    metadata: Any = None,
) -> Document:
    """Return a document; without an id of its own the sha256 of its text is its id."""
    if isinstance(text, LargeText):
        content = text.sha256
    else:
        try:
            raw = text.encode()
        except UnicodeEncodeError:  # lone surrogates, from JSON escapes or odd fonts: no table can hold them
            raw = text.encode("utf-8", "replace")
            text = raw.decode()
        content = hashlib.sha256(raw).hexdigest()
    wanted = {k: as_text(v) for k, v in (metadata or {}).items()}
    return Document(given_id or content, content, title, text, source, encoding, wanted)


def as_text(value: Any) -> str:
    """Return a cell's value as text: strings as they are, nothing as "", the rest as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


class Held:
    """The documents seen so far, by content and by id."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def add(self, document: Document) -> Document | Problem:
        """Return the document, or the problem that it, or another with its id, is held already."""
        for key, what in ((document.content, "the same text as"), (document.id, "another text under the id of")):
            if key in self._titles:
                message = f"{document.title} is {what} {self._titles[key]}, which is kept"
                return Problem(document.source, "duplicate", message)
        self._titles[document.content] = self._titles[document.id] = document.title
        return document
