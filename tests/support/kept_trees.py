"""Imported communities for tests: entities `e0…`, each with its own text unit, and trees given as member sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from communitree_shared.contract import tables as names
from communitree_workers.tables.io import Tables, empty, from_rows


def graph(titles: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> Tables:
    """Entities whose id is their title in lower case; a text unit `t-<id>` for each; relationships `r0…`."""
    ids = [title.lower() for title in titles]
    pairs = list(edges)
    within = {f"t-{e}": [f"r{i}" for i, pair in enumerate(pairs) if pair[0] == e] for e in ids}
    return {
        names.DOCUMENTS: from_rows(
            names.DOCUMENTS, [{"id": "d", "title": "d", "text_unit_ids": [f"t-{e}" for e in ids]}]
        ),
        names.TEXT_UNITS: from_rows(
            names.TEXT_UNITS,
            [
                {"id": f"t-{e}", "human_readable_id": i, "text": e, "document_id": "d", "entity_ids": [e],
                 "relationship_ids": within[f"t-{e}"]}
                for i, e in enumerate(ids)
            ],
        ),
        names.ENTITIES: from_rows(
            names.ENTITIES,
            [
                {"id": e, "human_readable_id": i, "title": e.upper(), "text_unit_ids": [f"t-{e}"]}
                for i, e in enumerate(ids)
            ],
        ),
        names.RELATIONSHIPS: from_rows(
            names.RELATIONSHIPS,
            [
                {"id": f"r{i}", "human_readable_id": i, "source": a.upper(), "target": b.upper(), "source_id": a,
                 "target_id": b, "weight": 1.0, "text_unit_ids": [f"t-{a}"]}
                for i, (a, b) in enumerate(pairs)
            ],
        ) if pairs else empty(names.RELATIONSHIPS),
        names.COVARIATES: empty(names.COVARIATES),
    }  # fmt: skip


def communities(rows: Sequence[tuple[int, int, int | None, Sequence[str]]], **more: Any) -> pa.Table:
    """Rows of (number, level, parent, members); `more`: number → further columns, as `c3={...}`."""
    made = [
        {
            "id": f"id-{number}", "community": number, "level": level, "parent": parent, "title": f"Community {number}",
            "entity_ids": list(members), "relationship_ids": [], **more.get(f"c{number}", {}),
        }
        for number, level, parent, members in rows
    ]  # fmt: skip
    return from_rows(names.COMMUNITIES, made)


def levels_count(table: pa.Table, level: int) -> int:
    """How many reports GraphRAG's `community_level` shows: all up to the level."""
    return sum(row["level"] <= level and row["kind"] != "remainder" for row in table.to_pylist())


def frontier(table: pa.Table, level: int) -> list[dict[str, Any]]:
    """The communities at a level and the leaves above it: each entity once."""
    return [
        row for row in table.to_pylist() if row["level"] == level or (row["level"] < level and row["is_leaf"])
    ]  # fmt: skip
