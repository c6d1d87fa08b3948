"""Citations of an answer: read from the text, checked against the points it was made of, resolved to text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from communitree_shared.contract.citing import label_of
from communitree_shared.contract.results import Citation, CitedRow, Point
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.query.wording.phrases import say
from communitree_workers.query.wording.references import (
    CLOSING,
    OPENING,
    SHOWN,
    Part,
    bracketed,
    find,
    own_kind,
    section,
)
from communitree_workers.text.words import terms

#: Text units that one citation names: the ones its report's evidence mentions most.
UNITS = 20
#: A point is in the answer when a passage that cites it has at least this share of its words.
_SHARED_WORDS = 0.3
#: What ends a reference, or shows that an opened bracket is none.
_ENDS = re.compile(rf"[{re.escape(CLOSING)}\n]")

#: Entities and relationships that one citation names each.
ROWS = 10


@dataclass(frozen=True)
class Behind:
    """What a statement that cites a report rests on: ids of text units, human_readable_ids of the other rows."""

    units: list[str]
    entities: list[int] = field(default_factory=list)
    relationships: list[int] = field(default_factory=list)


class Locate(Protocol):
    """Finds what is behind a report's statement, and the titles of its rows; see `sources.FindingSources`."""

    def __call__(self, community: int, statement: str) -> Behind:
        """Return what a statement citing this report rests on."""

    def entity(self, number: int) -> str | None:
        """Return an entity's title."""

    def relationship(self, number: int) -> str | None:
        """Return the titles that a relationship joins."""


@dataclass
class Checked:
    """An answer with its references in one form and the unverified ones marked.

    `cited`: ids that points support, in order; `unverified`: (kind, id) of what none does; `passages`: parts of the
    text with the ids they cite.
    """

    text: str
    cited: list[int] = field(default_factory=list)
    unverified: list[tuple[str, int]] = field(default_factory=list)
    passages: list[tuple[str, list[int]]] = field(default_factory=list)


def check(answer: str, points: Sequence[Point], language: str, context: str = "Reports") -> Checked:
    """Check each reference of an answer; see `Checker`."""
    return Checker(points, language, context).whole(answer)


