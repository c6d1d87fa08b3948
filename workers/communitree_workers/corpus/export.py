"""The way out: an index as tables that GraphRAG 3.x reads, and as one JSON tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import orjson

from communitree_shared.contract.tables import (
    COLUMNS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    ENTITIES,
    GRAPHRAG_COLUMNS,
    NO_PARENT,
)
from communitree_shared.errors import UsageError
from communitree_workers.tables.io import Tables, to_bytes

#: graphrag: GraphRAG's columns and types, ours after; graphrag-only: without ours; tree: `tree.json`;
#: all: `graphrag` and `tree`.
Format = Literal["graphrag", "graphrag-only", "tree", "all"]

_OF_COMMUNITY = ("key", "level", "kind", "size", "weight", "mass", "is_leaf", "oversize")
_OF_REPORT = ("summary", "rank", "n_tokens", "generated_by")


def export(tables: Tables, fmt: Format = "all") -> Iterator[tuple[str, bytes]]:
    """Yield the files of an export as (name, content), one after the other.

    An empty covariates table is left out, as GraphRAG leaves it out.

    Raises:
        UsageError: an unknown format.
    """
    if fmt not in get_args(Format):
        raise UsageError(f"No export format {fmt!r}.", hint="Formats: " + ", ".join(get_args(Format)) + ".")
    if fmt != "tree":
        columns = GRAPHRAG_COLUMNS if fmt == "graphrag-only" else COLUMNS
        for name in COLUMNS:
            if name not in tables or (name == COVARIATES and tables[name].num_rows == 0):
                continue
            present = [column for column in columns[name] if column in tables[name].column_names]
            yield f"{name}.parquet", to_bytes(tables[name].select(present))
    if fmt in ("tree", "all") and COMMUNITIES in tables:
        yield "tree.json", orjson.dumps(tree(tables), option=orjson.OPT_INDENT_2)


def tree(tables: Tables) -> dict[str, Any]:
    """Return the community tree as `{"levels": {level: communities}, "roots": [...]}`.

    A community has `id` (the integer), `title` (its report's, if there is one), figures, and either `children` or,
    a leaf, `entities`: `{"id", "title", "type"}` each.
    """
    communities = tables[COMMUNITIES].select(["community", "parent", "title", "entity_ids", *_OF_COMMUNITY])
    reports = _reports(tables)
    entities = _entities(tables)
    nodes: dict[int, dict[str, Any]] = {}
    parents: dict[int, int] = {}
    levels: dict[str, int] = {}
    for batch in communities.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            number = row["community"]
            node = {"id": number, "title": row["title"], **{name: row[name] for name in _OF_COMMUNITY}}
            node |= reports.get(number, {})
            if row["is_leaf"]:
                node["entities"] = [entities[i] for i in row["entity_ids"] if i in entities]
            else:
                node["children"] = []
            nodes[number], parents[number] = node, row["parent"]
            levels[str(row["level"])] = levels.get(str(row["level"]), 0) + 1
    roots = []
    for number in sorted(nodes):
        if parents[number] == NO_PARENT:
            roots.append(nodes[number])
        else:
            nodes[parents[number]]["children"].append(nodes[number])
    return {"levels": dict(sorted(levels.items(), key=lambda item: int(item[0]))), "roots": roots}


def _reports(tables: Tables) -> dict[int, dict[str, Any]]:
    if COMMUNITY_REPORTS not in tables:
        return {}
    rows = tables[COMMUNITY_REPORTS].select(["community", "title", *_OF_REPORT]).to_pylist()
    return {row.pop("community"): row for row in rows}


def _entities(tables: Tables) -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in tables[ENTITIES].select(["id", "title", "type"]).to_pylist()}
