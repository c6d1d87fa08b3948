"""Files below what a caller points at: folders and patterns walked, links kept inside, nothing opened but plain files.

A folder may be another's: a link in it may name any file that the caller can read, and a FIFO in it holds up who opens
it. So a link is followed only where it stays inside, unless the caller says otherwise.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from communitree_shared.contract.graph_files import is_readable
from communitree_shared.errors import UsageError

#: Ends of file names that are never text or tables; reading and uploading them would only cost time.
_NEVER = frozenset(
    (
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico", ".ttf", ".otf", ".woff", ".woff2"),
        *(".mp3", ".wav", ".flac", ".ogg", ".mp4", ".mkv", ".mov", ".avi"),
        *(".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".whl", ".jar"),
        *(".exe", ".dll", ".so", ".dylib", ".o", ".a", ".class", ".pyc", ".sqlite", ".db"),
    )
)

#: Reasons for leaving a file out that are words of this module.
HIDDEN, NO_TABLE, LOOP = "hidden", "no graph table", "a link back to a folder that was read already"
OUTSIDE = "a link out of the folder, which --follow-links follows"
NOT_REGULAR = "a device, socket or pipe, not a file"


@dataclass(frozen=True)
class Skipped:
    """One file or folder that is not uploaded, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Found:
    """One file: its name in the corpus, the name of the folder it was found in, where it is."""

    name: str
    origin: str
    path: Path


class NotRegular(OSError):
    """A device, a socket or a pipe."""

    def __init__(self) -> None:
        super().__init__(None, NOT_REGULAR)


def open_regular(path: Path) -> BinaryIO:
    """Open a file of bytes; what is opened is what is looked at, whoever changes the folder meanwhile.

    Raises:
        NotRegular: it is none; a pipe is not waited for. OSError: it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # opening a device may do things
        raise NotRegular
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular
    return os.fdopen(descriptor, "rb")


def find(source: str, skipped: list[Skipped], *, tables: bool, follow_links: bool) -> Iterator[Found]:
    """Yield the files of a file, a folder or a pattern in order; add what is left out, and why, to `skipped`.

    What the caller names is read whatever it is a link to; links below it are followed where they stay inside (of a
    pattern: inside the folder before its first wildcard).

    Args:
        source: what the caller gave.
        skipped: is added to.
        tables: only files that can hold graph tables.
        follow_links: also links that lead out.

    Raises:
        UsageError: there is no such source.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        yield from _walk(path, skipped, tables, follow_links)
        return
    if path.exists():
        yield Found(path.name, path.resolve().parent.name, path)
        return
    if glob.has_magic(source):
        yield from _matching(os.path.expanduser(source), skipped, follow_links)
        return
    raise UsageError(f"There is no file or folder {source!r}.", hint="Give files, folders, patterns, or - for stdin.")


def _matching(pattern: str, skipped: list[Skipped], follow_links: bool) -> Iterator[Found]:
    found = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]
    base = Path(os.path.commonpath([str(match.parent) for match in found])) if found else Path()
    plain = Path(*_before_magic(pattern))
    for match in found:
        name = match.relative_to(base).as_posix()
        if not follow_links and _leads_out(match, plain):
            skipped.append(Skipped(name, OUTSIDE))
        elif not match.is_dir():
            yield Found(name, base.resolve().name, match)


def _before_magic(pattern: str) -> Iterator[str]:
    for part in Path(pattern).parts[:-1]:
        if glob.has_magic(part):
            return
        yield part


def _walk(top: Path, skipped: list[Skipped], tables: bool, follow_links: bool) -> Iterator[Found]:
    visited: set[tuple[int, int]] = set()
    origin = top.resolve().name

    def denied(error: OSError) -> None:
        skipped.append(Skipped(_relative(Path(error.filename), top), f"unreadable ({error.strerror})"))

    for folder, folders, files in os.walk(top, followlinks=True, onerror=denied):
        here = os.stat(folder)
        if (here.st_dev, here.st_ino) in visited:
            skipped.append(Skipped(_relative(Path(folder), top), LOOP))
            folders.clear()
            continue
        visited.add((here.st_dev, here.st_ino))
        names = (*folders, *files)
        left = {name: OUTSIDE for name in names if not follow_links and _leads_out_here(Path(folder, name), top)}
        left |= {name: HIDDEN for name in names if name.startswith(".")}
        folders[:] = sorted(set(folders) - left.keys())
        for name in sorted(set(files) - left.keys()):
            path = Path(folder, name)
            suffix = PurePosixPath(name.lower()).suffix
            if tables and not is_readable(name):
                left[name] = NO_TABLE
            elif suffix in _NEVER:
                left[name] = f"a {suffix} file has no text"
            else:
                yield Found(_relative(path, top), origin, path)
        skipped.extend(Skipped(_relative(Path(folder, name), top), why) for name, why in sorted(left.items()))


def _leads_out_here(path: Path, top: Path) -> bool:
    """Say whether this is a link that leads out; what is above it was looked at before."""
    return path.is_symlink() and _leads_out(path, top)


def _leads_out(path: Path, top: Path) -> bool:
    with suppress(OSError, RuntimeError):  # a loop of links: a link to nothing
        return path.exists() and not path.resolve().is_relative_to(top.resolve())
    return False


def _relative(path: Path, top: Path) -> str:
    return os.fsencode(path.relative_to(top).as_posix()).decode("utf-8", "replace")
