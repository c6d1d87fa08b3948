"""From a cited report and the sentence that cites it to the very text: the nearest finding, the rows that it cites, and
their text units. Where the finding cites child reports, their nearest finding, and so on.

Built once for a version and process; `citations.Resolver` takes it as `locate`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from communitree_shared.contract.tables import COMMUNITY_REPORTS, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.citing.grades import Evidence
from communitree_workers.citing.grammar import grammar_of
from communitree_workers.query.answer.citations import Behind, nearest_finding
from communitree_workers.query.view.corpus_view import IntArray
from communitree_workers.tables.columns import flatten, positions
from communitree_workers.tables.io import Tables

_TABLES = {
    "entities": ENTITIES, "relationships": RELATIONSHIPS, "claims": COVARIATES, "sources": TEXT_UNITS,
    "reports": COMMUNITY_REPORTS,
}  # fmt: skip
#: Child reports are followed so far down.
_DEEPEST = 8
_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class FindingSources:
    """What is behind a citing statement: text units, the most cited first, and rows; nothing if no finding is near."""

    def __init__(self, tables: Tables) -> None:
        """Needs the tables of entities, relationships, text units and reports; covariates where there are any."""
        self._ids: list[str] = tables[TEXT_UNITS]["id"].to_pylist()
        self._units: dict[str, dict[int, IntArray]] = {}
        for name, column in (
            (ENTITIES, "text_unit_ids"), (RELATIONSHIPS, "text_unit_ids"), (COVARIATES, "text_unit_id"),
            (TEXT_UNITS, "id"),
        ):  # fmt: skip
            if name in tables:
                self._units[name] = _by_number(tables, name, column)
        reports = tables[COMMUNITY_REPORTS]
        self._row = {c: i for i, c in enumerate(reports["community"].to_pylist())}
        self._findings = reports["findings"]
        self._summaries, self._names = reports["summary"], reports["title"]
        self._whole = reports["full_content"]

        self._entities = _Titles(tables[ENTITIES], "title")
        self._relationships = _Titles(tables[RELATIONSHIPS], "source", "target")

    def __call__(self, community: int, statement: str) -> Behind:
        """Return what a statement citing this report rests on."""
        found = _Found()
        self._follow(community, statement, found, 0)
        units = sorted(found.units, key=lambda unit: (-found.units[unit], unit))
        return Behind([self._ids[unit] for unit in units], list(found.entities), list(found.relationships))

    def evidence(self, kind: str, community: int) -> Evidence | None:
        """Return the text of a report, to grade citations of it by; None: there is no such report."""
        row = self._row.get(community) if kind == "reports" else None
        if row is None:
            return None
        found = [f"{f['summary'] or ''}\n{f['explanation'] or ''}" for f in self._findings[row].as_py() or ()]
        texts = [self._summaries[row].as_py() or "", *(found or [self._whole[row].as_py() or ""])]
        return Evidence(self._names[row].as_py() or "", tuple(grammar_of(None).without(text) for text in texts))

    def entity(self, number: int) -> str | None:
        """Return an entity's title; None: there is no such entity."""
        return self._entities.title(number)

    def relationship(self, number: int) -> str | None:
        """Return the titles that a relationship joins; None: there is no such relationship."""
        return self._relationships.title(number)

    def _follow(self, community: int, statement: str, found: _Found, depth: int) -> None:
        row = self._row.get(community)
        if row is None or depth > _DEEPEST:
            return
        findings = [(f["summary"] or "", f["explanation"] or "") for f in self._findings[row].as_py() or ()]
        nearest = nearest_finding(findings, statement)
        if nearest is None:
            return
        summary, explanation = findings[nearest]
        for kind, numbers in rows_cited(f"{summary}\n{explanation}"):
            if kind == COMMUNITY_REPORTS:
                for number in numbers:
                    self._follow(number, statement, found, depth + 1)
                continue
            for number in numbers:
                found.units.update(self._units.get(kind, {}).get(number, _NOTHING).tolist())
            if kind == ENTITIES:
                found.entities.update(dict.fromkeys(numbers))
            elif kind == RELATIONSHIPS:
                found.relationships.update(dict.fromkeys(numbers))


@dataclass
class _Found:
    """Text units with how often they are cited; rows, each once, in the order in which they are cited."""

    units: Counter[int] = field(default_factory=Counter)
    entities: dict[int, None] = field(default_factory=dict)
    relationships: dict[int, None] = field(default_factory=dict)


class _Titles:
    """Titles of a table's rows by human_readable_id; nothing is read before the first is asked for."""

    def __init__(self, table: pa.Table, *columns: str) -> None:
        self._numbers, self._columns = table["human_readable_id"], [table[name] for name in columns]
        self.title = lru_cache(maxsize=4096)(self._title)  # question after question cites the same ones

    @cached_property
    def _rows(self) -> dict[Any, int]:
        return {number: row for row, number in enumerate(self._numbers.to_pylist())}

    def _title(self, number: int) -> str | None:
        row = self._rows.get(number)
        return None if row is None else " – ".join(column[row].as_py() or "" for column in self._columns)


def _by_number(tables: Tables, name: str, column: str) -> dict[int, IntArray]:
    """Return human_readable_id → positions of text units."""
    table = tables[name]
    numbers: list[Any] = table["human_readable_id"].to_pylist()
    if column.endswith("ids"):
        owner, named = flatten(table[column])
    else:
        owner, named = np.arange(table.num_rows, dtype=np.int64), table[column]
    place = positions(named, tables[TEXT_UNITS]["id"])
    owner, place = owner[place >= 0], place[place >= 0]
    cuts = np.searchsorted(owner, np.arange(table.num_rows + 1))
    return {number: place[cuts[i] : cuts[i + 1]] for i, number in enumerate(numbers) if cuts[i + 1] > cuts[i]}


def rows_cited(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return `(table, human_readable_ids)` of the citations in a report's text; for reports, communities."""
    parts = (part for found in grammar_of(None).find(text) if not found.unverified for part in found.parts)
    return [(_TABLES[part.kind], part.ids) for part in parts if part.kind in _TABLES]
