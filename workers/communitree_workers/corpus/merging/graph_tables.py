"""A graph → the tables entities, relationships, covariates, and what each text unit holds.

Ids and titles that many rows repeat are dictionary columns here: `tables.io` writes them as plain strings, a slice of
the table at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from communitree_shared.contract.tables import COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS, WEIGHT_SCALE
from communitree_workers.corpus.merging.graph import Graph, Ints, hex_column, slices, unique_pairs
from communitree_workers.tables.columns import one_chunk
from communitree_workers.tables.io import Tables, empty, from_rows

#: Rows whose ids are Python objects at a time.
_SLICE = 100_000


def assemble(units: pa.Table, graph: Graph) -> tuple[Tables, dict[str, Any]]:
    """Return the tables of a graph and its counts. Rows are numbered as in the graph, in the order of titles.

    `units` is the table `text_units`; it comes back with what its rows name.
    """
    ids = graph.ids
    degree = np.bincount(np.concatenate([graph.edge_a, graph.edge_b]), minlength=len(ids)).astype(np.int64)
    edge_ids = _edge_ids(graph)
    claims, claim_units = _covariates(graph, units)
    stats = _counts(graph, degree, units.num_rows)
    columns = {
        "entity_ids": lists(graph.mention_unit, graph.mention_entity, units.num_rows, ids),
        "relationship_ids": lists(graph.edge_unit_unit, graph.edge_unit_edge, units.num_rows, edge_ids),
        "covariate_ids": lists(*claim_units, units.num_rows, one_chunk(claims["id"])),
    }
    for name, column in columns.items():
        at = units.schema.get_field_index(name)
        units = units.set_column(at, name, column) if at >= 0 else units.append_column(name, column)
    return {
        ENTITIES: _entities(graph, degree, units["id"]),
        RELATIONSHIPS: _relationships(graph, edge_ids, degree, units["id"]),
        COVARIATES: claims,
        TEXT_UNITS: units,
    }, stats


def _entities(graph: Graph, degree: Ints, unit_ids: pa.ChunkedArray) -> pa.Table:
    count = len(graph.ids)
    if not count:
        return empty(ENTITIES)
    return pa.table(
        {
            "id": graph.ids,
            "human_readable_id": np.arange(count),
            "title": graph.titles,
            "type": graph.types,
            "description": graph.descriptions,
            "text_unit_ids": lists(graph.mention_entity, graph.mention_unit, count, one_chunk(unit_ids)),
            "frequency": np.bincount(graph.mention_entity, minlength=count),
            "degree": degree,
            "aliases": graph.aliases,
        }
    )


def _relationships(graph: Graph, edge_ids: pa.Array, degree: Ints, unit_ids: pa.ChunkedArray) -> pa.Table:
    count = len(edge_ids)
    if not count:
        return empty(RELATIONSHIPS)
    titles = graph.titles.cast(pa.string())
    return pa.table(
        {
            "id": edge_ids,
            "human_readable_id": np.arange(count),
            "source": _named(graph.edge_a, titles),
            "target": _named(graph.edge_b, titles),
            "description": graph.edge_descriptions,
            "weight": graph.edge_weight / WEIGHT_SCALE,
            "combined_degree": degree[graph.edge_a] + degree[graph.edge_b],
            "text_unit_ids": lists(graph.edge_unit_edge, graph.edge_unit_unit, count, one_chunk(unit_ids)),
            "source_id": _named(graph.edge_a, graph.ids),
            "target_id": _named(graph.edge_b, graph.ids),
        }
    )


def _covariates(graph: Graph, units: pa.Table) -> tuple[pa.Table, tuple[Ints, Ints]]:
    """Return the claims, ordered by text unit, subject and words, and (text unit, row) of each.

    One that is said twice in a text unit stands once.
    """
    if not graph.claims.num_rows:
        none = np.zeros(0, dtype=np.int64)
        return empty(COVARIATES), (none, none)
    claims = graph.claims
    unit_ids = one_chunk(units["id"])
    subject = pa.array(claims["subject"].to_numpy())
    other = claims["object"].to_numpy()
    known = pa.array(other, mask=other < 0)
    claims = claims.append_column("entity_id", graph.ids.take(subject)).append_column(
        "object_key", graph.ids.take(known)
    )
    claims = claims.append_column("subject_id", graph.titles.take(subject).cast(pa.string()))
    claims = claims.append_column("object_id", graph.titles.take(known).cast(pa.string()))
    claims = claims.append_column("text_unit_id", unit_ids.take(claims["unit"]))
    rows: dict[str, dict[str, Any]] = {}
    for part in claims.to_batches(_SLICE):
        for row in part.to_pylist():
            rows.setdefault(_claim_id(row), row)
    ordered = [
        {
            **row,
            "id": identity,
            "covariate_type": "claim",
            "object_id": "NONE" if row["object_id"] is None else row["object_id"],
        }
        for identity, row in rows.items()
    ]
    ordered.sort(key=lambda row: (row["unit"], row["subject_id"], row["description"], row["id"]))
    unit = np.asarray([row["unit"] for row in ordered], dtype=np.int64)
    table = from_rows(COVARIATES, [{**row, "human_readable_id": n} for n, row in enumerate(ordered)])
    return table, unique_pairs(unit, np.arange(len(ordered)), len(ordered))


def _claim_id(row: dict[str, Any]) -> str:
    parts = (
        row["text_unit_id"],
        row["entity_id"],
        row["object_key"] or "",
        row["type"],
        row["status"],
        row["description"],
    )
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def lists(group: Ints, value: Ints, size: int, names: pa.Array) -> pa.Array:
    """Return for each of `size` groups the names of its values, in ascending order of the values."""
    order = np.lexsort((value, group))
    offsets = np.searchsorted(group[order], np.arange(size + 1))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _named(value[order], names))


def _named(number: Ints, names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(number.astype(np.int32)), names)


def _edge_ids(graph: Graph) -> pa.Array:
    """Return hashes of both ends' ids, whatever the direction."""
    names = [identity.encode() for part in slices(graph.ids) for identity in part.to_pylist()]

    def made() -> Iterator[str]:
        for start in range(0, len(graph.edge_a), _SLICE):
            a, b = (ends[start : start + _SLICE].tolist() for ends in (graph.edge_a, graph.edge_b))
            for one, other in zip(a, b, strict=True):
                lower, higher = sorted((names[one], names[other]))
                yield hashlib.sha256(lower + b"|" + higher).hexdigest()[:32]

    return hex_column(made())


def _counts(graph: Graph, degree: Ints, text_units: int) -> dict[str, Any]:
    busiest = np.lexsort((np.arange(len(degree)), -degree))[:20]
    return {
        "entities": len(graph.ids),
        "relationships": len(graph.edge_a),
        "claims": graph.claims.num_rows,
        "isolated": int((degree == 0).sum()),
        "text_units_without_entities": text_units - len(np.unique(graph.mention_unit)),
        "most_connected": [[graph.titles[n].as_py(), int(degree[n])] for n in busiest.tolist()],
        **graph.notes,
    }
