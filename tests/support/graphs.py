"""Small corpora in table form, and a slow, plain reading of what a tree has to be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from communitree_shared.contract.tables import COMMUNITIES, COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.tables.io import Tables, from_rows

Edge = tuple[str, str, float | None]


def corpus(
    titles: Sequence[str],
    edges: Sequence[Edge] = (),
    text: Sequence[tuple[str, Sequence[str]]] = (),
    covariates: Sequence[str] = (),
) -> Tables:
    """Return the tables of a corpus.

    Args:
        titles: of the entities, all different; the id of "X" is "id-X".
        edges: (title, title, weight); each gets the text units that both ends are in.
        text: for each text unit its document and the titles in it.
        covariates: for each covariate the title of its entity.
    """
    units = [f"t{i:03d}" for i in range(len(text))]
    within = {title: [units[i] for i, (_, names) in enumerate(text) if title in names] for title in titles}
    entities = [
        {"id": f"id-{title}", "human_readable_id": i, "title": title, "text_unit_ids": within[title]}
        for i, title in enumerate(titles)
    ]
    relationships = [
        {
            "id": f"r{i:03d}",
            "human_readable_id": i,
            "source": a,
            "target": b,
            "weight": weight,
            "text_unit_ids": [u for u in within.get(a, []) if u in within.get(b, [])],
        }
        for i, (a, b, weight) in enumerate(edges)
    ]
    rows = [
        {
            "id": units[i],
            "human_readable_id": i,
            "document_id": document,
            "n_tokens": 100,
            "entity_ids": [f"id-{name}" for name in names],
        }
        for i, (document, names) in enumerate(text)
    ]
    documents = list(dict.fromkeys(document for document, _ in text if document))
    claims = [
        {"id": f"c{i:03d}", "human_readable_id": i, "subject_id": title, "entity_id": f"id-{title}"}
        for i, title in enumerate(covariates)
    ]
    return {
        ENTITIES: from_rows(ENTITIES, entities),
        RELATIONSHIPS: from_rows(RELATIONSHIPS, relationships),
        TEXT_UNITS: from_rows(TEXT_UNITS, rows),
        DOCUMENTS: from_rows(
            DOCUMENTS, [{"id": d, "human_readable_id": i, "title": f"{d}.txt"} for i, d in enumerate(documents)]
        ),
        COVARIATES: from_rows(COVARIATES, claims),
    }


def clique(names: Sequence[str], weight: float = 1.0) -> list[Edge]:
    """Return all edges between these titles."""
    return [(a, b, weight) for i, a in enumerate(names) for b in names[i + 1 :]]


def nested(groups: int, size: int) -> Tables:
    """Return cliques in a ring, neighbours linked: with many groups, something that splits on two levels."""
    names = [[f"G{g:02d}N{i}" for i in range(size)] for g in range(groups)]
    edges = [edge for group in names for edge in clique(group)]
    edges += [(names[g][0], names[(g + 1) % groups][1], 0.3) for g in range(groups)]
    return corpus([name for group in names for name in group], edges)


def shuffled(tables: Tables, seed: int) -> Tables:
    """Return the same corpus with rows in another order and half of the edges turned round."""
    rng = random.Random(seed)
    out = {}
    for name, table in tables.items():
        rows = table.to_pylist()
        rng.shuffle(rows)
        if name == RELATIONSHIPS:
            for row in rows:
                if rng.random() < 0.5:
                    row["source"], row["target"] = row["target"], row["source"]
                    row["source_id"], row["target_id"] = row["target_id"], row["source_id"]
        out[name] = from_rows(name, rows) if rows else table
    return out


_WEIGHTS = st.one_of(
    st.sampled_from([1.0, 1.0, 2.5, 0.0, -3.0, float("nan"), float("inf"), 1e-9, 1e12]), st.none(), st.floats(0.1, 10)
)
_ODD = ["Alice", "ALICE", "alice", "R&amp;D", "R&D", "贾宝玉", "林黛玉", "é", "e\u0301", "", " ", '"quoted"']


@st.composite
def corpora(draw: st.DrawFn, most: int = 40) -> Tables:
    """Draw a corpus: stars, cliques, chains and loose ends, parallel and reversed edges, self-loops, odd titles."""
    count = draw(st.integers(0, most))
    titles = [_ODD[i] if i < len(_ODD) and i % 2 == count % 2 else f"E{i:02d}" for i in range(count)]
    edges: list[Edge] = []
    if count:
        for _ in range(draw(st.integers(0, 5))):
            size = draw(st.integers(1, min(count, 14)))
            begin = draw(st.integers(0, count - size))
            group = titles[begin : begin + size]
            shape = draw(st.sampled_from(["star", "clique", "chain", "again", "loop"]))
            weight = draw(_WEIGHTS)
            if shape == "star":
                edges += [(group[0], other, weight) for other in group[1:]]
            elif shape == "clique":
                edges += [(a, b, weight) for a, b, _ in clique(group)]
            elif shape == "chain":
                edges += [(a, b, weight) for a, b in pairwise(group)]
            elif shape == "again":
                edges += [(b, a, weight) for a, b, _ in edges[:size]]
            else:
                edges += [(group[0], group[0], weight)]
    text = []
    for _ in range(draw(st.integers(0, 12))):
        document = draw(st.sampled_from(["d1", "d2", "d3", ""]))
        names = draw(st.lists(st.sampled_from(titles), max_size=6, unique=True)) if titles else []
        text.append((document, names))
    covariates = draw(st.lists(st.sampled_from(titles), max_size=3)) if titles else []
    return corpus(titles, edges, text, covariates)


def rows_of(communities: pa.Table) -> list[dict[str, Any]]:
    """Return the communities as rows."""
    rows: list[dict[str, Any]] = communities.to_pylist()
    return rows


def faults_of(tables: Tables) -> list[str]:
    """Read the tree row by row and return what is wrong with it: the plain twin of `check_tree`."""
    rows = tables[COMMUNITIES].to_pylist()
    by_id = {row["community"]: row for row in rows}
    faults = [] if len(by_id) == len(rows) else ["numbers repeat"]
    entities = {row["id"]: row for row in tables[ENTITIES].to_pylist()}
    ids_of = {title: i for i, title in ((row["id"], row["title"]) for row in entities.values())}
    edges = {row["id"]: row for row in tables[RELATIONSHIPS].to_pylist()}
    units_of: dict[str, set[str]] = {i: set(row["text_unit_ids"]) for i, row in entities.items()}
    for edge in edges.values():
        for column, title in (("source_id", "source"), ("target_id", "target")):
            end = edge[column] or ids_of.get(edge[title], "")
            if end in units_of:
                units_of[end] |= set(edge["text_unit_ids"])
    known_units = {row["id"] for row in tables[TEXT_UNITS].to_pylist()}
    for row in rows:
        members, where = set(row["entity_ids"]), f"community {row['community']}"
        children = [by_id[c] for c in row["children"]]
        if len(members) != len(row["entity_ids"]) or row["size"] != len(members) or not members:
            faults.append(f"{where}: size")
        if not members <= set(entities):
            faults.append(f"{where}: unknown entity")
        if (row["parent"] == -1) != (row["level"] == 0):
            faults.append(f"{where}: root level")
        if row["parent"] != -1 and row["community"] not in by_id[row["parent"]]["children"]:
            faults.append(f"{where}: parent does not list it")
        if any((c["parent"], c["level"]) != (row["community"], row["level"] + 1) for c in children):
            faults.append(f"{where}: a child")
        if children and sorted(i for c in children for i in c["entity_ids"]) != sorted(members):
            faults.append(f"{where}: children are no partition")
        if row["is_leaf"] != (not children):
            faults.append(f"{where}: is_leaf")
        inside = {i for i, e in edges.items() if e["source_id"] in members and e["target_id"] in members}
        if sorted(inside) != sorted(row["relationship_ids"]):
            faults.append(f"{where}: relationships")
        text = set().union(*(units_of[i] for i in members & set(entities))) & known_units
        if sorted(text) != sorted(row["text_unit_ids"]) or row["weight"] != len(text):
            faults.append(f"{where}: text units")
        if row["mass"] != sum(entities[i]["mass"] for i in members & set(entities)):
            faults.append(f"{where}: mass")
    roots = [i for row in rows if row["level"] == 0 for i in row["entity_ids"]]
    if sorted(roots) != sorted(entities):
        faults.append("roots do not hold every entity once")
    held = {i for row in rows if row["level"] == 0 for i in row["text_unit_ids"]}
    if held != known_units:
        faults.append("roots do not hold every text unit")
    return faults
