"""How the reading process and its parent talk: frames of JSON over pipes, and the limits that both keep.

JSON, not pickles: what comes back was made while a stranger's file was read.
"""

from __future__ import annotations

import struct
from dataclasses import asdict
from typing import Any

import orjson

from communitree_workers.corpus.reading.documents import Document, Problem

#: Length of a frame in front of it.
HEAD = struct.Struct("<I")
#: In place of an item: the file was read to its end.
END: dict[str, Any] = {"end": True}

_MIB = 2**20


def seconds_for(size: int) -> float:
    """Return how long a file of `size` bytes may be read for."""
    return 30.0 + 10.0 * size / _MIB


def memory_for(size: int) -> int:
    """Return how many bytes of memory a file of `size` bytes may take: a JSON file is in memory as a whole."""
    return 512 * _MIB + 20 * size


def output_for(size: int) -> int:
    """Return how many bytes a file of `size` bytes may unpack to, all its documents together."""
    return 64 * _MIB + 100 * size


def frame(value: Any) -> bytes:
    """Return a value as a frame."""
    data = orjson.dumps(value)
    return HEAD.pack(len(data)) + data


def packed(item: Document | Problem) -> dict[str, Any]:
    """Return what was read as JSON; the text of a document is a string."""
    return {"document" if isinstance(item, Document) else "problem": asdict(item)}


def unpacked(value: dict[str, Any]) -> Document | Problem:
    """Return what `packed` was given."""
    if "document" in value:
        return Document(**value["document"])
    return Problem(**value["problem"])
