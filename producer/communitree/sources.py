"""What a caller points at → the files to upload. The client reads bytes only; workers parse.

Nothing is left out in silence: whatever is not uploaded is a `Skipped` with its reason.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from communitree.finding import HIDDEN, LOOP, NO_TABLE, NOT_REGULAR, Found, NotRegular, Skipped, find, open_regular
from communitree_shared.contract.graph_files import never_read
from communitree_shared.contract.messages import LeftOut
from communitree_shared.encodings import detect
from communitree_shared.errors import BadInput, UsageError

#: Reasons that are rules: nothing is wrong with such files, and `--strict` does not mind them.
_UNREAD = "no table that is read beside a table of relationships"
_EMPTY = "empty"
_RULES = frozenset((HIDDEN, NO_TABLE, LOOP, _UNREAD))

#: Read in another way than as text; of an HTML file only its whole head says how.
_NOT_PLAIN = (".parquet", ".docx", ".pdf", ".html", ".htm", ".xhtml")

#: So much of a file tells whether it is text.
_HEAD = 1 << 20

#: A request names so many files of each reason, and counts the others.
_NAMED = 100

#: Standard input as a source.
STDIN = "-"


@dataclass(frozen=True)
class Document:
    """One file to upload: at `path`, or `data` where it came through standard input."""

    name: str
    sha256: str
    size: int
    path: Path | None = None
    data: bytes = field(default=b"", repr=False)

    def listed(self) -> dict[str, object]:
        """Return what the job's request says of it."""
        return {"name": self.name, "sha256": self.sha256, "size": self.size}


@dataclass
class Gathered:
    """All files of all sources, in order of their names."""

    documents: list[Document] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of all files, each content counted once."""
        return sum({d.sha256: d.size for d in self.documents}.values())

    def left_out(self) -> list[LeftOut]:
        """Return what the job's request says of what is not uploaded: an entry for each reason."""
        by_reason: dict[str, list[str]] = {}
        for skipped in self.skipped:
            name = os.fsencode(skipped.name).decode("utf-8", "replace")  # no request could hold bytes of another kind
            by_reason.setdefault(skipped.reason, []).append(name)
        return [
            LeftOut(reason=reason, count=len(names), names=names[:_NAMED], by_rule=reason in _RULES)
            for reason, names in by_reason.items()
        ]

    def warnings(self) -> list[str]:
        """Return one sentence for each reason, with the first few names."""
        return [entry.line(5) for entry in self.left_out()]

    def refuse_losses(self, strict: bool = True) -> None:
        """Do what strict reading asks for, where it is strict.

        Raises:
            BadInput: a file is left out, not by a rule (hidden files, what is no graph table) but because it cannot
                be read or has no text.
        """
        lost = [entry.line(5) for entry in self.left_out() if not entry.by_rule]
        if lost and strict:
            raise BadInput(f"{'; '.join(lost)}.", hint="Mend or leave out the files, or read without --strict.")


def gather(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    tables: bool = False,
    max_bytes: int | None = None,
    follow_links: bool = False,
) -> Gathered:
    """Find and hash the files of files, folders, patterns (`docs/**/*.md`) and `-` (standard input).

    A folder is walked with the links that stay in it; a loop of links ends where it closes. Hidden files, links that
    lead out, what is no plain file, and what is never text or no text by its first bytes is skipped; empty and
    unreadable files too. Files of equal content are all listed (the job says which were the same) and uploaded once.

    Args:
        sources: what the caller gave, one or several.
        tables: only files that can hold graph tables.
        max_bytes: refuse more than this.
        follow_links: also links that lead out of the folder that they are in.

    Raises:
        UsageError: a source does not exist, nothing can be read, or it is too much.
    """
    gathered = Gathered()
    taken: dict[str, str] = {}
    bytes_left = most = sys.maxsize - 1 if max_bytes is None else max_bytes
    names = [os.fspath(s) for s in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    for source in names:
        before = len(gathered.documents) + len(gathered.skipped)
        for document, origin, place in _documents(source, gathered.skipped, tables, follow_links, most):
            if taken.get(document.name) == place:
                continue  # the same file by two patterns
            if document.name in taken:
                document = replace(document, name=f"{origin}/{document.name}")
            taken[document.name] = place
            bytes_left -= document.size
            if bytes_left < 0:
                raise UsageError(
                    f"The sources have more than {max_bytes:,} bytes.",
                    hint="Index parts of them as corpora of their own, or raise COMMUNITREE_MAX_UPLOAD_BYTES.",
                )
            gathered.documents.append(document)
        if len(gathered.documents) + len(gathered.skipped) == before:
            gathered.skipped.append(Skipped(source, "no files in it"))
    if tables:
        _leave_unread(gathered)
    gathered.documents.sort(key=lambda d: d.name)
    if not gathered.documents:
        raise UsageError(
            f"Nothing can be read from {', '.join(names) or 'no source'}: "
            f"{'; '.join(gathered.warnings()) or 'no files'}.",
            hint="Give files, folders, patterns in quotes, or - for standard input"
            + (" (graph tables: parquet, csv, tsv, json or jsonl)." if tables else "."),
        )
    return gathered


def _leave_unread(gathered: Gathered) -> None:
    unread = never_read([document.name for document in gathered.documents])
    gathered.documents = [document for document in gathered.documents if document.name not in unread]
    gathered.skipped += [Skipped(name, _UNREAD) for name in sorted(unread)]


def _documents(
    source: str, skipped: list[Skipped], tables: bool, follow_links: bool, most: int
) -> Iterator[tuple[Document, str, str]]:
    """Yield (document, name of its source, where it is) of all that can be read."""
    if source == STDIN:
        data = sys.stdin.buffer.read(most + 1)  # more is too much, however much
        if data:
            yield Document("stdin.txt", hashlib.sha256(data).hexdigest(), len(data), data=data), "stdin", STDIN
        else:
            skipped.append(Skipped("stdin.txt", _EMPTY))
        return
    for found in find(source, skipped, tables=tables, follow_links=follow_links):
        document = _read(found, most, skipped)
        if document is not None:
            yield document, found.origin, str(found.path)


def _read(found: Found, most: int, skipped: list[Skipped]) -> Document | None:
    """Return a file as a document, None where it is skipped. Of more than `most` bytes only the next few are read."""
    name = unicodedata.normalize("NFC", os.fsencode(found.name).decode("utf-8", "replace"))
    try:
        with open_regular(found.path) as file:
            block = file.read(_HEAD)
            if not name.lower().endswith(_NOT_PLAIN) and not detect(io.BytesIO(block)).encoding:
                skipped.append(Skipped(name, "no text in any encoding known here"))
                return None
            digest, size = hashlib.sha256(block), len(block)
            while block and size <= most:
                block = file.read(_HEAD)
                digest.update(block)
                size += len(block)
    except NotRegular:
        skipped.append(Skipped(name, NOT_REGULAR))
        return None
    except OSError as error:
        broken = found.path.is_symlink() and not found.path.exists()
        skipped.append(Skipped(name, "a link to nothing" if broken else f"unreadable ({error.strerror or error})"))
        return None
    if not size:
        skipped.append(Skipped(name, _EMPTY))
        return None
    return Document(name, digest.hexdigest(), size, found.path)
