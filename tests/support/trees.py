"""Small random corpora with a valid community tree, for property tests: `corpora()` gives conforming tables.

Children partition their parent, branches end at different levels, entities may have no relationship, some entities are
of type `document` and hold text units that name no entity, claims name entities, masses add up to the text units.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from communitree_shared.contract import tables as names
from communitree_workers.tables.io import Tables, from_rows

_WORDS = {
    "en": [
        "harbour", "council,", "bridge", '"treaty"', "railway", "museum", "archive;", "lighthouse", "orchard\nministry",
        "vessel", "reactor",
    ],
    "zh": ["港口", "议会，", "大桥", "“条约”", "铁路", "博物馆", "档案", "灯塔。", "果园\n", "部门", "船只", "反应堆"],
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """What a random corpus shall be like."""

    entities: int = 12
    relationships: int = 20
    claims: int = 4
    documents: int = 1
    depth: int = 3
    branching: int = 4
    words: int = 8
    language: str = "en"
    seed: int = 0


def corpus(shape: Shape) -> Tables:
    """Return the tables of a random corpus; the same shape gives the same tables."""
    rng = random.Random(shape.seed)
    words = _WORDS[shape.language]

    def prose(longest: int) -> str:
        return " ".join(rng.choice(words) for _ in range(rng.randint(0, longest)))

    n = shape.entities
    entity_ids = [_id("e", shape.seed, i) for i in range(n)]
    titles = [f"{words[i % len(words)].strip()} {i}" for i in range(n)]
    units = [_id("t", shape.seed, i) for i in range(max(2, n // 2))]
    homes = [sorted(rng.sample(range(len(units)), rng.randint(1, 2))) for _ in range(n)]
    pairs = sorted({tuple(sorted(rng.sample(range(n), 2))) for _ in range(shape.relationships)} if n > 1 else set())
    documents = [_id("d", shape.seed, i) for i in range(shape.documents)]
    loose = [[_id("u", shape.seed, i, j) for j in range(rng.randint(1, 3))] for i in range(shape.documents)]

    degree = [0] * n
    for a, b in pairs:
        degree[a] += 1
        degree[b] += 1
    relationships = [
        {
            "id": _id("r", shape.seed, i), "human_readable_id": i, "source": titles[a], "target": titles[b],
            "source_id": entity_ids[a], "target_id": entity_ids[b], "description": prose(shape.words),
            "weight": rng.randint(1, 9) / 2, "combined_degree": degree[a] + degree[b],
            "text_unit_ids": [units[homes[a][0]]],
        }
        for i, (a, b) in enumerate(pairs)
    ]  # fmt: skip
    covariates = []
    for i in range(shape.claims if n else 0):
        who = rng.randrange(n)
        covariates.append({
            "id": _id("c", shape.seed, i), "human_readable_id": i, "covariate_type": "claim", "type": "FACT",
            "description": prose(shape.words), "subject_id": titles[who], "object_id": "NONE", "status": "TRUE",
            "start_date": "1900-01-01T00:00:00", "end_date": "", "source_text": "", "entity_id": entity_ids[who],
            "text_unit_id": units[homes[who][0]],
        })  # fmt: skip
    held = [set(home) for home in homes]
    for a, b in pairs:
        held[a].add(homes[a][0])
        held[b].add(homes[a][0])
    sharers = [sum(t in h for h in held) for t in range(len(units))]
    mass = [sum(names.MASS_SCALE // sharers[t] for t in h) for h in held]
    entities = [
        {
            "id": entity_ids[i], "human_readable_id": i, "title": titles[i], "type": "THING",
            "description": prose(shape.words), "text_unit_ids": [units[t] for t in homes[i]],
            "frequency": len(homes[i]), "degree": degree[i], "mass": mass[i],
        }
        for i in range(n)
    ]  # fmt: skip
    entities += [
        {
            "id": documents[i], "human_readable_id": n + i, "title": f"document {i}", "type": "document",
            "text_unit_ids": loose[i], "frequency": len(loose[i]), "mass": names.MASS_SCALE * len(loose[i]),
        }
        for i in range(shape.documents)
    ]  # fmt: skip
    every = [*units, *(unit for run in loose for unit in run)]
    text_units = [
        {"id": unit, "human_readable_id": i, "text": prose(shape.words * 2) + " end", "n_tokens": 5, "document_id": "x"}
        for i, unit in enumerate(every)
    ]
    tables = {
        names.ENTITIES: from_rows(names.ENTITIES, entities),
        names.RELATIONSHIPS: from_rows(names.RELATIONSHIPS, relationships),
        names.COVARIATES: from_rows(names.COVARIATES, covariates),
        names.TEXT_UNITS: from_rows(names.TEXT_UNITS, text_units),
    }
    tables[names.COMMUNITIES] = tree(tables, shape.depth, shape.branching, shape.seed)
    return tables


def tree(tables: Tables, depth: int, branching: int, seed: int) -> pa.Table:
    """Return `communities` for these tables: random splits, at most `depth` levels, up to `branching` children."""
    rng = random.Random(seed)
    entities = {row["id"]: row for row in tables[names.ENTITIES].to_pylist()}
    edges = tables[names.RELATIONSHIPS].to_pylist()
    claims = tables[names.COVARIATES].to_pylist()
    units: dict[str, set[str]] = {key: set(row["text_unit_ids"]) for key, row in entities.items()}
    for edge in edges:
        units[edge["source_id"]] |= set(edge["text_unit_ids"])
        units[edge["target_id"]] |= set(edge["text_unit_ids"])
    found: list[dict[str, object]] = []
    waiting = [(part, 0, names.NO_PARENT) for part in _parts(sorted(entities), rng, branching)]
    while waiting:  # breadth first, so that numbers follow levels
        members, level, parent = waiting.pop(0)
        number = len(found)
        inside = set(members)
        children: list[int] = []
        key = hashlib.sha256("|".join(sorted(members)).encode()).hexdigest()[:32]
        found.append({
            "id": f"{key}-{level}", "human_readable_id": number, "community": number, "level": level, "parent": parent,
            "children": children, "title": f"Community {number}", "entity_ids": sorted(members),
            "relationship_ids": [e["id"] for e in edges if e["source_id"] in inside and e["target_id"] in inside],
            "covariate_ids": [c["id"] for c in claims if c["entity_id"] in inside],
            "text_unit_ids": sorted(set().union(*(units[m] for m in members))), "size": len(members), "key": key,
            "kind": "cluster", "weight": len(set().union(*(units[m] for m in members))),
            "mass": sum(entities[m]["mass"] for m in members),
        })  # fmt: skip
        if parent != names.NO_PARENT:
            found[parent]["children"].append(number)  # type: ignore[attr-defined]
        if level + 1 < depth and len(members) > 1 and rng.random() < 0.8:
            waiting += [(part, level + 1, number) for part in _parts(members, rng, branching)]
    for row in found:
        row["is_leaf"] = not row["children"]
    return from_rows(names.COMMUNITIES, found)


def _parts(members: list[str], rng: random.Random, branching: int) -> list[list[str]]:
    if not members:
        return []
    k = rng.randint(1, min(branching, len(members)))
    shuffled = rng.sample(members, len(members))
    return [sorted(shuffled[i::k]) for i in range(k)]


def _id(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def shapes() -> st.SearchStrategy[Shape]:
    """Strategy for shapes: a few entities to a few dozen, short to long rows, both languages."""
    return st.builds(
        Shape,
        entities=st.integers(0, 24),
        relationships=st.integers(0, 50),
        claims=st.integers(0, 8),
        documents=st.integers(0, 3),
        depth=st.integers(1, 4),
        branching=st.integers(1, 5),
        words=st.sampled_from([0, 3, 12, 60]),
        language=st.sampled_from(["en", "zh"]),
        seed=st.integers(0, 10_000),
    )


def corpora() -> st.SearchStrategy[Tables]:
    """Strategy for the tables of random corpora."""
    return shapes().map(corpus)
