"""Cells of the report table in a map prompt: one line a report, whatever stands in it, and the tokens of that line.

A row's tokens add up: each row ends with one line break and begins with a digit, and no tokeniser's word runs across
that border. So a selection's tokens are sums of numbers that were counted once, when the version was published.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from communitree_shared.contract.options import BatchOptions
from communitree_shared.tokens import count

if TYPE_CHECKING:
    pass


#: Stands for a line break inside a cell; one token.
BREAK = "¶"


_SEAM = f" {BREAK} "


_SEAM_UTF8 = _SEAM.encode()
#: What breaks a line or is blank for `str` but not for `bytes`, or breaks a line and is no `\n`, in ASCII.
_RARE = [bytes([code]) for code in b"\r\x0b\x0c\x1c\x1d\x1e\x1f"]


#: Rank of a report whose rating is missing: the middle of 0–10.
NEUTRAL_RANK = 5.0
#: The delimiter that a version's stored token counts are for.
DEFAULT_DELIMITER = "|"


#: A citation of rows inside a report. A digit: `[Data: to follow]` cites nothing.
_HEAD = r"\s*(?:Data|数据|資料)\s*(?::|：)"
_CITATION = re.compile(rf"\[{_HEAD}(?=[^\[\]\n]*\d)[^\[\]\n]*\]".encode(), re.IGNORECASE)
_CHINESE_CITATION = re.compile(rf"【{_HEAD}(?=(?:(?!【|】)[^\n])*?\d)(?:(?!【|】)[^\n])*】".encode(), re.IGNORECASE)
_CHINESE_OPENING = "【".encode()


def uncited(text: bytes) -> bytes:
    """Return a report's text (UTF-8) as a prompt shows it: without its own citations.

    They are a fifth of its tokens, and name rows that who reads the prompt must not cite.
    """
    text = _without(_CITATION, text) if b"[" in text else text
    return _without(_CHINESE_CITATION, text) if _CHINESE_OPENING in text else text


def _without(citation: re.Pattern[bytes], text: bytes) -> bytes:
    # Blanks before a citation go with it. As part of the pattern they would make it look at every word.
    out, last = [], 0
    for found in citation.finditer(text):
        out.append(text[last : found.start()].rstrip(b" \t"))
        last = found.end()
    return b"".join([*out, text[last:]]) if out else text


def flatten(text: str) -> str:
    """Return a text as one line: line breaks become `¶`."""
    return text.strip() if text.isprintable() else _SEAM.join(_lines(text))  # no line break is printable


def _lines(text: str) -> list[str]:
    # Looking for the rare line breaks one by one is cheap; a split at any of them takes twice as long as at `\n`.
    rare = (
        "\r" in text or "\x0b" in text or "\x0c" in text or "\x1c" in text or "\x1d" in text or "\x1e" in text
        or "\x85" in text or "\u2028" in text or "\u2029" in text
    )  # fmt: skip
    return list(filter(None, map(str.strip, text.splitlines() if rare else text.split("\n"))))


def cell(text: str, delimiter: str = DEFAULT_DELIMITER) -> str:
    """Return a text as one cell, quoted as in CSV where it holds a character of the delimiter or a quote."""
    flat = flatten(text)
    if '"' in flat or delimiter in flat or (len(delimiter) > 1 and any(c in flat for c in delimiter)):
        return '"' + flat.replace('"', '""') + '"'
    return flat


def cells(texts: Sequence[bytes], delimiter: str = DEFAULT_DELIMITER) -> list[bytes]:
    """Return what `cell` gives for each text, in UTF-8 as the texts are. ASCII, most of them, is never decoded."""
    flat = [_flat_ascii(text) if text.isascii() else _flat(text) for text in texts]
    # What few texts hold is looked for in all of them at once: that is cheaper than in one after the other.
    together = b"".join(flat)
    if any(map(together.__contains__, _RARE)):
        flat = list(map(_flat, texts))
    marks = [b'"', *(char.encode() for char in delimiter)]
    if any(map(together.__contains__, marks)):
        flat = [_quoted(text) if any(map(text.__contains__, marks)) else text for text in flat]
    return flat


def _flat(text: bytes) -> bytes:
    return flatten(text.decode()).encode()


def _flat_ascii(text: bytes) -> bytes:
    """Return the same where nothing of `_RARE` is left in it."""
    return _SEAM_UTF8.join(filter(None, map(bytes.strip, text.split(b"\n"))))


def _quoted(flat: bytes) -> bytes:
    return b'"' + flat.replace(b'"', b'""') + b'"'


def split_line(line: str, delimiter: str, columns: int) -> list[str]:
    """Return the cells of a rendered line, the inverse of `cell` and a join."""
    cells: list[str] = []
    rest = line.rstrip("\n")
    while len(cells) < columns - 1:
        if rest.startswith('"'):
            end = _closing(rest)
            cells.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 + len(delimiter) :]
        else:
            head, _, rest = rest.partition(delimiter)
            cells.append(head)
    cells.append(rest[1:-1].replace('""', '"') if rest.startswith('"') and len(rest) > 1 else rest)
    return cells


def _closing(text: str) -> int:
    at = 1
    while True:
        at = text.find('"', at)
        if at < 0:
            return len(text)
        if text[at + 1 : at + 2] != '"':
            return at
        at += 2


def weight_cell(weight: int, heaviest: int, options: BatchOptions) -> str:
    """Return a community's weight: its share of the heaviest one, or distinct text units."""
    return f"{weight / max(1, heaviest):.2f}" if options.normalize_community_weight else str(weight)


def rank_cell(rank: float) -> str:
    """Return a report's rank with at most one decimal."""
    return f"{rank:.1f}".removesuffix(".0")


def number_tokens(text: str) -> int:
    """Return the tokens of a plain number: digits go in groups of three, the point is one token."""
    whole, point, fraction = text.partition(".")
    return -(-len(whole) // 3) + (1 + -(-len(fraction) // 3) if point else 0)


def default_tokens(id: int, title: str, level: int, weight: str, rank: str, content: str, encoding: str) -> int:
    """Return the tokens of a report's row with all columns and the default delimiter."""
    parts = (str(id), cell(title), str(level), weight, rank, cell(uncited(content.encode()).decode()))
    return count(DEFAULT_DELIMITER.join(parts) + "\n", encoding)
