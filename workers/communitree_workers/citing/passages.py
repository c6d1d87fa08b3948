"""The parts of an answer with what each cites: a citation belongs to the text before it, back to the one before.

In a list or a table a row without a citation belongs to the next row that has one, or to the last: models cite a table
below it, and a list in the words that lead to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from communitree_workers.text.sentences import sentence_spans

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n+")
_ROW = re.compile(r"[ \t]*(?:[-*•+·|>]|\d{1,3}[.)、]|（?[一二三四五六七八九十]{1,3}[、）])")
_RULE = re.compile(r"[\s|:\-–—*_]*")
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t].*|\*\*[^*\n]+\*\*[:：]?[ \t]*)")
_ENDED = re.compile(r"[.!?。！？:：;；][\"'”’」）)\]*_]*\s*\Z")
#: The importance that stands before a point in a prompt; models copy it.
_IMPORTANCE = re.compile(r"\A\s*\(\d{1,3}\)\s+")
#: So much text before a passage says what "it" and "the bank" are.
_AROUND = 300


class Cited(NamedTuple):
    """A citation in a text: its place, and the ids that it names."""

    start: int
    end: int
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Passage:
    """A part of an answer. `sentences`: without references; `around`: the heading, and what stands before it."""

    sentences: tuple[str, ...]
    ids: tuple[int, ...]
    around: str = ""

    @property
    def text(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)


def passages(text: str, cited: Sequence[Cited]) -> list[Passage]:
    """Return the parts of a text in order; `ids` is empty where nothing is cited."""
    out: list[Passage] = []
    heading, at = "", 0
    for start, end in _blocks(text):
        inside = []
        while at < len(cited) and cited[at].start < end:
            if cited[at].start >= start:
                inside.append(cited[at])
            at += 1
        block, heading = _block(text, start, end, inside, heading)
        if len(block) == 1 and not block[0].sentences:  # nothing but a citation: it belongs to what stands above
            _inherit(out, block[0].ids)
            continue
        out += block
    return out


def _inherit(out: list[Passage], ids: tuple[int, ...]) -> None:
    i = len(out) - 1
    while i >= 0 and not out[i].ids:
        out[i] = replace(out[i], ids=ids)
        i -= 1


def _blocks(text: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for match in [*_BLANK_LINE.finditer(text), None]:
        end = match.start() if match else len(text)
        if text[at:end].strip():
            spans.append((at, end))
        at = match.end() if match else end
    return spans


def _block(text: str, start: int, end: int, cited: Sequence[Cited], heading: str) -> tuple[list[Passage], str]:
    """Return the passages of a paragraph, list or table, and the heading that holds for what follows."""
    units: list[tuple[int, int]] = []
    at = start
    for line in text[start:end].splitlines(keepends=True):
        span = (at, at + len(line))
        at = span[1]
        if _HEADING.fullmatch(line.rstrip("\n")) and not any(span[0] <= c.start < span[1] for c in cited):
            heading = line.strip(" #*:：\n\t")
        if _RULE.fullmatch(line):
            continue
        inside = any(c.start < span[0] < c.end for c in cited)  # a citation runs over the break
        own = _ROW.match(line) or _HEADING.fullmatch(line.rstrip("\n"))
        if units and (inside or not (own or _heading(text, units[-1]))):
            units[-1] = (units[-1][0], span[1])
        else:
            units.append(span)
    rows = [_unit(text, a, b, cited, heading, start) for a, b in units]
    return _spread(rows), heading


def _heading(text: str, unit: tuple[int, int]) -> bool:
    return _HEADING.fullmatch(text[unit[0] : unit[1]].rstrip("\n")) is not None


def _spread(rows: list[list[Passage]]) -> list[Passage]:
    """Give rows without a citation the next one's, else the last one's before; the end of a row stays without."""
    own = [next((p.ids for p in row if p.ids), ()) for row in rows]
    following: tuple[int, ...] = ()
    for n in range(len(rows) - 1, -1, -1):
        following = own[n] or following
        own[n] = own[n] or following
    last: tuple[int, ...] = ()
    out: list[Passage] = []
    for row, ids in zip(rows, own, strict=True):
        last = ids or last
        cited = any(p.ids for p in row)
        out += row if cited else [replace(p, ids=last) for p in row]
    told = [p for p in out if p.sentences]
    return told or out[:1]


def _unit(text: str, start: int, end: int, all_cited: Sequence[Cited], heading: str, block: int) -> list[Passage]:
    cited = [c for c in all_cited if start <= c.start < end]
    out: list[Passage] = []
    at = start
    for n, one in enumerate(cited):
        piece = text[at : one.start]
        at = one.end
        if not _words(piece):
            if out and n:
                out[-1] = replace(out[-1], ids=tuple(dict.fromkeys([*out[-1].ids, *one.ids])))
                continue
            following = cited[n + 1].start if n + 1 < len(cited) else end  # it stands before what it belongs to
            piece, at = text[at:following], following
        out.append(
            _passage(piece, one.ids, _before(text, block, max(start, one.start - len(piece)), all_cited), heading)
        )
    tail = text[at:end]
    if _words(tail):
        if out and not _ENDED.search(text[start : cited[-1].start]) and tail.lstrip()[:1] not in "\"'”.。":
            first = sentence_spans(tail)
            cut = first[0][1] if first else 0
            out[-1] = _passage(" ".join([*out[-1].sentences, tail[:cut].strip()]), out[-1].ids, out[-1].around, "")
            tail = tail[cut:]
        if _words(tail):
            out.append(_passage(tail, (), _before(text, block, end - len(tail), all_cited), heading))
    return out


def _words(text: str) -> bool:
    return any(c.isalnum() for c in text)


def _passage(piece: str, ids: tuple[int, ...], before: str, heading: str) -> Passage:
    piece = _IMPORTANCE.sub("", piece, count=1)
    sentences = tuple(piece[a:b] for a, b in sentence_spans(piece) if _words(piece[a:b]))
    return Passage(sentences, ids, f"{heading}\n{before}".strip())


def _before(text: str, low: int, high: int, cited: Sequence[Cited]) -> str:
    """Return what stands before a passage, without citations; from a list or table no row but the first."""
    low = max(low, high - _AROUND)
    out, at = [], low
    for one in cited:
        if one.end > low and one.start < high:
            out.append(text[at : max(at, one.start)])
            at = max(at, one.end)
    lines = "".join([*out, text[at:high]]).splitlines()
    return "\n".join(line for n, line in enumerate(lines) if n == 0 or not _ROW.match(line))
