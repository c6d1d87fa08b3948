"""How the reading process and its parent talk: frames of JSON over pipes, and the limits that both keep.

JSON, not pickles: what comes back was made while a stranger's file was read.
"""

from __future__ import annotations

import json
import struct
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
    try:
        data = orjson.dumps(value)
    except TypeError:  # lone surrogates, as in a title from JSON
        data = json.dumps(value).encode()
    return HEAD.pack(len(data)) + data


def parsed(data: bytearray) -> Any:
    """Return the value of a frame, without its head."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def packed(item: Document | Problem) -> dict[str, Any]:
    """Return what was read as JSON; the text of a document is a string."""
    return {"document" if isinstance(item, Document) else "problem": vars(item)}


def unpacked(value: dict[str, Any]) -> Document | Problem:
    """Return what `packed` was given."""
    if "document" in value:
        return Document(**value["document"])
    return Problem(**value["problem"])
