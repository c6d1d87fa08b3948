"""Names and types of the columns of every table, GraphRAG's v3 columns first, ours after.

Types are words that both sides understand without pyarrow: `str`, `int`, `float`, `bool`,
`list[str]`, `list[int]`, `list[finding]` (a struct of `summary` and `explanation`). Columns of ours
that hold structure (`evidence`, `omitted`) are JSON text.
"""

from __future__ import annotations

DOCUMENTS = "documents"
TEXT_UNITS = "text_units"
ENTITIES = "entities"
RELATIONSHIPS = "relationships"
COVARIATES = "covariates"
COMMUNITIES = "communities"
COMMUNITY_REPORTS = "community_reports"

#: GraphRAG 3.x: what its own tools read, by name and type.
GRAPHRAG_COLUMNS: dict[str, dict[str, str]] = {
    DOCUMENTS: {
        "id": "str", "human_readable_id": "int", "title": "str", "text": "str", "text_unit_ids": "list[str]",
        "creation_date": "str", "raw_data": "str",
    },
    TEXT_UNITS: {
        "id": "str", "human_readable_id": "int", "text": "str", "n_tokens": "int", "document_id": "str",
        "entity_ids": "list[str]", "relationship_ids": "list[str]", "covariate_ids": "list[str]",
    },
    ENTITIES: {
        "id": "str", "human_readable_id": "int", "title": "str", "type": "str", "description": "str",
        "text_unit_ids": "list[str]", "frequency": "int", "degree": "int",
    },
    RELATIONSHIPS: {
        "id": "str", "human_readable_id": "int", "source": "str", "target": "str", "description": "str",
        "weight": "float", "combined_degree": "int", "text_unit_ids": "list[str]",
    },
    COVARIATES: {
        "id": "str", "human_readable_id": "int", "covariate_type": "str", "type": "str", "description": "str",
        "subject_id": "str", "object_id": "str", "status": "str", "start_date": "str", "end_date": "str",
        "source_text": "str", "text_unit_id": "str",
    },
    COMMUNITIES: {
        "id": "str", "human_readable_id": "int", "community": "int", "level": "int", "parent": "int",
        "children": "list[int]", "title": "str", "entity_ids": "list[str]", "relationship_ids": "list[str]",
        "text_unit_ids": "list[str]", "period": "str", "size": "int",
    },
    COMMUNITY_REPORTS: {
        "id": "str", "human_readable_id": "int", "community": "int", "level": "int", "parent": "int",
        "children": "list[int]", "title": "str", "summary": "str", "full_content": "str", "rank": "float",
        "rating_explanation": "str", "findings": "list[finding]", "full_content_json": "str", "period": "str",
        "size": "int",
    },
}  # fmt: skip

#: Ours, after GraphRAG's.
OWN_COLUMNS: dict[str, dict[str, str]] = {
    DOCUMENTS: {"n_tokens": "int"},
    # start, end: character offsets of the text in its document (-1: unknown, as in imported tables)
    TEXT_UNITS: {"start": "int", "end": "int"},
    # n_tokens: tokens of the row as it stands in a report prompt; mass: fixed point, 1e-6 text units
    ENTITIES: {"aliases": "list[str]", "n_tokens": "int", "mass": "int"},
    # source_id, target_id: entity ids; `source` and `target` are titles, for GraphRAG's tools
    RELATIONSHIPS: {"source_id": "str", "target_id": "str", "n_tokens": "int"},
    # entity_id: the entity that `subject_id` (a title in GraphRAG) names, "" where none
    COVARIATES: {"entity_id": "str", "n_tokens": "int"},
    # kind: cluster | residual | documents (a residual child) | remainder; weight: distinct text units
    COMMUNITIES: {
        "key": "str", "kind": "str", "is_leaf": "bool", "oversize": "bool", "weight": "int", "mass": "int",
        "covariate_ids": "list[str]",
    },
    # n_tokens, n_tokens_summary: tokens of full_content and summary; direct: mass read in the raw evidence;
    # generated_by: model name | extractive | imported; cause: why a fallback was used, or of how many findings a
    # cut reply's report is, "" where all went as planned;
    # evidence, omitted: JSON (see communitree_workers.report.evidence); block, block_tokens: the cut's
    # precomputation (rank of the weakest-link block, cumulative tokens after it)
    COMMUNITY_REPORTS: {
        "key": "str", "is_leaf": "bool", "weight": "int", "mass": "int", "direct": "int", "n_tokens": "int",
        "n_tokens_summary": "int", "generated_by": "str", "cause": "str", "evidence_hash": "str",
        "evidence": "str", "omitted": "str", "language": "str",
    },
}  # fmt: skip

#: All columns of a table as we write it.
COLUMNS: dict[str, dict[str, str]] = {
    name: {**columns, **OWN_COLUMNS[name]} for name, columns in GRAPHRAG_COLUMNS.items()
}

#: `mass` columns are integers in units of this many per text unit.
MASS_SCALE = 1_000_000

#: Edge weights are summed in units of this many per 1.0, so that row order cannot change a sum.
WEIGHT_SCALE = 1_000_000

#: Parent of a root.
NO_PARENT = -1
