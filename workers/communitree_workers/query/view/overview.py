"""The short overview before every batch: the heaviest roots, what ties them, and the weightiest names by type.

It is the same in every batch of a version, so that scores can be put on one scale by its rows (`scores.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from communitree_shared.contract.options import BatchOptions
from communitree_shared.contract.tables import ENTITIES, RELATIONSHIPS
from communitree_shared.tokens import count, truncate
from communitree_workers.query.view.cells import flatten
from communitree_workers.query.view.kinds import KINDS
from communitree_workers.tables.mass import relationship_ends

#: Tokens of a root's summary in the overview.
_SUMMARY_TOKENS = 60
_ROOTS = 24
_PAIRS = 40
_NAMES = 12
_TYPES = 6


@dataclass(frozen=True)
class Overview:
    """`roots`: heaviest first, `[id, title, beginning of its summary]`; `pairs`: `[id, id, relationships]`, most first;
    `names`: type → titles of the weightiest entities.
    """

    roots: list[tuple[int, str, str]] = field(default_factory=list)
    pairs: list[tuple[int, int, int]] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"roots": self.roots, "pairs": self.pairs, "names": self.names}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Overview:
        """Return the overview of `to_json`."""
        return cls([(r[0], r[1], r[2]) for r in data["roots"]], [(p[0], p[1], p[2]) for p in data["pairs"]],
                   dict(data["names"]))  # fmt: skip

    def render(self, options: BatchOptions, encoding: str) -> tuple[str, list[int]]:
        """Return the overview's lines within its tokens, and the ids of the rows that every batch scores.

        A root's line begins with `[id]`, so that it cannot be taken for a row of the table.
        """
        budget = options.overview_tokens
        if budget <= 0:
            return "", []
        parts: list[str] = []
        shown: list[int] = []
        left = budget
        # A kind is as free as a title: no line of it shall pass for a heading.
        names = [f"{flatten(kind).lstrip('# ')}: {', '.join(titles)}" for kind, titles in self.names.items()]
        for line in names:
            cost = count(line + "\n", encoding)
            if cost <= min(left, budget // 4):
                parts.append(line)
                left -= cost
            if budget - left > budget // 4:
                break
        roots_left = left - budget // 8
        for id, title, summary in self.roots:
            line = f"[{id}] {flatten(title)}: {flatten(summary)}"
            cost = count(line + "\n", encoding)
            if cost > roots_left:
                line = f"[{id}] {flatten(title)}"
                cost = count(line + "\n", encoding)
            if cost <= roots_left:
                parts.append(line)
                shown.append(id)
                roots_left -= cost
                left -= cost
        for a, b, n in self.pairs:
            line = f"[{a}] – [{b}]: {n}"
            cost = count(line + "\n", encoding)
            if a in shown and b in shown and cost <= left:
                parts.append(line)
                left -= cost
        return "".join(part + "\n" for part in parts), shown[: options.anchors]


def build_overview(
    roots: list[tuple[int, str, str]],
    root_of_entity: NDArray[np.int64],
    entities: pa.Table,
    relationships: pa.Table,
    encoding: str,
) -> Overview:
    """Make the overview of a version.

    Args:
        roots: `(community, title, summary)` of all roots, heaviest first.
        root_of_entity: root community of each entity row, -1 for none.
        entities: the entities table, rows as in `root_of_entity`.
        relationships: the relationships table.
        encoding: the token counter's encoding.
    """
    shown = [(id, title, truncate(summary, _SUMMARY_TOKENS, encoding)) for id, title, summary in roots[:_ROOTS]]
    return Overview(shown, _pairs(shown, root_of_entity, entities, relationships), _names(entities))


def _pairs(
    shown: list[tuple[int, str, str]], root_of_entity: NDArray[np.int64], entities: pa.Table, relationships: pa.Table
) -> list[tuple[int, int, int]]:
    if not relationships.num_rows or not entities.num_rows:
        return []
    a, b = relationship_ends({ENTITIES: entities, RELATIONSHIPS: relationships})
    known = (a >= 0) & (b >= 0)
    left, right = root_of_entity[a[known]], root_of_entity[b[known]]
    wanted = np.array([id for id, _, _ in shown], dtype=np.int64)
    keep = (left != right) & np.isin(left, wanted) & np.isin(right, wanted)
    low, high = np.minimum(left, right)[keep], np.maximum(left, right)[keep]
    pairs, counts = np.unique(np.stack((low, high), axis=1), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -counts))[:_PAIRS]
    return [(int(pairs[i, 0]), int(pairs[i, 1]), int(counts[i])) for i in order]


def _names(entities: pa.Table) -> dict[str, list[str]]:
    if not entities.num_rows:
        return {}
    rows = list(
        zip(
            entities["mass"].to_pylist(),
            entities["degree"].to_pylist(),
            entities["title"].to_pylist(),
            entities["type"].to_pylist(),
            strict=True,
        )
    )
    by_type: dict[str, list[tuple[int, str]]] = {}
    for mass, degree, title, kind in rows:
        kind = (kind or "").strip().lower()
        if kind and kind != "document" and title:
            by_type.setdefault(kind, []).append((-(mass or 0) or -(degree or 0), flatten(title)))
    asked_for = frozenset().union(*KINDS.values())  # people, places and the like first: questions ask for these
    heavy = sorted(
        by_type.items(), key=lambda item: (item[0] not in asked_for, sum(weight for weight, _ in item[1]), item[0])
    )[:_TYPES]
    return {kind: [title for _, title in sorted(items)[:_NAMES]] for kind, items in heavy}
