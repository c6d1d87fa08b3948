"""One small index, written as each generation of GraphRAG wrote it.

Two communities at level 0: {a, b, c, d} with children {a, b}, {c, d}, and {e, f}. `g` has no relationship and is in
no community, as GraphRAG leaves it.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
import pandas as pd

Files = dict[str, bytes]

DOCUMENTS = [
    {"id": "d0", "title": "one.txt", "text": "First text.", "units": ["t0", "t1"]},
    {"id": "d1", "title": "二.txt", "text": "第二篇。", "units": ["t2", "t3"]},
]
UNITS = {"t0": "Alice met Bob.", "t1": "Carol paid Dave.", "t2": "甲 and Frank.", "t3": "Grace, alone."}
ENTITIES = {
    "a": ("ALICE", "PERSON", ["t0"]),
    "b": ("BOB", "PERSON", ["t0"]),
    "c": ("CAROL", "PERSON", ["t1"]),
    "d": ("DAVE", "PERSON", ["t1"]),
    "e": ("甲", "GEO", ["t2"]),
    "f": ("FRANK", "PERSON", ["t2"]),
    "g": ("GRACE", "", ["t3"]),
}
RELATIONSHIPS = {
    "r0": ("a", "b", 2.5, ["t0"]),
    "r1": ("b", "c", 1.0, ["t0", "t1"]),
    "r2": ("c", "d", 4.0, ["t1"]),
    "r3": ("e", "f", 1.0, ["t2"]),
}
#: number: (level, parent, children, members, relationships, text units)
COMMUNITIES: dict[int, tuple[int, int, list[int], list[str], list[str], list[str]]] = {
    0: (0, -1, [2, 3], ["a", "b", "c", "d"], ["r0", "r1", "r2"], ["t0", "t1"]),
    1: (0, -1, [], ["e", "f"], ["r3"], ["t2"]),
    2: (1, 0, [], ["a", "b"], ["r0"], ["t0"]),
    3: (1, 0, [], ["c", "d"], ["r2"], ["t1"]),
}
CLAIMS = {"c0": ("ALICE", "t0"), "c1": ("NOBODY", "t1")}


def parquet(rows: list[dict[str, Any]], *, index: bool = False) -> bytes:
    frame = pd.DataFrame(rows)
    if index:
        frame.index = pd.Index([f"row {i}" for i in range(len(frame))])
    return bytes(frame.to_parquet(index=index or None) or b"")


def _title(entity: str) -> str:
    return ENTITIES[entity][0]


def _findings(number: int) -> list[dict[str, str]]:
    return [{"summary": f"Finding of {number}", "explanation": f"Because of {number}. [Data: Entities (1)]"}]


def _units(documents: str) -> list[dict[str, Any]]:
    owner = {unit: document["id"] for document in DOCUMENTS for unit in document["units"]}
    return [
        {
            "id": unit,
            "text": text,
            "n_tokens": 4,
            documents: owner[unit] if documents == "document_id" else [owner[unit]],
            "entity_ids": [e for e, row in ENTITIES.items() if unit in row[2]] or None,
            "relationship_ids": [r for r, row in RELATIONSHIPS.items() if unit in row[3]],
            "covariate_ids": np.array([c for c, row in CLAIMS.items() if unit == row[1]], dtype=object),
        }
        for unit, text in UNITS.items()
    ]


def _claims(**more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": claim, "covariate_type": "claim", "type": "DEED", "description": f"{subject} did it",
            "subject_id": subject, "object_id": "NONE", "status": "TRUE", "start_date": "2024-01-01T00:00:00",
            "end_date": None, "source_text": "…", "text_unit_id": unit, **more,
        }
        for claim, (subject, unit) in CLAIMS.items()
    ]  # fmt: skip


def _nodes(*, level: str = "level") -> list[dict[str, Any]]:
    """A row for each entity and level; no community where the branch has ended or never begun."""
    return [
        {
            "id": entity, "human_readable_id": place, "title": _title(entity), level: depth, "degree": 1,
            "community": next(
                (str(n) for n, row in COMMUNITIES.items() if row[0] == depth and entity in row[3]), None
            ),
            "x": 0.0, "y": 0.0,
        }
        for depth in (0, 1)
        for place, entity in enumerate(ENTITIES)
    ]  # fmt: skip


def _numbered(rows: list[dict[str, Any]], kind: type = int) -> list[dict[str, Any]]:
    return [{**row, "human_readable_id": kind(place)} for place, row in enumerate(rows)]


def generation_0() -> Files:
    """0.1 to 0.3: `name`, text ids joined by commas, numbers as texts, members only in the nodes table."""
    entities = [
        {"id": e, "name": title, "type": kind, "description": f"{title} is here", "human_readable_id": place,
         "text_unit_ids": units, "graph_embedding": None, "description_embedding": [0.5, 0.5]}
        for place, (e, (title, kind, units)) in enumerate(ENTITIES.items())
    ]  # fmt: skip
    edges = [
        {"source": _title(a), "target": _title(b), "weight": weight, "description": f"{a} to {b}", "id": r,
         "text_unit_ids": units, "human_readable_id": str(place), "source_degree": 1, "target_degree": 1, "rank": 2}
        for place, (r, (a, b, weight, units)) in enumerate(RELATIONSHIPS.items())
    ]  # fmt: skip
    communities = [
        {"id": str(n), "title": f"Community {n}", "level": row[0], "raw_community": str(n), "relationship_ids": row[4],
         "text_unit_ids": [",".join(row[5])]}
        for n, row in COMMUNITIES.items()
    ]  # fmt: skip
    reports = [
        {"community": str(n), "full_content": f"# Title {n}\n\nSummary {n}", "level": row[0], "rank": 5.0 + n,
         "title": f"Title {n}", "rank_explanation": f"Why {n}", "summary": f"Summary {n}", "findings": _findings(n),
         "full_content_json": "{}", "id": f"report-{n}"}
        for n, row in COMMUNITIES.items()
    ]  # fmt: skip
    documents = [
        {"id": d["id"], "text_unit_ids": d["units"], "raw_content": d["text"], "title": d["title"]} for d in DOCUMENTS
    ]
    claims = _numbered(_claims(subject_type=None, object_type=None, document_ids=["d0"], n_tokens=3), str)
    return {
        "create_final_entities.parquet": parquet(entities),
        "create_final_nodes.parquet": parquet(_nodes()),
        "create_final_relationships.parquet": parquet(edges),
        "create_final_communities.parquet": parquet(communities),
        "create_final_community_reports.parquet": parquet(reports),
        "create_final_text_units.parquet": parquet(_units("document_ids")),
        "create_final_documents.parquet": parquet(documents),
        "create_final_covariates.parquet": parquet(claims),
        "create_base_entity_graph.parquet": parquet([{"level": 0, "clustered_graph": "<graphml/>"}]),
        "stats.json": b'{"total_runtime": 1.5}',
    }


def generation_1() -> Files:
    """1.0 to 1.2: `title`, numbers, a parent but no children, members in the communities table; nodes beside."""
    return {
        f"output/create_final_{name}.parquet": parquet(rows, index=True)
        for name, rows in _modern(document="document_ids", why="rank_explanation", children=False).items()
    } | {"output/create_final_nodes.parquet": parquet(_nodes())}


def generation_2() -> Files:
    """2.x: plain names, children, `document_ids`, coordinates."""
    tables = _modern(document="document_ids", why="rating_explanation", children=True)
    tables["entities"] = [{**row, "x": 0.0, "y": 1.0} for row in tables["entities"]]
    tables["documents"] = [{**row, "metadata": {"author": "x"}} for row in tables["documents"]]
    return {f"{name}.parquet": parquet(rows) for name, rows in tables.items()}


def generation_3() -> Files:
    """3.x: `document_id`, `raw_data`."""
    return {f"{name}.parquet": parquet(rows) for name, rows in tables_3().items()}


def tables_3() -> dict[str, list[dict[str, Any]]]:
    return _modern(document="document_id", why="rating_explanation", children=True)


def _modern(*, document: str, why: str, children: bool) -> dict[str, list[dict[str, Any]]]:
    entities = [
        {"id": e, "title": title, "type": kind or None, "description": f"{title} is here", "text_unit_ids": units,
         "frequency": len(units), "degree": 1}
        for e, (title, kind, units) in ENTITIES.items()
    ]  # fmt: skip
    edges = [
        {"id": r, "source": _title(a), "target": _title(b), "description": f"{a} to {b}", "weight": weight,
         "combined_degree": 2, "text_unit_ids": units}
        for r, (a, b, weight, units) in RELATIONSHIPS.items()
    ]  # fmt: skip
    communities = []
    reports = []
    for n, (level, parent, below, members, edges_of, units) in COMMUNITIES.items():
        row = {"community": n, "level": level, "parent": parent}
        if children:
            row["children"] = below  # type: ignore[assignment]
        communities.append({"id": f"community-{n}", "human_readable_id": n, **row, "title": f"Community {n}",
            "entity_ids": members, "relationship_ids": edges_of, "text_unit_ids": units, "period": "2025-01-31",
            "size": len(members)})  # fmt: skip
        reports.append({"id": f"report-{n}", "human_readable_id": n, **row, "title": f"Title {n}",
            "summary": f"Summary {n}", "full_content": f"# Title {n}\n\nSummary {n}", "rank": 5.0 + n,
            why: f"Why {n}", "findings": _findings(n), "full_content_json": "{}", "period": "2025-01-31",
            "size": len(members)})  # fmt: skip
    documents = [
        {"id": d["id"], "title": d["title"], "text": d["text"], "text_unit_ids": d["units"],
         "creation_date": "2025-01-31"}
        for d in DOCUMENTS
    ]  # fmt: skip
    return {
        "entities": _numbered(entities),
        "relationships": _numbered(edges),
        "communities": communities,
        "community_reports": reports,
        "text_units": _numbered(_units(document)),
        "documents": _numbered(documents),
        "covariates": _numbered(_claims()),
    }


def as_csv(tables: Mapping[str, list[dict[str, Any]]], *, numpy_lists: bool) -> Files:
    """The tables as pandas writes them to CSV: an index column, lists as their `repr`."""
    files = {}
    for name, rows in tables.items():
        if numpy_lists:
            rows = [
                {k: np.array(v, dtype=object) if isinstance(v, list) and k != "findings" else v for k, v in row.items()}
                for row in rows
            ]
        frame = pd.DataFrame(rows)
        if "findings" in frame:
            frame["findings"] = [orjson.dumps(v).decode() for v in frame["findings"]]
        sink = io.StringIO()
        frame.to_csv(sink)
        files[f"{name}.csv"] = sink.getvalue().encode()
    return files


def as_jsonl(tables: Mapping[str, list[dict[str, Any]]]) -> Files:
    return {
        f"{name}.jsonl": b"\n".join(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY, default=list) for row in rows)
        for name, rows in tables.items()
    }
