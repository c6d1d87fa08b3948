"""Results of a model → a graph: rows with one unified title are one entity, rows with the same ends one edge.

Columns of strings and numbers throughout; the order of results and of rows within them changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from communitree_shared.tables import WEIGHT_SCALE
from communitree_workers.corpus.graph import Graph, unique_pairs
from communitree_workers.corpus.titles import unify

#: An edge end or a claim's subject that is no entity of its own reply.
_UNNAMED_TYPE = ""
_MOST_ALIASES = 10


def unite(results: Iterable[dict[str, Any]], text_units: pa.Table) -> Graph:
    """Return the graph of a model's results (see `extract_model`).

    A text unit with several results, or one that is not in `text_units`, keeps the first and loses the others, counted.
    An edge end that no entity row names becomes an entity without description. Loops are left out and counted.
    """
    ordered, notes = _ordered(results, text_units)
    rows: list[tuple[str, str, str, str, int]] = []  # key, title, type, description, unit
    edges: list[tuple[str, str, str, int, int]] = []  # key, key, description, weight, unit
    claims: list[dict[str, Any]] = []
    for unit, result in ordered:
        named = set()
        for e in result.get("entities", []):
            rows.append((_unify(e["title"]), _plain(e["title"]), e["type"], e["description"], unit))
            named.add(rows[-1][0])
        ends = [(r["source"], r["target"]) for r in result.get("relationships", [])]
        ends += [(c["subject"], c["object"] or c["subject"]) for c in result.get("claims", [])]
        for title in sorted({title for pair in ends for title in pair}):
            if _unify(title) not in named:
                named.add(_unify(title))
                rows.append((_unify(title), _plain(title), _UNNAMED_TYPE, "", unit))
                notes["unnamed_ends"] += 1
        for r in result.get("relationships", []):
            one, other = sorted((_unify(r["source"]), _unify(r["target"])))
            if one == other:
                notes["loops"] += 1
                continue
            weight = max(1, round(float(r["strength"]) * WEIGHT_SCALE))
            edges.append((one, other, r["description"], weight, unit))
        claims += [{**c, "unit": unit} for c in result.get("claims", [])]
    graph = _entities(rows, text_units.num_rows)
    _edges(graph, edges, text_units.num_rows)
    _claims(graph, claims)
    graph.notes = notes
    return graph


def _ordered(
    results: Iterable[dict[str, Any]], text_units: pa.Table
) -> tuple[list[tuple[int, dict[str, Any]]], dict[str, Any]]:
    """Return the results in the order of their text units, and the notes so far."""
    number = {identity: n for n, identity in enumerate(text_units["id"].to_pylist())}
    notes: dict[str, Any] = dict.fromkeys(("lost", "calls", "failed_calls", "unnamed_ends", "loops", "strays"), 0)
    by_unit: dict[int, dict[str, Any]] = {}
    for result in results:
        unit = number.get(result["unit"], -1)
        if unit < 0 or unit in by_unit:
            notes["strays"] += 1
            continue
        by_unit[unit] = result
        for name in ("lost", "calls", "failed_calls"):
            notes[name] += int(result.get(name, 0))
    return sorted(by_unit.items()), notes


@lru_cache(maxsize=100_000)
def _unify(title: str) -> str:
    return unify(title)


def _plain(title: str) -> str:
    return " ".join(title.split())


def _entities(rows: list[tuple[str, str, str, str, int]], units: int) -> Graph:
    graph = Graph()
    keys = np.asarray(sorted({row[0] for row in rows}), dtype=object)
    number = {key: n for n, key in enumerate(keys.tolist())}
    entity = np.asarray([number[row[0]] for row in rows], dtype=np.int64)
    unit = np.asarray([row[4] for row in rows], dtype=np.int64)
    graph.keys = keys.tolist()
    order = np.argsort(entity, kind="stable")  # rows are in the order of text units already
    bounds = np.searchsorted(entity[order], np.arange(len(keys) + 1)).tolist()
    for n in range(len(keys)):
        group = [rows[i] for i in order[bounds[n] : bounds[n + 1]].tolist()]
        titles = _by_count(row[1] for row in group)
        graph.titles.append(titles[0])
        graph.aliases.append(titles[1 : 1 + _MOST_ALIASES])
        graph.types.append(next(iter(_by_count(row[2] for row in group if row[2])), ""))
        graph.descriptions.append(_united([row[3] for row in group]))
    graph.mention_entity, graph.mention_unit = unique_pairs(entity, unit, units)
    return graph


def _edges(graph: Graph, edges: list[tuple[str, str, str, int, int]], units: int) -> None:
    number = {key: n for n, key in enumerate(graph.keys)}
    size = max(len(graph.keys), 1)
    pair = np.asarray([number[e[0]] * size + number[e[1]] for e in edges], dtype=np.int64)
    unique, edge = np.unique(pair, return_inverse=True)
    weight = np.zeros(len(unique), dtype=np.int64)
    np.add.at(weight, edge, np.asarray([e[3] for e in edges], dtype=np.int64))
    graph.edge_a, graph.edge_b, graph.edge_weight = unique // size, unique % size, weight
    order = np.argsort(edge, kind="stable")
    bounds = np.searchsorted(edge[order], np.arange(len(unique) + 1)).tolist()
    graph.edge_descriptions = [
        _united([edges[i][2] for i in order[bounds[n] : bounds[n + 1]].tolist()]) for n in range(len(unique))
    ]
    unit = np.asarray([e[4] for e in edges], dtype=np.int64)
    graph.edge_unit_edge, graph.edge_unit_unit = unique_pairs(edge.astype(np.int64), unit, units)


def _claims(graph: Graph, claims: list[dict[str, Any]]) -> None:
    number = {key: n for n, key in enumerate(graph.keys)}
    for claim in claims:
        subject = number[_unify(claim["subject"])]
        other = number[_unify(claim["object"])] if claim["object"] else -1
        graph.claims.append({**claim, "subject": subject, "object": other})


def _by_count(values: Iterable[str]) -> list[str]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts, key=lambda value: (-counts[value], value))


def _united(descriptions: list[str]) -> str:
    """Different descriptions one under the other, in the order of the text units; those of one unit by themselves."""
    return "\n".join(dict.fromkeys(d for d in descriptions if d))
