"""What stands in one community's prompt, and what is known of the rows that do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from communitree_workers.report.evidence import rows as rendering
from communitree_workers.report.evidence.members import Community, Corpus
from communitree_workers.report.records import KINDS, LISTED

#: How a row is known, the better one counts.
OMITTED, AGGREGATED, THROUGH, DIRECT = range(4)
STATES = ("omitted", "aggregated", "through", "direct")


@dataclass
class Contents:
    """The chosen evidence of a community.

    `rows` are positions in the tables, `tails` the rows as rendered without their number, both in the order of the
    prompt. `reports` and `titles` are (community, tail) of children; `pairs` are (community, community, number of
    relationships, tail, the children's keys). `tokens` counts the data with its headings. `lost` and `pale` are the
    positions of omitted and of only aggregated rows, most important first; `through` is a number for each kind.
    """

    rows: dict[str, list[int]]
    tails: dict[str, list[str]]
    tokens: int
    reports: list[tuple[int, str]] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)
    pairs: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    through: dict[str, int] = field(default_factory=dict)
    pale: dict[str, list[int]] = field(default_factory=dict)
    lost: dict[str, list[int]] = field(default_factory=dict)
    absent: list[int] = field(default_factory=list)
    shortened: dict[str, list[int]] = field(default_factory=dict)

    def data(self, corpus: Corpus) -> str:
        """Return the text of the tables: counted and child rows first, then each kind's."""
        parts = []
        for kind, some in (("reports", self.reports), ("titles", self.titles)):
            if some:
                parts += [rendering.HEADINGS[kind], *(f"{number},{tail}\n" for number, tail in some)]
        if self.pairs:
            parts += [rendering.HEADINGS["pairs"], *(f"{a},{b},{tail}\n" for a, b, _, tail, _ in self.pairs)]
        for kind in KINDS:
            if self.rows[kind]:
                numbers = corpus.numbers[kind]
                parts.append(rendering.HEADINGS[kind])
                parts += [f"{numbers[at]},{tail}\n" for at, tail in zip(self.rows[kind], self.tails[kind], strict=True)]
        return "".join(parts)

    def canonical(self) -> str:
        """Return the data without any number of this version: what the evidence hash covers. Rows hold no line feed."""
        parts = [f"\x1d{kind}\n" + "\n".join(self.tails[kind]) for kind in KINDS if self.tails[kind]]
        parts += ["\x1dreports\n" + "\n".join(tail for _, tail in self.reports)]
        parts += ["\x1dtitles\n" + "\n".join(tail for _, tail in self.titles)]
        parts += ["\x1dpairs\n" + "\n".join(f"{keys},{tail}" for *_, tail, keys in self.pairs)]
        return "".join(parts)

    def told(self) -> bool:
        """Say whether anything in it is more than a name."""
        if self.reports or self.titles:
            return True
        return any(not tail.endswith(",") for kind in KINDS for tail in self.tails[kind])

    def record(self, corpus: Corpus, community: Community) -> dict[str, Any]:
        """Return the `evidence` JSON of the report's row."""
        counts: dict[str, Mapping[str, int]] = {
            "direct": {kind: len(self.rows[kind]) for kind in KINDS},
            "through": {kind: self.through.get(kind, 0) for kind in KINDS},
            "aggregated": {kind: len(self.pale.get(kind, ())) for kind in KINDS},
            "omitted": {kind: len(self.lost.get(kind, ())) for kind in KINDS},
            "total": {kind: len(community.rows[kind]) for kind in KINDS},
        }
        record: dict[str, Any] = {kind: _ids(corpus, kind, self.rows[kind]) for kind in KINDS}
        record["reports"] = [number for number, _ in self.reports]
        record["titles"] = [number for number, _ in self.titles]
        record["pairs"] = [[a, b, n] for a, b, n, _, _ in self.pairs]
        record["counts"] = counts
        if any(self.shortened.values()):
            record["shortened"] = {kind: _ids(corpus, kind, rows) for kind, rows in self.shortened.items() if rows}
        return record

    def omitted(self, corpus: Corpus) -> dict[str, Any]:
        """Return the `omitted` JSON of the report's row: every row counted, at most 1,000 ids of each kind listed."""
        return {
            **{kind: len(self.lost.get(kind, ())) for kind in KINDS},
            "reports": self.absent,
            "ids": {kind: _ids(corpus, kind, rows[:LISTED]) for kind, rows in self.lost.items() if rows},
        }

    def gaps(self) -> dict[str, dict[str, list[int]]]:
        """Return the positions of rows that a parent cannot know through this report."""
        return {
            name: {kind: rows for kind, rows in known.items() if rows}
            for name, known in (("omitted", self.lost), ("aggregated", self.pale))
        }


def whole(corpus: Corpus, community: Community, tokens: int) -> Contents:
    """Return all rows of a community."""
    rows = {kind: found.tolist() for kind, found in community.rows.items()}
    tails = {kind: list(map(corpus.tails(kind).__getitem__, rows[kind])) if rows[kind] else [] for kind in KINDS}
    return Contents(rows, tails, tokens)


def _ids(corpus: Corpus, kind: str, rows: list[int]) -> list[str]:
    return list(map(corpus.names(kind).__getitem__, rows)) if rows else []
