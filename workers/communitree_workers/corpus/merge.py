"""Shards and per-unit results → the tables of a graph, whatever the number and order of the shards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from communitree_shared.errors import IntegrityError
from communitree_shared.options import ExtractOptions
from communitree_shared.tables import COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS, WEIGHT_SCALE
from communitree_workers.corpus.graph import Graph, Ints, unique_pairs
from communitree_workers.corpus.long_descriptions import with_descriptions
from communitree_workers.corpus.shards import Shard
from communitree_workers.corpus.titles import entity_id, relationship_id
from communitree_workers.corpus.unite import unite
from communitree_workers.corpus.weigh import weigh
from communitree_workers.tables.io import Tables, conform, empty, from_rows


def merge(
    tables: Tables,
    shards: Iterable[Shard | bytes | dict[str, Any]],
    options: ExtractOptions,
    *,
    keep_long: bool = False,
) -> tuple[Tables, dict[str, Any]]:
    """Return the tables with entities, relationships and covariates, and counts of what was merged.

    `tables` holds documents and text_units. `shards` are what extraction made, in any number and order: shards of the
    built-in extractor or results of a model (one a text unit), as objects or as the bytes that were stored. Text units
    name what they hold; one that holds nothing is fine. Descriptions above `max_description_tokens` stay whole with
    `keep_long`, for `long_descriptions` to find; else they lose their last parts, counted.

    Raises:
        IntegrityError: the shards are of both kinds.
    """
    units = tables[TEXT_UNITS]
    built_in: list[Shard] = []
    results: list[dict[str, Any]] = []
    for item in shards:
        value = read_shard(item) if isinstance(item, bytes) else item
        if isinstance(value, Shard):
            built_in.append(value)
        else:
            results.append(value)
    if results and built_in:
        raise IntegrityError("Shards of the built-in extractor and results of a model cannot be merged into one graph.")
    graph = unite(results, units) if results else weigh(built_in, units)
    merged, stats = assemble(tables, graph)
    if not keep_long:
        merged, stats["descriptions_cut"] = with_descriptions(merged, {}, options)
    return merged, stats


def read_shard(data: bytes) -> Shard | dict[str, Any]:
    """Return what stored bytes hold: JSON of a model's result, or a shard of the built-in extractor."""
    if data[:1] == b"{":
        value: dict[str, Any] = orjson.loads(data)
        return value
    return Shard.from_bytes(data)


def assemble(tables: Tables, graph: Graph) -> tuple[Tables, dict[str, Any]]:
    """Return the tables of a graph, and its counts. Rows are numbered in the order of titles."""
    units = tables[TEXT_UNITS]
    ids = [entity_id(key) for key in graph.keys]
    order = np.asarray(sorted(range(len(ids)), key=lambda n: (graph.titles[n], ids[n])), dtype=np.int64)
    degree = np.bincount(np.concatenate([graph.edge_a, graph.edge_b]), minlength=len(ids)).astype(np.int64)
    entities = _entities(graph, ids, order, degree, units)
    edge_ids = [
        relationship_id(ids[a], ids[b]) for a, b in zip(graph.edge_a.tolist(), graph.edge_b.tolist(), strict=True)
    ]
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    low, high = (
        np.minimum(number[graph.edge_a], number[graph.edge_b]),
        np.maximum(number[graph.edge_a], number[graph.edge_b]),
    )
    edge_order = np.lexsort((high, low))
    relationships = _relationships(graph, ids, order[low], order[high], edge_ids, edge_order, degree, units)
    out = dict(tables)
    out[ENTITIES], out[RELATIONSHIPS], out[COVARIATES] = entities, relationships, _covariates(graph, ids, units)
    unit_ids = units["id"].to_pylist()
    claim_number = {row: n for n, row in enumerate(out[COVARIATES]["id"].to_pylist())}
    claim_units = np.asarray([c["unit"] for c in graph.claims], dtype=np.int64)
    claims = np.asarray([claim_number[_claim_id(c, ids, unit_ids)] for c in graph.claims], dtype=np.int64)
    claim_units, claims = unique_pairs(claim_units, claims, len(claim_number))
    columns = {
        "entity_ids": lists(graph.mention_unit, graph.mention_entity, units.num_rows, ids),
        "relationship_ids": lists(graph.edge_unit_unit, graph.edge_unit_edge, units.num_rows, edge_ids),
        "covariate_ids": lists(claim_units, claims, units.num_rows, list(claim_number)),
    }
    for name, column in columns.items():
        at = units.schema.get_field_index(name)
        units = units.set_column(at, name, column) if at >= 0 else units.append_column(name, column)
    out[TEXT_UNITS] = conform(TEXT_UNITS, units)
    return out, _counts(graph, degree, units.num_rows)


