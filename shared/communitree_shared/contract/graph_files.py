"""Which file of a graph is which table: by its name. The client uploads no others where the graph is whole without."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)

#: GraphRAG 0.x and 1.x: one row for each entity and level.
NODES = "nodes"

#: Files that can be read; others are ignored with a note.
SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")

_STEMS = {
    "documents": DOCUMENTS, "text_units": TEXT_UNITS, "entities": ENTITIES, "relationships": RELATIONSHIPS,
    "covariates": COVARIATES, "communities": COMMUNITIES, "community_reports": COMMUNITY_REPORTS, "nodes": NODES,
    "edges": RELATIONSHIPS, "links": RELATIONSHIPS, "relations": RELATIONSHIPS, "claims": COVARIATES,
}  # fmt: skip


def table_name(file: str) -> str | None:
    """Return the table that a file's name says it holds, None where it says none."""
    path = PurePosixPath(file.replace("\\", "/"))
    if path.suffix.lower() not in SUFFIXES:
        return None
    return _STEMS.get(path.stem.lower().removeprefix("create_final_"))


def is_readable(file: str) -> bool:
    """Say whether the file has a form that can be read."""
    return PurePosixPath(file.lower()).suffix in SUFFIXES


def never_read(files: Collection[str]) -> set[str]:
    """Return those of all files that no import looks into: any file may hold edges, but not beside a table of them."""
    named = {file: table_name(file) for file in files}
    if RELATIONSHIPS not in named.values():
        return set()
    return {file for file, table in named.items() if table is None}
