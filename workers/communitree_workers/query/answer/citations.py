"""Citations of an answer, graded by the text of what is cited and resolved to it; and points, found in the answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from communitree_shared.contract.results import Citation, CitedPassage, CitedRow, Point
from communitree_workers.citing.grades import Evidence, grade, together
from communitree_workers.citing.passages import Passage
from communitree_workers.citing.states import Claim, point_states
from communitree_workers.query.answer.checking import Checked
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.query.wording.phrases import say
from communitree_workers.text.words import terms

#: Text units that one citation names: the ones its report's evidence mentions most.
UNITS = 20

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


#: Returns the text of a cited row by kind and number; None: there is none.
Read = Callable[[str, int], Evidence | None]


class Resolver:
    """From reports (or text units) to the text they rest on."""

    def __init__(self, view: CorpusView, locate: Locate | None = None, read: Read | None = None) -> None:
        """`locate(community, statement)` may narrow a report's text units to those behind one statement.

        `read(kind, id)` returns the text of a cited row, to grade citations by.
        """
        self.view, self.read = view, read
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

    def evidence(self, kind: str, id: int) -> Evidence | None:
        """Return the text of a cited row; None: it cannot be had."""
        return self.read(kind, id) if self.read is not None else None

    def citation(self, id: int, *, known: bool, kind: str, statements: Iterable[str] = ()) -> Citation:
        """Return a citation with the text units and documents it leads to; one that is not known leads nowhere."""
        view = self.view
        if kind not in ("reports", "sources"):
            return Citation(kind=kind, id=id)
        if kind == "sources":
            units = [view.unit_node[id]] if id in view.unit_node else []
            return Citation(
                kind=kind,
                id=id,
                title=self._documents(units)[0] if units else "",
                text_units=[view.unit_key[u] for u in units] if known else [],
                documents=self._documents(units) if known else [],
            )
        if id not in view.node:
            return Citation(id=id, report=id)
        node = view.node[id]
        cited = Citation(id=id, report=id, level=int(view.level[node]), title=view.titles[node])
        if not known:
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


def cite(checked: Checked, resolver: Resolver, kind: str, points: Sequence[Point] = ()) -> list[Citation]:
    """Return the citations of a checked answer, each graded; those of rows that points rest on first, in order."""
    told: dict[int, list[Passage]] = {}
    for passage in checked.passages:
        for id in passage.ids:
            told.setdefault(id, []).append(passage)
    texts = {id: resolver.evidence(kind, id) or _of_points(id, points) for id in checked.cited}
    out = []
    for id in checked.cited:
        here = told.get(id, [])
        citation = resolver.citation(id, known=True, kind=kind, statements=[passage.text for passage in here])
        if citation.text_units or citation.level is not None:
            beside = [[texts[other] for other in p.ids if other != id and other in texts] for p in here]
            grades = [grade(p, texts[id], others) for p, others in zip(here, beside, strict=True)]
            citation.passages = [CitedPassage(text=p.text, grade=g) for p, g in zip(here, grades, strict=True)]
            citation.grade = together(grades)
            citation.verified = citation.grade == "supported"
        out.append(citation)
    return out + [resolver.citation(id, known=False, kind=kind) for kind, id in checked.unverified]


def _of_points(id: int, points: Sequence[Point]) -> Evidence:
    """Return what points say of a row, where its own text cannot be had."""
    return Evidence("", tuple(point.text for point in points if point.used and id in point.reports))


def mark_states(
    points: Sequence[Point], checked: Checked, titles: Callable[[int], str], condensed: Collection[int], language: str
) -> None:
    """Say of each used point what became of it in the answer, and why it does not stand there."""
    used = [i for i, point in enumerate(points) if point.used]
    claims = [claim_of(points[i], titles) for i in used]
    lost = {place for place, i in enumerate(used) if i in set(condensed)}
    for i, outcome in zip(used, point_states(claims, checked.passages, lost), strict=True):
        point = points[i]
        point.state, point.in_answer = outcome.state, outcome.state == "stated"
        if not point.in_answer:
            point.why_not = say(f"not.{outcome.reason or outcome.state}", language)


def claim_of(point: Point, titles: Callable[[int], str]) -> Claim:
    """Return a point as a claim, with the titles of what it rests on."""
    return Claim(point.text, tuple(point.reports), tuple(filter(None, map(titles, point.reports))))


def nearest_finding(findings: Sequence[tuple[str, str]], statement: str) -> int | None:
    """Return which finding `(summary, explanation)` a statement most likely rests on; None: none shares a word."""
    said = frozenset(terms(statement))
    best, place = 0.0, None
    for i, (summary, explanation) in enumerate(findings):
        shared = len(said.intersection(terms(f"{summary}\n{explanation}"))) / max(1, len(said))
        if shared > best:
            best, place = shared, i
    return place
