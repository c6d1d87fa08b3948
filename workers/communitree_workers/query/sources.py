"""From a cited report and the sentence that cites it to the very text: the nearest finding, the rows it cites, their
text units. Where the finding cites child reports, their nearest finding, and so on.

Built once for a version and process; `citations.Resolver` takes it as `locate`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from communitree_shared.tables import COMMUNITY_REPORTS, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.query.citations import nearest_finding
from communitree_workers.query.corpus_view import IntArray
from communitree_workers.tables.columns import flatten, positions
from communitree_workers.tables.io import Tables

_REFERENCE = re.compile(r"[\[【]\s*(?:Data|数据)\s*[:：]([^\]】]*)[\]】]", re.IGNORECASE)
_PART = re.compile(
    r"(Entit\w*|Relationships?|Claims?|Covariates?|Sources?|Reports?)\s*[(（]([^)）]*)[)）]", re.IGNORECASE
)
_KINDS = {"e": ENTITIES, "rel": RELATIONSHIPS, "c": COVARIATES, "s": TEXT_UNITS, "rep": COMMUNITY_REPORTS}
#: Child reports are followed so far down.
_DEEPEST = 8


class FindingSources:
    """Callable `(community, statement) -> text unit ids`, the most cited first; [] where no finding is near."""

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
        self._summaries = reports["summary"]

    def __call__(self, community: int, statement: str) -> list[str]:
        """Return the text units that a statement citing this report rests on."""
        found = self._count(community, statement, 0)
        return [self._ids[unit] for unit in sorted(found, key=lambda u: (-found[u], u))]

    def _count(self, community: int, statement: str, depth: int) -> Counter[int]:
        out: Counter[int] = Counter()
        row = self._row.get(community)
        if row is None or depth > _DEEPEST:
            return out
        findings = [(f["summary"] or "", f["explanation"] or "") for f in self._findings[row].as_py() or ()]
        nearest = nearest_finding(findings, statement)
        if nearest is None:
            return out
        summary, explanation = findings[nearest]
        for kind, numbers in rows_cited(f"{summary}\n{explanation}"):
            if kind == COMMUNITY_REPORTS:
                for number in numbers:
                    out.update(self._count(number, statement, depth + 1))
                continue
            for number in numbers:
                out.update(self._units.get(kind, {}).get(number, np.zeros(0, dtype=np.int64)).tolist())
        return out


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


def rows_cited(text: str) -> list[tuple[str, list[int]]]:
    """Return `(table, human_readable_ids)` of the citations in a report's text; for reports, communities."""
    out = []
    for reference in _REFERENCE.findall(text):
        for word, numbers in _PART.findall(reference):
            kind = next(table for start, table in _KINDS.items() if word.lower().startswith(start))
            out.append((kind, [int(number) for number in re.findall(r"\d+", numbers)]))
    return out
