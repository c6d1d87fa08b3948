"""Which encoding a file of text has, found without a library and said with the place of bad bytes.

Order: byte order mark, strict UTF-8, UTF-16 without a mark, UTF-8 with a few bad bytes, GB18030, Windows-1252/Latin-1.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import BinaryIO

_BLOCK = 1 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UTF8_PAIR = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
#: Both bytes high: where nearly all Chinese text in GB encodings lies, and where accented Latin hardly ever is.
_GB_PAIR = re.compile(rb"(?:[\xa1-\xa9\xb0-\xf7][\xa1-\xfe])+")
#: What hardly stands in text: controls, rare scripts, private use, and what is no character.
_UNLIKELY = re.compile(
    r"[^\t\n\r\f\x20-\x7e\u00a0-\u024f\u0370-\u052f\u2000-\u206f\u20a0-\u22ff\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]"
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True)
class Detected:
    """An encoding that Python knows; `bad_offset` is the first byte that is no part of it; "" means binary."""

    encoding: str
    bad_offset: int | None = None


def detect(stream: BinaryIO, declared: str = "") -> Detected:
    """Read a stream once, block by block, and tell its encoding.

    `declared` (a `<meta charset>`) decides only where UTF-8 does not fit.
    """
    head = stream.read(_BLOCK)
    for mark, name in _MARKS:
        if head.startswith(mark):
            # Python's utf-8-sig decoder counts offsets from after the mark; as plain UTF-8 the mark is a character.
            found = _checked(head, stream, name.removesuffix("-sig"))
            return Detected(name, found.bad_offset)
    found = _checked(head, stream, "utf-8")
    if found.bad_offset is None and len(_CONTROL.findall(head)) <= len(head) * 0.01:
        return found
    if b"\x00" in head:
        return Detected(_utf16(head[: 1 << 16]))
    return Detected("") if found.bad_offset is None else _legacy(head, found, declared)


def _checked(head: bytes, stream: BinaryIO, encoding: str) -> Detected:
    """Decode everything and throw it away: a file of any size is checked in the memory of one block."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    done, block = 0, head
    while True:
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            return Detected(encoding, max(0, done - pending) + error.start)
        if not block:
            return Detected(encoding)
        done += len(block)
        block = stream.read(_BLOCK)


def _legacy(sample: bytes, utf8: Detected, declared: str) -> Detected:
    if utf8.bad_offset is not None and utf8.bad_offset > len(sample) - 4:
        return utf8  # a mebibyte of good UTF-8 before the first bad byte
    high = len(_HIGH.findall(sample))
    good = sum(map(len, _UTF8_PAIR.findall(sample)))
    if high and good / high > 0.9:
        return utf8
    if declared:
        try:
            return Detected(codecs.lookup(declared).name)
        except LookupError:
            pass
    if len(_CONTROL.findall(sample)) > len(sample) * 0.02:
        return Detected("")
    pairs = sum(map(len, _GB_PAIR.findall(sample)))
    if pairs / high > 0.8:
        return Detected("gb18030")
    if high > len(sample) * 0.4:
        return Detected("")
    windows = re.search(rb"[\x80-\x9f]", sample) and not re.search(rb"[\x81\x8d\x8f\x90\x9d]", sample)
    return Detected("cp1252" if windows else "latin-1")


def _utf16(sample: bytes) -> str:
    """Tell UTF-16 without a mark from programs and pictures by reading it both ways."""
    best, least = "", 0.02
    for name in ("utf-16-le", "utf-16-be"):
        text = sample[: len(sample) // 2 * 2].decode(name, "replace")
        strange = len(_UNLIKELY.findall(text)) / max(1, len(text))
        if strange < least:
            best, least = name, strange
    return best