def _entities(graph: Graph, ids: list[str], order: Ints, degree: Ints, units: pa.Table) -> pa.Table:
    if not ids:
        return empty(ENTITIES)
    unit_ids = units["id"].to_pylist()
    by_entity = lists(graph.mention_entity, graph.mention_unit, len(ids), unit_ids)
    table = pa.table(
        {
            "id": ids,
            "title": graph.titles,
            "type": graph.types,
            "description": graph.descriptions,
            "text_unit_ids": by_entity,
            "frequency": np.bincount(graph.mention_entity, minlength=len(ids)),
            "degree": degree,
            "aliases": pa.array(graph.aliases, pa.list_(pa.string())),
        }
    ).take(pa.array(order))
    return conform(ENTITIES, table.append_column("human_readable_id", pa.array(np.arange(len(ids)))))


def _relationships(
    graph: Graph,
    ids: list[str],
    source: Ints,
    target: Ints,
    edge_ids: list[str],
    order: Ints,
    degree: Ints,
    units: pa.Table,
) -> pa.Table:
    if not edge_ids:
        return empty(RELATIONSHIPS)
    by_edge = lists(graph.edge_unit_edge, graph.edge_unit_unit, len(edge_ids), units["id"].to_pylist())
    titles, identifiers = pa.array(graph.titles), pa.array(ids)
    table = pa.table(
        {
            "id": edge_ids,
            "source": titles.take(pa.array(source)),
            "target": titles.take(pa.array(target)),
            "description": graph.edge_descriptions,
            "weight": graph.edge_weight / WEIGHT_SCALE,
            "combined_degree": degree[source] + degree[target],
            "text_unit_ids": by_edge,
            "source_id": identifiers.take(pa.array(source)),
            "target_id": identifiers.take(pa.array(target)),
        }
    ).take(pa.array(order))
    return conform(RELATIONSHIPS, table.append_column("human_readable_id", pa.array(np.arange(len(edge_ids)))))


def _covariates(graph: Graph, ids: list[str], units: pa.Table) -> pa.Table:
    """Return the claims, ordered by text unit, subject and words; one said twice in a text unit stands once."""
    unit_ids = units["id"].to_pylist()
    rows = {}
    for c in graph.claims:
        rows[_claim_id(c, ids, unit_ids)] = {
            "id": _claim_id(c, ids, unit_ids),
            "covariate_type": "claim",
            "type": c["type"],
            "description": c["description"],
            "subject_id": graph.titles[c["subject"]],
            "object_id": graph.titles[c["object"]] if c["object"] >= 0 else "NONE",
            "status": c["status"],
            "start_date": c["start_date"],
            "end_date": c["end_date"],
            "source_text": c["source_text"],
            "text_unit_id": unit_ids[c["unit"]],
            "entity_id": ids[c["subject"]],
            "order": c["unit"],
        }
    ordered = sorted(rows.values(), key=lambda row: (row["order"], row["subject_id"], row["description"], row["id"]))
    return from_rows(COVARIATES, [{**row, "human_readable_id": n} for n, row in enumerate(ordered)])


def _claim_id(claim: dict[str, Any], ids: list[str], unit_ids: list[str]) -> str:
    other = ids[claim["object"]] if claim["object"] >= 0 else ""
    parts = (
        unit_ids[claim["unit"]],
        ids[claim["subject"]],
        other,
        claim["type"],
        claim["status"],
        claim["description"],
    )
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def lists(group: Ints, value: Ints, size: int, names: list[str]) -> pa.Array:
    """Return for each of `size` groups the names of its values, in ascending order of the values."""
    order = np.lexsort((value, group))
    offsets = np.searchsorted(group[order], np.arange(size + 1))
    items = pa.array(names, pa.string()).take(pa.array(value[order]))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)


def _counts(graph: Graph, degree: Ints, text_units: int) -> dict[str, Any]:
    busiest = np.lexsort((np.arange(len(degree)), -degree))[:20]
    return {
        "entities": len(graph.keys),
        "relationships": len(graph.edge_a),
        "claims": len(graph.claims),
        "isolated": int((degree == 0).sum()),
        "text_units_without_entities": text_units - len(np.unique(graph.mention_unit)),
        "most_connected": [[graph.titles[n], int(degree[n])] for n in busiest.tolist()],
        **graph.notes,
    }