class Checker:
    """Checks an answer while it is written: a stream shows the text that the answer will have, marks included.

    An id that no used point rests on is marked in the text, and so is every row of another kind than the points' own:
    an answer may cite nothing else. `+more` stands for the other reports of the points that its line has stated so
    far. A reference shows at most five ids.
    """

    def __init__(self, points: Sequence[Point], language: str, context: str = "Reports") -> None:
        """`context`: how the points' reports are named in citations."""
        self._points = [point for point in points if point.used]
        self._known = {id for point in self._points for id in point.reports}
        self._context, self._kind = context, own_kind(context)
        self._mark = say("mark.unverified", language)
        self._held = ""  # what may be the beginning of a reference, or the blanks at the end
        self._said: list[str] = []  # the line so far, without references
        self._cited: list[int] = []  # the ids that it cites
        self._out: list[str] = []
        self._result = Checked("")

    def feed(self, piece: str) -> str:
        """Take the next piece; return what is certain of the checked text, and was not returned before."""
        text = self._held + piece
        if not self._out:
            text = text.lstrip()
        ready = len(text.rstrip())
        for bracket in OPENING:  # a reference does not run over lines, nor over another bracket
            at = text.rfind(bracket)
            if at >= 0 and not _ENDS.search(text, at + 1):
                ready = min(ready, at)
        self._held = text[ready:]
        return self._take(text[:ready])

    def whole(self, text: str) -> Checked:
        """Check a text that is there already."""
        self.feed(text)
        return self.close()

    def close(self) -> Checked:
        """Return the whole; nothing can be fed afterwards."""
        self._take(self._held.rstrip())
        self._end_line()
        result = self._result
        result.text = "".join(self._out)
        result.cited = list(dict.fromkeys(result.cited))
        own = {(self._kind, id) for id in result.cited}
        result.unverified = [row for row in dict.fromkeys(result.unverified) if row not in own]
        return result

    def _take(self, text: str) -> str:
        start = len(self._out)
        for n, line in enumerate(text.split("\n")):
            if n:
                self._end_line()
                self._out.append("\n")
            last = 0
            for found in find(line, self._context):
                self._say(line[last : found.start])
                self._out.append(self._judged(found.parts))
                last = found.end
            self._say(line[last:])
        return "".join(self._out[start:])

    def _say(self, text: str) -> None:
        if text:
            self._said.append(text)
            self._out.append(text)

    def _end_line(self) -> None:
        if self._cited:
            self._result.cited += self._cited
            self._result.passages.append(("".join(self._said), list(dict.fromkeys(self._cited))))
        self._said, self._cited = [], []

    def _judged(self, parts: Sequence[Part]) -> str:
        """Return a reference in the form that it has in the answer."""
        ids = list(dict.fromkeys(id for part in parts if part.kind == self._kind for id in part.ids))
        good = [id for id in ids if id in self._known]
        bad = [id for id in ids if id not in self._known]
        if good and any(part.more for part in parts if part.kind == self._kind):
            near = [point for point in self._points if not set(good).isdisjoint(point.reports)]
            stated = _stated("".join(self._said), near)
            good = list(dict.fromkeys([*good, *(id for point in stated for id in point.reports)]))
        self._cited += good
        marked = [f"{id} {self._mark}" for id in bad]
        sections = [section(self._context, good, shown=max(1, SHOWN - len(bad)), marked=marked)]
        self._result.unverified += [(self._kind, id) for id in bad]
        others: dict[str, list[int]] = {}
        for part in parts:
            if part.kind != self._kind:
                others.setdefault(part.kind, []).extend(part.ids)
        for kind, rows in others.items():
            marked = [f"{id} {self._mark}" for id in dict.fromkeys(rows)]
            sections.append(section(label_of(kind), [], marked=marked))
            self._result.unverified += [(kind, id) for id in rows]
        return bracketed(sections)


def _stated(said: str, points: Sequence[Point]) -> list[Point]:
    words = _words(said)
    return [point for point in points if _share(_words(point.text), words) >= _SHARED_WORDS]


def _share(words: frozenset[str], said: frozenset[str]) -> float:
    return len(words & said) / len(words) if words else 0.0


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def mark_in_answer(points: Sequence[Point], checked: Checked, language: str) -> int:
    """Say of each used point whether the answer states it, not only whether it was in the prompt; return how many.

    It does when a passage cites one of its reports and has enough of its words; the best such point of a passage
    counts in any case, since its words may all have been put differently.
    """
    words = {i: _words(point.text) for i, point in enumerate(points) if point.used}
    stated: set[int] = set()
    for text, ids in checked.passages:
        said, wanted = _words(text), set(ids)
        near = [i for i in words if wanted.intersection(points[i].reports)]
        if not near:
            continue
        share = {i: _share(words[i], said) for i in near}
        stated.update(i for i in near if share[i] >= _SHARED_WORDS)
        best = max(near, key=lambda i: (share[i], points[i].adjusted or 0.0, -i))
        if share[best] > 0 or len(near) == 1:
            stated.add(best)
    for i in words:
        points[i].in_answer = i in stated
        if i not in stated:
            points[i].why_not = say("not.left_out", language)
    return len(stated)


