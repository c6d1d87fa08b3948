"""A small real corpus that is on every machine: topics of CPython's language reference."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics


def write_topics(folder: Path, number: int = 12) -> Path:
    """Write so many topics, one a file, into a new folder."""
    folder.mkdir(parents=True)
    for name in sorted(topics)[:number]:
        (folder / f"{name}.txt").write_text(topics[name], encoding="utf-8")
    return folder
