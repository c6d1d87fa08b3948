"""References of an answer, checked while it is written: put in one form, and marked where nothing is behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from communitree_shared.contract.citing import label_of
from communitree_shared.contract.results import Point
from communitree_workers.citing.grammar import Reference, Unread, grammar_of, own_kind
from communitree_workers.citing.likeness import Rarity, Stated, states
from communitree_workers.citing.passages import Cited, Passage, passages
from communitree_workers.citing.signs import PARAGRAPH, YEAR
from communitree_workers.citing.traits import traits
from communitree_workers.citing.writing import SHOWN, bracketed, section
from communitree_workers.query.wording.phrases import say

_FENCE = re.compile("```|~~~")


@dataclass
class Checked:
    """An answer with its references in one form and the unverified ones marked.

    `cited`: ids that points support, in order; `unverified`: (kind, id) of what none does; `unread`: how many look like
    a reference and are not understood; `passages`: parts of the text with the ids they cite.
    """

    text: str
    cited: list[int] = field(default_factory=list)
    unverified: list[tuple[str, int]] = field(default_factory=list)
    unread: int = 0
    passages: list[Passage] = field(default_factory=list)


def check(answer: str, points: Sequence[Point], language: str, context: str = "Reports") -> Checked:
    """Check each reference of an answer; see `Checker`."""
    return Checker(points, language, context).whole(answer)


def parts_of(text: str, context: str = "Reports") -> list[Passage]:
    """Return the parts of a text with the ids that each cites, whatever they name."""
    kind = own_kind(context)
    cited = [
        Cited(found.start, found.end, tuple(id for part in found.parts if part.kind == kind for id in part.ids))
        for found in grammar_of(context).find(text)
    ]
    return passages(text, cited)


class Checker:
    """Checks an answer while it is written: a stream shows the text that the answer will have, marks included.

    An id that no used point rests on is marked in the text, and so is every row of another kind than the points' own:
    an answer may cite nothing else. `+more` stands for the other reports of the points that its line has stated so
    far. A reference shows at most five ids.
    """

    def __init__(self, points: Sequence[Point], language: str, context: str = "Reports", *, bare: bool = True) -> None:
        """`context`: how the points' reports are named in citations; `bare`: whether `[12]` is one of them."""
        self._points = [point for point in points if point.used]
        self._known = {id for point in self._points for id in point.reports}
        self._context, self._kind = context, own_kind(context)
        self._grammar = grammar_of(context, bare=bare)
        self._mark, self._odd = say("mark.unverified", language), say("mark.unread", language)
        self._rarity: Rarity | None = None
        self._raw, self._done = "", 0  # what came since a paragraph began, and how much of it is checked
        self._line = ""  # the line so far, without references
        self._out: list[str] = []
        self._length = 0
        self._cited: list[Cited] = []
        self._result = Checked("")

    def feed(self, piece: str) -> str:
        """Take the next piece; return what is certain of the checked text, and was not returned before."""
        self._raw += piece
        if not self._out:
            self._raw = self._raw.lstrip()
        at = min(len(self._raw.rstrip()), self._grammar.settled(self._raw))
        return self._take(at)

    def whole(self, text: str) -> Checked:
        """Check a text that is there already."""
        self.feed(text)
        return self.close()

    def close(self) -> Checked:
        """Return the whole; nothing can be fed afterwards."""
        self._take(len(self._raw.rstrip()))
        result = self._result
        result.text = "".join(self._out)
        result.cited = list(dict.fromkeys(result.cited))
        own = {(self._kind, id) for id in result.cited}
        result.unverified = [row for row in dict.fromkeys(result.unverified) if row not in own]
        result.passages = passages(result.text, self._cited)
        return result

    def _take(self, end: int) -> str:
        """Check what stands before `end` and was not checked yet."""
        start = len(self._out)
        parsed = self._grammar.parse(self._raw[:end])
        spans = {reference[:2] for reference in parsed.references}
        found: list[Reference | Unread] = [*parsed.references, *(u for u in parsed.unread if u not in spans)]
        for one in sorted(found, key=lambda one: one.start):
            if one.start < self._done:
                continue
            self._say(self._raw[self._done : one.start])
            self._done = one.end
            if isinstance(one, Reference):
                self._refer(one)
            else:
                self._unread(one.start, one.end)
        if end > self._done:
            self._say(self._raw[self._done : end])
            self._done = end
        self._forget()
        return "".join(self._out[start:])

    def _forget(self) -> None:
        """Drop paragraphs that are checked: what follows reads the same without them, unless code stands open."""
        if _FENCE.search(self._raw):
            return
        ends = [match.end() for match in PARAGRAPH.finditer(self._raw, 0, self._done)]
        if ends:
            self._raw, self._done = self._raw[ends[-1] :], self._done - ends[-1]

    def _put(self, text: str) -> None:
        self._out.append(text)
        self._length += len(text)

    def _say(self, text: str) -> None:
        if text:
            self._put(text)
            self._line = (self._line + text).rpartition("\n")[2]

    def _unread(self, start: int, end: int) -> None:
        text = self._raw[start:end]
        self._result.unread += 1
        self._say(text)
        # What stands in code, or on a word like an index, keeps its looks.
        attached = start > 0 and self._raw[start - 1].isalnum()
        if not attached and "`" not in text and not self._raw.startswith(f" ({self._odd})", end):
            self._put(f" ({self._odd})")

    def _refer(self, found: Reference) -> None:
        written = self._raw[found.start : found.end]
        ids = list(dict.fromkeys(id for part in found.parts if part.kind == self._kind for id in part.ids))
        if found.unverified or (found.bare and self._years(ids)):
            self._say(written)
            return
        self._result.unread += not found.whole
        start = self._length
        good, text = self._judged(found, ids)
        self._put(text)
        self._result.cited += good
        self._cited.append(Cited(start, self._length, tuple(dict.fromkeys([*good, *ids]))))

    def _years(self, ids: Sequence[int]) -> bool:
        """Say whether numbers in brackets are years rather than ids."""
        return self._known.isdisjoint(ids) and all(YEAR.fullmatch(str(id)) for id in ids)

    def _judged(self, found: Reference, ids: Sequence[int]) -> tuple[list[int], str]:
        """Return the ids that points rest on, and the reference in the form that it has in the answer."""
        good = [id for id in ids if id in self._known]
        bad = [id for id in ids if id not in self._known]
        if good and any(part.more for part in found.parts if part.kind == self._kind):
            near = [point for point in self._points if not set(good).isdisjoint(point.reports)]
            stated = [point for point in near if self._stated(point)]
            good = list(dict.fromkeys([*good, *(id for point in stated for id in point.reports)]))
        marked = [f"{id} {self._mark}" for id in bad]
        sections = [section(self._context, good, shown=max(1, SHOWN - len(bad)), marked=marked)]
        self._result.unverified += [(self._kind, id) for id in bad]
        others: dict[str, list[int]] = {}
        for part in found.parts:
            if part.kind != self._kind:
                others.setdefault(part.kind, []).extend(part.ids)
        for kind, rows in others.items():
            marked = [f"{id} {self._mark}" for id in dict.fromkeys(rows)]
            sections.append(section(label_of(kind), [], marked=marked))
            self._result.unverified += [(kind, id) for id in rows]
        return good, bracketed(sections)

    def _stated(self, point: Point) -> bool:
        if self._rarity is None:
            self._rarity = Rarity(point.text for point in self._points)
        return states(traits(point.text), traits(self._line), self._rarity) in (Stated.YES, Stated.AGREES)
