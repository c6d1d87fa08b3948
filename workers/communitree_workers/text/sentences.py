"""Sentences of a text as character spans, English and Chinese, prose and documentation.

A span never splits a quotation from its closing mark, an abbreviation from its name or a wrapped line from the next.
"""

from __future__ import annotations

import re

_CLOSING = "\"'”’」』）》)\\]"
_BOUNDARY = re.compile(
    rf"(?P<dot>[.!?]+[{_CLOSING}]*)(?=\s)"
    rf"|(?P<cjk>[。！？；…]+[{_CLOSING}]*)"
    r"|(?P<gap>\n[ \t\r\u3000]*\n|\u3000\u3000+|\n(?=[ \t\u3000]*(?:[-*•·+]|\d{1,3}[.)、]|#{1,6}|[>|])[ \t]))"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|Mt|Gen|Col|Capt|Lt|Sgt|Rep|Sen|Gov|Rev|Hon|Pres|No|Nos"
    r"|Fig|Figs|Eq|Sec|Ch|Vol|vol|pp|p|ed|eds|al|vs|cf|viz|e\.g|i\.e|a\.m|p\.m|U\.S|U\.K|U\.N|Inc|Ltd|Co|Corp|Jan|Feb"
    r"|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|approx|etc)\.$"
)
#: A heading of Markdown, with its marks.
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+\S[^\n]*$", re.M)
_NEXT = re.compile(r"\S")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of each sentence, ascending, not overlapping, without surrounding white space.

    Every character that is no white space lies in exactly one span. A line break inside a paragraph ends no sentence;
    an empty line, two full-width spaces or a list item does, and a Markdown heading is a line of its own.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for heading in _HEADING.finditer(text) if "#" in text else ():
        _add_all(spans, text, start, heading.start())
        _add_all(spans, text, *heading.span())
        start = heading.end()
    _add_all(spans, text, start, len(text))
    return spans


def _add_all(spans: list[tuple[int, int]], text: str, start: int, stop: int) -> None:
    """Add the sentences of a part of a text that holds no heading, or of a heading."""
    for match in _BOUNDARY.finditer(text, start, stop):
        end = match.end() if match.lastgroup != "gap" else match.start()
        if match.lastgroup == "dot" and _goes_on(text, match):
            continue
        _add(spans, text, start, end)
        start = end
    _add(spans, text, start, stop)


def clip(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, cut at a space where one is near, marked where it was cut."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:，；：、") + "…"


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _goes_on(text: str, match: re.Match[str]) -> bool:
    following = _NEXT.search(text, match.end())
    if following is None or "\n\n" in text[match.end() : following.start()]:
        return False
    if following.group().islower():
        return True
    return match.group() == "." and _ABBREVIATION.search(text, max(0, match.start() - 12), match.end()) is not None


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    stripped = piece.lstrip()
    if not stripped:
        return
    first = start + len(piece) - len(stripped)
    spans.append((first, first + len(stripped.rstrip())))
