"""Graph tables of any generation, or an edge list, to our tables: all of it or an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.graph_files import NODES, is_readable
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.tables import (
    COLUMNS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.errors import BadInput
from communitree_workers.corpus.graph_import.account import Notes, named
from communitree_workers.corpus.graph_import.entities import Entities, nfc, no_entities, read_entities
from communitree_workers.corpus.graph_import.files import Raw, Source, load, sort_out
from communitree_workers.corpus.graph_import.grouping import canonical_order, numbered, numbering, reordered
from communitree_workers.corpus.graph_import.names import ALIASES, WANTED, Reader, blank
from communitree_workers.corpus.graph_import.references import no_covariates, read_covariates, unite
from communitree_workers.corpus.graph_import.relationships import (
    Relationships,
    degrees,
    read_relationships,
    with_text_of_edges,
)
from communitree_workers.corpus.graph_import.texts import read_texts
from communitree_workers.corpus.graph_import.tree import read_communities, read_reports
from communitree_workers.tables.columns import lengths
from communitree_workers.tables.io import Tables, conform

Columns = dict[str, pa.Array]


@dataclass
class Imported:
    """`tables`: documents, text_units, entities, relationships, covariates. `communities` and `reports` stand as
    they were, None where there are none or where they are to be built anew."""

    tables: Tables
    communities: pa.Table | None = None
    reports: pa.Table | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_graph(files: Mapping[str, Source], options: IndexOptions) -> Imported:
    """Return the graph in these files, by name, as tables that name each other both ways.

    Reads what GraphRAG 0.x to 3.x wrote and plain edge lists, as Parquet, CSV or JSONL; which file is which
    table its name says, or, for an edge list, its columns. Row order changes nothing.

    Raises:
        BadInput: names file, column, row and what was expected there. Nothing is imported then.
    """
    notes = Notes()
    raws, edges = _raws(files, notes)
    nodes = raws.get(NODES)
    entities = _entities(raws, nodes, notes)
    given = len(entities)
    entities, relationships = read_relationships([Reader(RELATIONSHIPS, raw) for raw in edges], entities, notes) if (
        edges
    ) else (entities, _no_relationships())  # fmt: skip
    if not len(entities):
        raise BadInput(
            f"The graph has no entity: no row of entities or relationships in the files{named(sorted(files))}.",
            hint="Look whether the program that wrote them had ended; nothing was imported.",
        )
    entities = with_text_of_edges(entities, relationships, given)
    covariates = _reader(raws, COVARIATES)
    mentioned = [entities.columns["text_unit_ids"], relationships.columns["text_unit_ids"]]
    texts = read_texts(
        _reader(raws, TEXT_UNITS), _reader(raws, DOCUMENTS), mentioned, options.read.encoding_model, notes
    )
    unite(entities.columns, texts.units, "entity_ids", None, "entities", notes)
    was = (relationships.ids, relationships.now)
    unite(relationships.columns, texts.units, "relationship_ids", was, "relationships", notes)
    if covariates is None:
        claims = no_covariates(texts.units, notes)
    else:
        claims = read_covariates(covariates, entities, texts.units, notes)
    _count(entities, relationships)
    communities, reports = _tree(raws, nodes, entities, relationships, options, notes)
    tables = {
        DOCUMENTS: _table(DOCUMENTS, texts.documents, "title", "id"),
        TEXT_UNITS: _table(TEXT_UNITS, texts.units, "document_id", "id"),
        ENTITIES: _table(ENTITIES, entities.columns, "title", "id"),
        RELATIONSHIPS: _table(RELATIONSHIPS, relationships.columns, "source", "target", "id"),
        COVARIATES: _table(COVARIATES, claims, "subject_id", "id"),
    }
    return Imported(tables, communities, reports, notes.notes, notes.warnings)


def _raws(files: Mapping[str, Source], notes: Notes) -> tuple[dict[str, Raw], list[Raw]]:
    """Return the known tables, and the files that hold relationships."""
    known, others = sort_out(files)
    raws = {name: load(file, files[file], WANTED) for name, file in known.items() if name != RELATIONSHIPS}
    edges = [load(known[RELATIONSHIPS], files[known[RELATIONSHIPS]], WANTED)] if RELATIONSHIPS in known else []
    if not edges:
        for file in [file for file in others if is_readable(file)]:
            try:
                raw = load(file, files[file], WANTED)
            except BadInput:
                if len(files) == 1:
                    raise
                continue
            if all(raw.find(*ALIASES[RELATIONSHIPS][end]) for end in ("source", "target")):
                edges.append(raw)
                others.remove(file)
    for raw in (*raws.values(), *edges):
        if raw.encoding != "utf-8":
            notes.notes.append(f"{raw.file} was read as {raw.encoding}.")
    if others:
        notes.notes.append(f"Ignored, as no table that is known{named(others)}.")
    if ENTITIES not in raws and NODES not in raws and not edges:
        raise BadInput(
            f"No graph among the files{named(sorted(files))}: expected entities and relationships tables "
            "(as GraphRAG writes them), or an edge list with the columns source and target.",
            hint="Name a folder with Parquet, CSV or JSONL tables.",
        )
    return raws, edges


def _reader(raws: Mapping[str, Raw], name: str) -> Reader | None:
    return Reader(name, raws[name]) if name in raws else None


def _entities(raws: dict[str, Raw], nodes: Raw | None, notes: Notes) -> Entities:
    if ENTITIES in raws:
        return read_entities(Reader(ENTITIES, raws[ENTITIES]), notes)
    if nodes is None:
        return no_entities()
    return read_entities(Reader(ENTITIES, nodes), notes, repeated=True)


def _no_relationships() -> Relationships:
    none = np.empty(0, np.int64)
    columns = {name: blank(RELATIONSHIPS, name, 0) for name in COLUMNS[RELATIONSHIPS]}
    return Relationships(columns, none, none, columns["id"], none)


def _count(entities: Entities, relationships: Relationships) -> None:
    """Fill degrees, and how often an entity was seen where the tables do not say."""
    degree, combined = degrees(relationships, entities)
    entities.columns["degree"] = pa.array(degree)
    relationships.columns["combined_degree"] = pa.array(combined)
    seen = entities.columns["frequency"]
    entities.columns["frequency"] = pc.coalesce(seen, pa.array(lengths(entities.columns["text_unit_ids"])))


def _tree(
    raws: dict[str, Raw], nodes: Raw | None, entities: Entities, relationships: Relationships, options: IndexOptions,
    notes: Notes,
) -> tuple[pa.Table | None, pa.Table | None]:  # fmt: skip
    levelled = nodes if nodes is not None and nodes.find("community", "cluster") and nodes.find("level") else None
    if options.cluster.recluster:
        if COMMUNITIES in raws or COMMUNITY_REPORTS in raws or levelled is not None:
            notes.notes.append("The communities and reports of the tables are left out: the tree is built anew.")
        return None, None
    communities = read_communities(_reader(raws, COMMUNITIES), levelled, entities, relationships, notes)
    reader = _reader(raws, COMMUNITY_REPORTS)
    if reader is None:
        return communities, None
    if communities is None:
        notes.warn(len(reader), "report|reports was|were left out: there is no communities table that they belong to")
        return None, None
    reports = read_reports(reader, notes)
    lost = reports.filter(pc.invert(pc.is_in(reports["community"], value_set=communities["community"])))["community"]
    notes.warn(len(lost), "report|reports on unknown communities was|were left out", map(str, lost.to_pylist()))
    return communities, reports


def _table(name: str, columns: Columns, *order: str) -> pa.Table:
    """Return the conforming table, sorted by its numbers; rows without one of their own follow in this order."""
    given = columns["human_readable_id"]
    if numbered(given):
        number = given.to_numpy().astype(np.int64)
    else:
        keys = [nfc(columns[key]) if key == "title" else columns[key] for key in order]
        number = numbering(given, canonical_order(*keys))
    columns = {**columns, "human_readable_id": pa.array(number)}
    for column, kind in COLUMNS[name].items():
        if kind in ("int", "float"):
            columns[column] = pc.fill_null(columns[column], 0)
    columns = reordered(columns, np.argsort(number, kind="stable").astype(np.int64))
    return conform(name, pa.table({column: columns[column] for column in COLUMNS[name]}))
