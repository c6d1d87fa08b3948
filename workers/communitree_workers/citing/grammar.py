"""The one grammar of references, `[Data: Reports (1, 2, +more); Sources (3)]`, for reports, answers and the import.

Read as models write it: any brackets, a missing `Data:` or closing bracket, ranges, `id 12`, `[12]`, `[^12]`, `[R12]`,
`<sup>12</sup>`, Chinese and full-width forms, emphasis and line breaks inside. What is a reference is read whole by the
same rules wherever it stands; what only looks like one comes out as unread, so that it can be counted and marked. What
stands in code is no reference. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from communitree_shared.contract.citing import kind_of
from communitree_workers.citing import signs
from communitree_workers.citing.code import code_spans, unsettled_code
from communitree_workers.citing.scan import Outcome, Scan

#: A reference has at most so many characters.
LONGEST = 4000
#: So often the end of what is settled is looked for again, before a whole paragraph counts as open.
_STEPS = 20


class Part(NamedTuple):
    """Rows of one kind. `kind`: a key of `KINDS`, or the name as it is written where that is none of them."""

    kind: str
    ids: tuple[int, ...]
    more: bool


class Reference(NamedTuple):
    """A reference in a text: from `start` to before `end`, brackets included.

    `unverified`: it stands under a head that says so, and claims nothing. `whole`: nothing in it was passed over.
    `bare`: numbers alone, `[12]`, that name no kind.
    """

    start: int
    end: int
    parts: tuple[Part, ...]
    unverified: bool = False
    whole: bool = True
    bare: bool = False


class Unread(NamedTuple):
    """What looks like a reference and is not understood."""

    start: int
    end: int


@dataclass
class Parsed:
    """What a text holds, each in order. A reference that is not `whole` is among `unread`, too."""

    references: list[Reference] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def own_kind(context: str) -> str:
    """Return the kind of rows that go by the name `context`."""
    return kind_of(context) or "reports"


_BRACKET = rf"[{re.escape(signs.OPENING)}]"
_START = re.compile(
    rf"(?P<open>\\?\^?{_BRACKET}|\\cite[a-z]{{0,8}}\*?\{{|<(?=\s*(?:data|数据)\s*[:：]))"
    r"|(?P<sup><(?P<tag>sup|ref|cite)>(?P<raised>[^<>\n]{1,200})</(?P=tag)>|(?P<power>[⁰¹²³⁴-⁹]+(?:[,⁻’,ʼ][⁰¹²³⁴-⁹]+)*))"
    rf"|(?P<loose>{signs.LOOSE.pattern})"
    r"|(?P<bare>(?<![^\W_])(?:Reports?|报告)\s?(?=[(（]\s?\d))",
    re.IGNORECASE,
)
_HEADED = re.compile(rf"[{re.escape(signs.SQUARE)}]\s*(?:data|数据)\s*[:：][^\[\]\n]*\d", re.IGNORECASE)


class Grammar:
    """Reads references. `context`: the name that the rows that were read go by; None: numbers alone name no kind."""

    def __init__(self, context: str | None = "Reports", *, bare: bool = True) -> None:
        """Make the patterns of this name; `grammar_of` keeps them. `bare`: whether `[12]` is a reference."""
        self.own = None if context is None else own_kind(context)
        self.bare = bare and context is not None
        self.context = context
        self.names = signs.names(context)
        initial = (context or "")[:1]
        self.initial = initial.casefold() if initial.isascii() and initial.isalpha() else ""

    def kind(self, name: str) -> str:
        """Return the kind that a name stands for; a name of none as it is."""
        bare = " ".join(name.split())
        if self.context is not None and bare.casefold() == self.context.casefold():
            return own_kind(self.context)
        known = "reports" if re.fullmatch("sub-?communit(?:y|ies)|子报告", bare, re.IGNORECASE) else kind_of(bare)
        return known or bare

    def parse(self, text: str) -> Parsed:
        """Return all references of a text, and what looks like one."""
        parsed = Parsed()
        for found in self._all(text):
            if isinstance(found, Reference):
                parsed.references.append(found)
                if not found.whole:
                    parsed.unread.append(Unread(found.start, found.end))
            else:
                parsed.unread.append(found)
        return parsed

    def find(self, text: str) -> list[Reference]:
        """Return the references of a text."""
        return self.parse(text).references

    def without(self, text: str) -> str:
        """Return a text without its references, whatever rows they name."""
        out, last = [], 0
        for found in self.find(text):
            out.append(text[last : found.start])
            last = found.end
        return "".join([*out, text[last:]]) if out else text

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text's references to the rows that were read, each once, in order."""
        wanted = self.own or "reports"
        parts = (part for found in self.find(text) if not found.unverified for part in found.parts)
        return list(dict.fromkeys(id for part in parts if part.kind == wanted for id in part.ids))

    def settled(self, text: str) -> int:
        """Return how much of a text's beginning reads the same whatever follows it."""
        at = min(self._begun(text), unsettled_code(text))
        found = [*self._all(text)]
        for _ in range(_STEPS):  # what touches the end may become longer, and hold others
            before = at
            for one in reversed(found):
                if one.start < at <= one.end:
                    at = one.start
            if at < len(text):
                at = self._begun(text[:at])
            if at == before:
                return at
        return min(at, self._low(text))

    def _low(self, text: str) -> int:
        """Return where the last paragraph begins, or so far before the end that no reference runs on from there."""
        paragraph = max((m.end() for m in signs.PARAGRAPH.finditer(text, max(0, len(text) - LONGEST))), default=0)
        return max(paragraph, len(text) - LONGEST)

    def _begun(self, text: str) -> int:
        """Return where the first thing begins that the end of a text leaves open, code apart."""
        low = self._low(text)
        begun = signs.LOOSE_BEGUN.search(text, max(0, len(text) - 240))
        tail = _TAIL.search(text, max(low, len(text) - 260))
        ends = [match.start() for match in (begun, tail) if match]
        return min([len(text), *ends, *open_brackets(text, low)])

    def _all(self, text: str) -> Iterator[Reference | Unread]:
        if not _POSSIBLE.search(text):
            return
        code = code_spans(text) if "`" in text or "~~~" in text else []
        breaks = [m.start() for m in signs.PARAGRAPH.finditer(text)]  # a reference ends with its paragraph
        at, place, last = 0, 0, -1
        while True:
            while place < len(code) and code[place][1] <= at:
                place += 1
            match = _START.search(text, at)
            limit = code[place][0] if place < len(code) else len(text)
            if match is None or match.start() >= limit:
                if place >= len(code):
                    return
                start, end, _ = code[place]
                at, place = end, place + 1
                if _HEADED.search(text, start, end):
                    yield Unread(start, end)
                continue
            stop = min(limit, match.start() + LONGEST, *breaks[(later := bisect(breaks, match.start())) : later + 1])
            found, at = self._at(text, match, stop, last)
            if found is not None:
                yield found
                last = found.end if isinstance(found, Reference) else -1

    def _at(self, text: str, match: re.Match[str], stop: int, last: int) -> tuple[Reference | Unread | None, int]:
        """Return what begins here, and where to go on."""
        if match["bare"]:
            return self._bare(text, match, stop)
        if match["sup"]:
            return self._raised(text, match)
        outcome = Scan(self, text, match, stop, attached=match.start() == last).read()
        return _found(match.start(), outcome, text, stop)

    def _bare(self, text: str, match: re.Match[str], stop: int) -> tuple[Unread | None, int]:
        """`Reports (12)` in running text is said to be none, unless it may be years or a word like any other."""
        end = _LISTED.match(text, match.end(), stop)
        capital = match["bare"][0] in "R报"
        if end is None or not capital or any(signs.YEAR.fullmatch(n) for n in signs.NUMBER.findall(end[0])):
            return None, match.end()
        return Unread(match.start(), end.end()), end.end()

    def _raised(self, text: str, match: re.Match[str]) -> tuple[Reference | Unread | None, int]:
        before = re.search(r"[^\W_]*\Z", text[max(0, match.start() - 12) : match.start()])
        word = before[0] if before else ""
        inside = match["raised"] or match["power"].translate(_POWERS)
        power = (word.isascii() and 0 < len(word) <= 2) or word[-1:].isdigit()
        if self.own is None or not self.bare or power:
            return None, match.end()
        ids = _RAISED.fullmatch(inside)
        if ids is None:
            return None, match.start() + 1
        numbers = tuple(dict.fromkeys(int(n[:18]) for n in signs.NUMBER.findall(inside)))
        return Reference(match.start(), match.end(), (Part(self.own, numbers, False),), bare=True), match.end()


