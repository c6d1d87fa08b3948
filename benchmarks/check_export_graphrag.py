"""Does GraphRAG read what we export? Its own query code reads an export, and says what it read.

    python benchmarks/check_export_graphrag.py [FOLDER]

FOLDER: an export (`communitree export CORPUS FOLDER`), or any index that GraphRAG wrote, which is then imported and
exported first. Without one a small index is made. Needs the `bench` extra; ends with 1 where something is missing.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from communitree_shared.contract.options import ClusterOptions, IndexOptions
from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_workers.cluster.adopt import adopt
from communitree_workers.corpus.export import export
from communitree_workers.corpus.graph_import import read_graph
from communitree_workers.tables.io import Tables, from_rows


def main() -> int:
    """Read the export with GraphRAG's code, each format of it, and compare counts."""
    try:
        import graphrag.query.indexer_adapters as peer
        import pandas as pd
    except ImportError:
        print("graphrag is not installed: pip install 'communitree[workers,bench]'. Nothing was checked.")
        return 1
    tables = _tables(Path(sys.argv[1])) if len(sys.argv) > 1 else _small()
    failed = False
    for fmt in ("graphrag", "graphrag-only"):
        frames = {
            name.removesuffix(".parquet"): pd.read_parquet(io.BytesIO(data))
            for name, data in export(tables, fmt)  # type: ignore[arg-type]
        }
        print(f"\nexport as {fmt}, read by graphrag:")
        failed |= _compare(peer, tables, frames)
    print("\nFAILED" if failed else "\nall read")
    return int(failed)


def _compare(peer: Any, tables: Tables, frames: dict[str, Any]) -> bool:
    communities = tables[COMMUNITIES].to_pylist()
    failed = False

    def line(what: str, read: int, ours: int) -> None:
        nonlocal failed
        failed |= read != ours
        print(f"  {what:<42}{read:>8} of {ours:>8}{'' if read == ours else '   <-- DIFFERS'}")

    entities = peer.read_indexer_entities(frames[ENTITIES].copy(), frames[COMMUNITIES].copy(), None)
    line("entities", len(entities), tables[ENTITIES].num_rows)
    held = sum(any(c != "-1" for c in entity.community_ids or []) for entity in entities)
    line("entities with a community", held, len({e for row in communities for e in row["entity_ids"]}))
    line(
        "relationships",
        len(peer.read_indexer_relationships(frames[RELATIONSHIPS].copy())),
        tables[RELATIONSHIPS].num_rows,
    )
    line("text units", len(peer.read_indexer_text_units(frames[TEXT_UNITS].copy())), tables[TEXT_UNITS].num_rows)
    if COVARIATES in frames:
        line("claims", len(peer.read_indexer_covariates(frames[COVARIATES].copy())), tables[COVARIATES].num_rows)
    read = peer.read_indexer_communities(frames[COMMUNITIES].copy(), frames[COMMUNITY_REPORTS].copy())
    line("communities", len(read), len(communities))
    line("children of communities", sum(len(c.children) for c in read), sum(len(c["children"]) for c in communities))
    for level in sorted({row["level"] for row in communities}):
        upto = sum(row["level"] <= level for row in communities)
        reports = peer.read_indexer_reports(frames[COMMUNITY_REPORTS].copy(), frames[COMMUNITIES].copy(), level)
        line(f"reports, community_level={level}", len(reports), upto)
    reports = peer.read_indexer_reports(frames[COMMUNITY_REPORTS].copy(), frames[COMMUNITIES].copy(), None, True)
    line("reports, dynamic selection", len(reports), len(communities))
    line("reports in the map context", _context(read, reports, entities), len(communities))
    line("reports with text", sum(bool(r.full_content) for r in reports), len(communities))
    return failed


def _context(communities: list[Any], reports: list[Any], entities: list[Any]) -> int:
    """Return how many reports GraphRAG's global search puts before its model."""
    from graphrag.query.structured_search.global_search.community_context import GlobalCommunityContext

    builder = GlobalCommunityContext(community_reports=reports, communities=communities, entities=entities)
    context = asyncio.run(builder.build_context("What are the main themes?", min_community_rank=-1))
    return sum(len(frame) for frame in context.context_records.values())


def _tables(folder: Path) -> Tables:
    graph = read_graph({path.name: path for path in folder.iterdir() if path.is_file()}, IndexOptions())
    if graph.communities is None:
        from communitree_workers.cluster.core import build

        made = build(graph.tables, ClusterOptions())
        return _with_reports({**graph.tables, **made.tables, COMMUNITIES: made.communities})
    kept = adopt(graph.tables, graph.communities)
    tables = {**graph.tables, **kept.tables, COMMUNITIES: kept.communities}
    return tables | ({COMMUNITY_REPORTS: graph.reports} if graph.reports is not None else _with_reports(tables))


def _with_reports(tables: Tables) -> Tables:
    rows = [
        {**row, "id": f"report {row['community']}", "title": f"Report {row['community']}", "summary": "s",
         "full_content": "text", "rank": 5.0, "findings": [{"summary": "s", "explanation": "e"}]}
        for row in tables[COMMUNITIES].select(["community", "level", "parent", "children", "size"]).to_pylist()
    ]  # fmt: skip
    return {**tables, COMMUNITY_REPORTS: from_rows(COMMUNITY_REPORTS, rows)}


def _small() -> Tables:
    """Edges with text units: without any, GraphRAG's global search divides by a largest weight of zero."""
    edges = [
        {"source": f"N{i}", "target": f"N{(i * i + 1) % 97}", "text_unit_ids": [f"t{i // 20}"]} for i in range(240)
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines = "\n".join(json.dumps(edge) for edge in edges)
        (Path(folder) / "relationships.jsonl").write_text(lines, encoding="utf-8")
        return _tables(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
