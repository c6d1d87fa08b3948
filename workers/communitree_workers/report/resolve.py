"""From a finding to source text: its citations → rows and child reports → text units, through any number of levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from communitree_shared.contract import tables as names
from communitree_workers.report import citations
from communitree_workers.tables.io import Tables

_TABLES = {"entities": names.ENTITIES, "relationships": names.RELATIONSHIPS, "claims": names.COVARIATES}


class Sources:
    """Resolves citations of reports to text unit ids. Built once for the tables of one version."""

    def __init__(self, tables: Tables) -> None:
        self._units: dict[str, dict[int, Sequence[str]]] = {}
        self._by_id: dict[str, dict[str, Sequence[str]]] = {}
        for kind, name in _TABLES.items():
            column = "text_unit_id" if kind == "claims" else "text_unit_ids"
            self._index(kind, tables, name, column)
        self._index("text_units", tables, names.TEXT_UNITS, "id")
        units = tables[names.TEXT_UNITS]
        self._order = dict(zip(units["id"].to_pylist(), units["human_readable_id"].to_pylist(), strict=True))
        reports = tables.get(names.COMMUNITY_REPORTS)
        columns = ["community", "summary", "findings", "evidence"]
        rows = reports.select(columns).to_pylist() if reports is not None else []
        self._reports: dict[int, dict[str, Any]] = {row["community"]: row for row in rows}

    def finding(self, report: Mapping[str, Any], index: int) -> list[str]:
        """Return the text units behind one finding of a report row, in corpus order.

        A finding without a citation that holds leads to what its whole report was written from.
        """
        finding = report["findings"][index]
        units = self._of_text(f"{finding['summary']}\n{finding['explanation']}", frozenset({report["community"]}))
        return self._sorted(units or self._of_evidence(report, frozenset({report["community"]})))

    def report(self, community: int) -> list[str]:
        """Return the text units behind a whole report: behind its findings, else behind its evidence."""
        return self._sorted(self._of_report(community, frozenset()))

    def text(self, text: str) -> list[str]:
        """Return the text units behind the citations in any text."""
        return self._sorted(self._of_text(text, frozenset()))

    def _index(self, kind: str, tables: Tables, name: str, column: str) -> None:
        table = tables.get(name)
        self._units[kind], self._by_id[kind] = {}, {}
        if table is None:
            return
        columns = (table[c].to_pylist() for c in ("human_readable_id", "id", column))
        for number, row, value in zip(*columns, strict=True):
            units = [value] if isinstance(value, str) else list(value or ())
            self._units[kind][number] = self._by_id[kind][row] = [unit for unit in units if unit]

    def _of_text(self, text: str, seen: frozenset[int]) -> set[str]:
        units: set[str] = set()
        for kind, numbers in citations.cited(text).items():
            for number in numbers:
                if kind == "reports":
                    units |= self._of_report(number, seen)
                else:
                    units.update(self._units[kind].get(number, ()))
        return units

    def _of_report(self, community: int, seen: frozenset[int]) -> set[str]:
        report = self._reports.get(community)
        if report is None or community in seen:
            return set()
        seen = seen | {community}
        texts = [report["summary"] or ""]
        texts += [f"{f['summary']}\n{f['explanation']}" for f in report["findings"] or ()]
        return self._of_text("\n".join(texts), seen) or self._of_evidence(report, seen)

    def _of_evidence(self, report: Mapping[str, Any], seen: frozenset[int]) -> set[str]:
        evidence = report.get("evidence") or "{}"
        record = orjson.loads(evidence) if isinstance(evidence, str) else evidence
        units: set[str] = set()
        for kind, found in self._by_id.items():
            for row in record.get(kind, ()):
                units.update(found.get(row, ()))
        for community in (*record.get("reports", ()), *record.get("titles", ())):
            units |= self._of_report(community, seen)
        return units

    def _sorted(self, units: Iterable[str]) -> list[str]:
        known = [unit for unit in units if unit in self._order]
        return sorted(known, key=lambda unit: (self._order[unit], unit))


def finding_sources(report: Mapping[str, Any], index: int, sources: Sources) -> list[str]:
    """Return the ids of the text units that a finding of a report row rests on, through child reports too."""
    return sources.finding(report, index)
