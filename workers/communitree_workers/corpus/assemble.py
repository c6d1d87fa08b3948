"""A graph → the tables entities, relationships, covariates, and what each text unit holds.

Ids and titles that many rows repeat are dictionary columns here: `tables.io` writes them as plain strings, a slice of
the table at a time.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.tables import COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS, WEIGHT_SCALE
from communitree_workers.corpus.graph import Graph, Ints, unique_pairs
from communitree_workers.corpus.titles import entity_id
from communitree_workers.tables.columns import one_chunk
from communitree_workers.tables.io import Tables, empty, from_rows

#: Rows whose ids are Python objects at a time.
_SLICE = 100_000


def assemble(units: pa.Table, graph: Graph) -> tuple[Tables, dict[str, Any]]:
    """Return the tables of a graph and its counts. Rows are numbered in the order of titles.

    `units` is the table `text_units`; it comes back with what its rows name.
    """
    ids = _hex(entity_id(key) for part in _slices(graph.keys) for key in part.to_pylist())
    order = pc.sort_indices(
        pa.table({"title": graph.titles, "id": ids}), [("title", "ascending"), ("id", "ascending")]
    ).to_numpy()
    order = order.astype(np.int64)
    degree = np.bincount(np.concatenate([graph.edge_a, graph.edge_b]), minlength=len(ids)).astype(np.int64)
    edge_ids = _edge_ids(graph, ids)
    claims, claim_units = _covariates(graph, ids, units)
    stats = _counts(graph, degree, units.num_rows)
    columns = {
        "entity_ids": lists(graph.mention_unit, graph.mention_entity, units.num_rows, ids),
        "relationship_ids": lists(graph.edge_unit_unit, graph.edge_unit_edge, units.num_rows, edge_ids),
        "covariate_ids": lists(*claim_units, units.num_rows, one_chunk(claims["id"])),
    }
    for name, column in columns.items():
        at = units.schema.get_field_index(name)
        units = units.set_column(at, name, column) if at >= 0 else units.append_column(name, column)
    relationships = _relationships(graph, ids, order, edge_ids, degree, units["id"])
    return {
        ENTITIES: _entities(graph, ids, order, degree, units["id"]),
        RELATIONSHIPS: relationships,
        COVARIATES: claims,
        TEXT_UNITS: units,
    }, stats


def _entities(graph: Graph, ids: pa.Array, order: Ints, degree: Ints, unit_ids: pa.ChunkedArray) -> pa.Table:
    if not len(ids):
        return empty(ENTITIES)
    table = pa.table(
        {
            "id": ids,
            "title": graph.titles,
            "type": graph.types,
            "description": graph.descriptions,
            "text_unit_ids": lists(graph.mention_entity, graph.mention_unit, len(ids), one_chunk(unit_ids)),
            "frequency": np.bincount(graph.mention_entity, minlength=len(ids)),
            "degree": degree,
            "aliases": graph.aliases,
        }
    ).take(pa.array(order))
    return table.append_column("human_readable_id", pa.array(np.arange(len(ids))))


def _relationships(
    graph: Graph, ids: pa.Array, order: Ints, edge_ids: pa.Array, degree: Ints, unit_ids: pa.ChunkedArray
) -> pa.Table:
    if not len(edge_ids):
        return empty(RELATIONSHIPS)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    low = np.minimum(number[graph.edge_a], number[graph.edge_b])
    high = np.maximum(number[graph.edge_a], number[graph.edge_b])
    rows = np.lexsort((high, low))
    source, target = order[low[rows]], order[high[rows]]
    titles = graph.titles.cast(pa.string())
    at = pa.array(rows)
    by_edge = lists(graph.edge_unit_edge, graph.edge_unit_unit, len(edge_ids), one_chunk(unit_ids))
    return pa.table(
        {
            "id": edge_ids.take(at),
            "source": _named(source, titles),
            "target": _named(target, titles),
            "description": graph.edge_descriptions.take(at),
            "weight": graph.edge_weight[rows] / WEIGHT_SCALE,
            "combined_degree": degree[source] + degree[target],
            "text_unit_ids": by_edge.take(at),
            "source_id": _named(source, ids),
            "target_id": _named(target, ids),
            "human_readable_id": np.arange(len(rows)),
        }
    )


def _covariates(graph: Graph, ids: pa.Array, units: pa.Table) -> tuple[pa.Table, tuple[Ints, Ints]]:
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
    claims = claims.append_column("entity_id", ids.take(subject)).append_column("object_key", ids.take(known))
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


def _edge_ids(graph: Graph, ids: pa.Array) -> pa.Array:
    names = [identity.encode() for identity in ids.to_pylist()]

    def made() -> Any:
        for start in range(0, len(graph.edge_a), _SLICE):
            a, b = (ends[start : start + _SLICE].tolist() for ends in (graph.edge_a, graph.edge_b))
            for one, other in zip(a, b, strict=True):
                lower, higher = sorted((names[one], names[other]))
                yield hashlib.sha256(lower + b"|" + higher).hexdigest()[:32]  # as `titles.relationship_id`

    return _hex(made())


def _hex(ids: Any) -> pa.Array:
    """Return ids of 32 characters as a column, without a list of them."""
    data = bytearray()
    for identity in ids:
        data += identity.encode()
    count = len(data) // 32
    offsets = pa.py_buffer(np.arange(0, 32 * count + 1, 32, dtype=np.int32))
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(bytes(data)))


def _slices(column: pa.Array) -> Any:
    return (column.slice(start, _SLICE) for start in range(0, len(column), _SLICE))


def _counts(graph: Graph, degree: Ints, text_units: int) -> dict[str, Any]:
    busiest = np.lexsort((np.arange(len(degree)), -degree))[:20]
    return {
        "entities": len(graph.keys),
        "relationships": len(graph.edge_a),
        "claims": graph.claims.num_rows,
        "isolated": int((degree == 0).sum()),
        "text_units_without_entities": text_units - len(np.unique(graph.mention_unit)),
        "most_connected": [[graph.titles[n].as_py(), int(degree[n])] for n in busiest.tolist()],
        **graph.notes,
    }