class Resolver:
    """From reports (or text units) to the text they rest on."""

    def __init__(self, view: CorpusView, locate: Locate | None = None) -> None:
        """`locate(community, statement)` may narrow a report's text units to those behind one statement."""
        self.view = view
        self.locate = locate
        self._number = {key: i for i, key in enumerate(view.unit_key)} if locate else {}

    def report(self, community: int, keys: Iterable[str] = ()) -> list[int]:
        """Return the positions of these text units behind a report; of none, its own evidence's or its children's."""
        view = self.view
        node = view.node[community]
        found = [self._number[key] for key in dict.fromkeys(keys) if key in self._number]
        if found:
            return found[:UNITS]
        own = view.read_idx[view.read_ptr[node] : view.read_ptr[node + 1]].tolist()
        queue = view.children(node).tolist()
        while not own and queue:
            below: list[int] = []
            for child in queue:
                own += view.read_idx[view.read_ptr[child] : view.read_ptr[child + 1]][:UNITS].tolist()
                below += view.children(child).tolist()
            queue = below
        if not own:
            own = view.held_idx[view.held_ptr[node] : view.held_ptr[node + 1]].tolist()
        return list(dict.fromkeys(int(unit) for unit in own))[:UNITS]

    def citation(self, id: int, *, verified: bool, kind: str, statements: Iterable[str] = ()) -> Citation:
        """Return a citation with the text units and documents it leads to; an unverified one leads nowhere."""
        view = self.view
        if kind not in ("reports", "sources"):
            return Citation(kind=kind, id=id)
        if kind == "sources":
            units = [view.unit_node[id]] if id in view.unit_node else []
            return Citation(
                kind=kind,
                id=id,
                title=self._documents(units)[0] if units else "",
                verified=verified and bool(units),
                text_units=[view.unit_key[u] for u in units] if verified else [],
                documents=self._documents(units) if verified else [],
            )
        if id not in view.node:
            return Citation(id=id, report=id, verified=False)
        node = view.node[id]
        cited = Citation(id=id, report=id, level=int(view.level[node]), title=view.titles[node], verified=verified)
        if not verified:
            return cited
        keys: list[str] = []
        if self.locate is not None:
            behind = [self.locate(id, text) for text in statements]
            keys = [key for part in behind for key in part.units]
            entities = _named(self.locate.entity, (n for part in behind for n in part.entities))
            joined = _named(self.locate.relationship, (n for part in behind for n in part.relationships))
            cited.entities, cited.more_entities = entities
            cited.relationships, cited.more_relationships = joined
        units = self.report(id, keys)
        cited.text_units, cited.documents = [view.unit_key[u] for u in units], self._documents(units)
        return cited

    def document_titles(self, units: Iterable[int]) -> dict[int, str]:
        """Return the title of the document that each of these text units (by number) is from."""
        known = {id: self._documents([self.view.unit_node[id]]) for id in units if id in self.view.unit_node}
        return {id: titles[0] for id, titles in known.items() if titles}

    def _documents(self, units: Sequence[int]) -> list[str]:
        numbers = self.view.unit_document[np.array(units, dtype=np.int64)].tolist() if units else []
        return list(dict.fromkeys(self.view.documents[n] if n >= 0 else "" for n in numbers)) if numbers else []


def _named(title: Callable[[int], str | None], numbers: Iterable[int]) -> tuple[list[CitedRow], int]:
    """Return the first of these rows with their titles, and how many more there are."""
    rows = [CitedRow(id=n, title=name) for n in dict.fromkeys(numbers) if (name := title(n)) is not None]
    return rows[:ROWS], max(0, len(rows) - ROWS)


def cite(checked: Checked, resolver: Resolver, kind: str) -> list[Citation]:
    """Return the citations of a checked answer, verified ones first in order of appearance."""
    statements: dict[int, list[str]] = {}
    for text, ids in checked.passages:
        for id in ids:
            statements.setdefault(id, []).append(text)
    out = [resolver.citation(id, verified=True, kind=kind, statements=statements.get(id, ())) for id in checked.cited]
    return out + [resolver.citation(id, verified=False, kind=kind) for kind, id in checked.unverified]


def nearest_finding(findings: Sequence[tuple[str, str]], statement: str) -> int | None:
    """Return which finding `(summary, explanation)` a statement most likely rests on; None: none shares a word."""
    said = _words(statement)
    best, place = 0.0, None
    for i, (summary, explanation) in enumerate(findings):
        shared = _share(said, _words(f"{summary}\n{explanation}"))
        if shared > best:
            best, place = shared, i
    return place
