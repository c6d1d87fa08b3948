"""What a caller points at → the files to upload. The client reads bytes only; workers parse.

Nothing is left out in silence: whatever is not uploaded is a `Skipped` with its reason.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from communitree_shared.contract.messages import LeftOut
from communitree_shared.errors import BadInput, UsageError

#: Ends of file names that are never text or tables; reading and uploading them would only cost time.
_NEVER = frozenset(
    (
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico", ".ttf", ".otf", ".woff", ".woff2"),
        *(".mp3", ".wav", ".flac", ".ogg", ".mp4", ".mkv", ".mov", ".avi"),
        *(".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".whl", ".jar"),
        *(".exe", ".dll", ".so", ".dylib", ".o", ".a", ".class", ".pyc", ".sqlite", ".db"),
    )
)

#: What graph tables are kept in.
_TABLES = frozenset((".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson"))

#: Reasons that are rules: nothing is wrong with such files, and `--strict` does not mind them.
_HIDDEN, _NO_TABLE, _LOOP = "hidden", "no graph table", "a link back to a folder that was read already"
_RULES = frozenset((_HIDDEN, _NO_TABLE, _LOOP))

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


@dataclass(frozen=True)
class Skipped:
    """One file or folder that is not uploaded, and why."""

    name: str
    reason: str


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

    def refuse_losses(self) -> None:
        """Do what strict reading asks for.

        Raises:
            BadInput: a file is left out, not by a rule (hidden files, what is no graph table) but because it cannot
                be read or has no text.
        """
        lost = [entry.line(5) for entry in self.left_out() if not entry.by_rule]
        if lost:
            raise BadInput(f"{'; '.join(lost)}.", hint="Mend or leave out the files, or read without --strict.")


def gather(
    sources: Sequence[str | os.PathLike[str]], *, tables: bool = False, max_bytes: int | None = None
) -> Gathered:
    """Find and hash the files of files, folders, patterns (`docs/**/*.md`) and `-` (standard input).

    A folder is walked with its links; a loop of links ends where it closes. Hidden files, and files of kinds that are
    never text, are skipped; empty and unreadable ones too. Files of equal content are all listed (the job says which
    were the same) and uploaded once.

    Args:
        sources: what the caller gave.
        tables: only files that can hold graph tables.
        max_bytes: refuse more than this.

    Raises:
        UsageError: a source does not exist, nothing can be read, or it is too much.
    """
    gathered = Gathered()
    taken: dict[str, str] = {}
    bytes_left = sys.maxsize if max_bytes is None else max_bytes
    for source in sources:
        before = len(gathered.documents) + len(gathered.skipped)
        for name, origin, path in _files(os.fspath(source), gathered.skipped, tables):
            document = _read(name, path, gathered.skipped)
            if document is None:
                continue
            if taken.get(document.name) == str(path):
                continue  # the same file by two patterns
            if document.name in taken:
                document = replace(document, name=f"{origin}/{document.name}")
            taken[document.name] = str(path)
            gathered.documents.append(document)
            bytes_left -= document.size
            if bytes_left < 0:
                raise UsageError(
                    f"The sources have more than {max_bytes:,} bytes.",
                    hint="Index parts of them as corpora of their own, or raise COMMUNITREE_MAX_UPLOAD_BYTES.",
                )
        if len(gathered.documents) + len(gathered.skipped) == before:
            gathered.skipped.append(Skipped(os.fspath(source), "no files in it"))
    gathered.documents.sort(key=lambda d: d.name)
    if not gathered.documents:
        raise UsageError(
            f"Nothing can be read from {', '.join(os.fspath(s) for s in sources) or 'no source'}: "
            f"{'; '.join(gathered.warnings()) or 'no files'}.",
            hint="Give files, folders, patterns in quotes, or - for standard input"
            + (" (graph tables: parquet, csv, tsv, json or jsonl)." if tables else "."),
        )
    return gathered


def _files(source: str, skipped: list[Skipped], tables: bool) -> Iterator[tuple[str, str, Path | None]]:
    """Yield (name, name of its source, path) of each file; the path is None for standard input."""
    if source == STDIN:
        yield "stdin.txt", "stdin", None
        return
    path = Path(source).expanduser()
    if path.is_dir():
        yield from ((name, path.resolve().name, file) for name, file in _walk(path, skipped, tables))
        return
    if path.exists():
        yield path.name, path.resolve().parent.name, path
        return
    if glob.has_magic(source):
        found = sorted(glob.glob(os.path.expanduser(source), recursive=True))
        base = Path(os.path.commonpath([str(Path(f).parent) for f in found])) if found else Path()
        for match in map(Path, found):
            if match.is_file():
                yield match.relative_to(base).as_posix(), base.resolve().name, match
        return
    raise UsageError(f"There is no file or folder {source!r}.", hint="Give files, folders, patterns, or - for stdin.")


def _walk(top: Path, skipped: list[Skipped], tables: bool) -> Iterator[tuple[str, Path]]:
    visited: set[tuple[int, int]] = set()

    def denied(error: OSError) -> None:
        skipped.append(Skipped(_relative(Path(error.filename), top), f"unreadable ({error.strerror})"))

    for folder, folders, files in os.walk(top, followlinks=True, onerror=denied):
        here = os.stat(folder)
        if (here.st_dev, here.st_ino) in visited:
            skipped.append(Skipped(_relative(Path(folder), top), _LOOP))
            folders.clear()
            continue
        visited.add((here.st_dev, here.st_ino))
        hidden = [name for name in folders if name.startswith(".")]
        folders[:] = sorted(set(folders) - set(hidden))
        for name in sorted(files):
            path = Path(folder, name)
            relative = _relative(path, top)
            suffix = PurePosixPath(name.lower()).suffix
            if name.startswith("."):
                hidden.append(name)
            elif tables and suffix not in _TABLES:
                skipped.append(Skipped(relative, _NO_TABLE))
            elif suffix in _NEVER:
                skipped.append(Skipped(relative, f"a {suffix} file has no text"))
            else:
                yield relative, path
        skipped.extend(Skipped(_relative(Path(folder, name), top), _HIDDEN) for name in sorted(hidden))


def _read(name: str, path: Path | None, skipped: list[Skipped]) -> Document | None:
    name = unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))
    try:
        if path is None:
            data = sys.stdin.buffer.read()
            document = Document(name, hashlib.sha256(data).hexdigest(), len(data), data=data)
        elif not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
            skipped.append(Skipped(name, "not a regular file"))
            return None
        else:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                document = Document(name, digest, file.tell(), path)
    except OSError as error:
        broken = path is not None and path.is_symlink() and not path.exists()
        skipped.append(Skipped(name, "a link to nothing" if broken else f"unreadable ({error.strerror or error})"))
        return None
    if not document.size:
        skipped.append(Skipped(name, "empty"))
        return None
    return document


def _relative(path: Path, top: Path) -> str:
    relative = path.relative_to(top).as_posix()
    return os.fsencode(relative).decode("utf-8", "replace")