_LISTED = re.compile(r"[(（][\s\d,，、;；\-–]{1,200}[)）]")
_RAISED = re.compile(r"\s*[\[(]?\s*[#R^]?\d{1,18}(?:\s*[,，、;；]\s*[#R]?\d{1,18})*\s*[\])]?\s*")
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_POSSIBLE = re.compile(rf"{_BRACKET}|<(?:sup|ref|cite)>|[⁰¹²³⁴-⁹]|\\cite|(?:Data|数据)\s*[:：]", re.IGNORECASE)
#: What the end of a text may still become: a tag, a link behind a bracket, an escape.
_TAIL = re.compile(
    rf"(?:<(?:[^<>\n]{{0,20}}|(?:sup|ref|cite)>[^<>\n]{{0,200}}(?:</?[a-z]{{0,4}})?)"
    rf"|\\+(?:\^|cite[a-z]{{0,8}}\*?)?|[⁰¹²³⁴-⁹]+[,⁻]?|\^+|[{re.escape(signs.CLOSING)}]+|`+|~+|(?:Reports?|报告)\s?)\Z",
    re.IGNORECASE,
)


def open_brackets(text: str, low: int) -> list[int]:
    """Return where brackets open that nothing has closed, from `low` on."""
    stack: list[int] = []
    for match in re.finditer(rf"{_BRACKET}|[{re.escape(signs.CLOSING)}]", text[low:]):
        if match[0] in signs.CLOSING:
            if stack and low + match.end() < len(text):  # what follows the last one may belong to it
                stack.pop()
        else:
            at = low + match.start()
            while at > low and text[at - 1] in "\\^":
                at -= 1
            stack.append(at)
    return stack


def _found(start: int, outcome: Outcome, text: str, stop: int) -> tuple[Reference | Unread | None, int]:
    end = outcome.end
    if outcome.parts:
        link = signs.LINK.match(text, end, stop) if text[end - 1 : end] in signs.CLOSING else None
        end = link.end() if link else end
        parts = tuple(Part(kind, tuple(ids), more) for kind, ids, more in outcome.parts)
        return Reference(start, end, parts, outcome.unverified, outcome.whole, outcome.bare), end
    if outcome.looks:
        return Unread(start, end), end
    return None, end


@lru_cache(maxsize=64)
def grammar_of(context: str | None = "Reports", *, bare: bool = True) -> Grammar:
    """Return the grammar for a name of the rows that were read; None: numbers alone name nothing.

    `bare`: whether `[12]` is a reference, as models write it, and not what a quoted text has of its own.
    """
    return Grammar(context, bare=bare)


__all__ = ["Grammar", "Parsed", "Part", "Reference", "Unread", "grammar_of", "own_kind"]
