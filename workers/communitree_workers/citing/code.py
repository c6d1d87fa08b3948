"""Where code stands in Markdown: spans between backticks, and fenced blocks."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t]{0,3}(```+|~~~+)[^`\n]*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_TICKS = re.compile(r"`+|\n[^\S\n]*\n")


def code_spans(text: str) -> list[tuple[int, int, bool]]:
    """Return `(start, end, closed)` of each piece of code in order, marks included; an open fence runs to the end.

    A span ends with as many backticks as it began with, in the same paragraph; others are plain characters.
    """
    blocks: list[tuple[int, int, bool]] = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]):
            blocks.append((opened.start(), match.end(), True))
            opened = None
    if opened is not None:
        blocks.append((opened.start(), len(text), False))
    out: list[tuple[int, int, bool]] = []
    at = 0
    for block in [*blocks, (len(text), len(text), True)]:
        out += _inline(text, at, block[0])
        if block[0] < len(text):
            out.append(block)
        at = block[1]
    return out


def unsettled_code(text: str) -> int:
    """Return where the first piece of code begins that what follows the text may end, or make longer."""
    if "`" not in text and "~" not in text:
        return len(text)
    spans = code_spans(text)
    at = min((start for start, end, closed in spans if not closed or end == len(text)), default=len(text))
    place = 0
    low = max((match.end() for match in _PARAGRAPH.finditer(text)), default=0)
    for match in re.finditer("`+|^[ \t]{0,3}~+", text[low:at], re.MULTILINE):
        start = low + match.start()
        while place < len(spans) and spans[place][1] <= start:
            place += 1
        if place == len(spans) or start < spans[place][0]:
            return start
    return at


def _inline(text: str, start: int, end: int) -> list[tuple[int, int, bool]]:
    out: list[tuple[int, int, bool]] = []
    paragraph: list[tuple[int, int]] = []
    for match in _TICKS.finditer(text, start, end):
        if match[0][0] == "\n":
            out += _pairs(paragraph)
            paragraph = []
        else:
            paragraph.append(match.span())
    return out + _pairs(paragraph)


def _pairs(runs: list[tuple[int, int]]) -> list[tuple[int, int, bool]]:
    """Pair runs of equal length, the next one of each: from the end, so that each run is looked at once."""
    following: dict[int, int] = {}
    partner = [-1] * len(runs)
    for i in range(len(runs) - 1, -1, -1):
        size = runs[i][1] - runs[i][0]
        partner[i] = following.get(size, -1)
        following[size] = i
    out, i = [], 0
    while i < len(runs):
        if partner[i] >= 0:
            out.append((runs[i][0], runs[partner[i]][1], True))
            i = partner[i]
        i += 1
    return out
