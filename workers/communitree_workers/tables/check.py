"""The integrity check before publishing: no dangling id in any table, and rows that name each other do so both ways."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import (
    COLUMNS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    NO_PARENT,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_workers.tables.columns import Ints, flatten, one_chunk, positions, unique_pairs
from communitree_workers.tables.io import Tables

#: table → column of ids → the table that they are ids of.
REFERENCES: dict[str, dict[str, str]] = {
    DOCUMENTS: {"text_unit_ids": TEXT_UNITS},
    TEXT_UNITS: {
        "document_id": DOCUMENTS, "entity_ids": ENTITIES, "relationship_ids": RELATIONSHIPS,
        "covariate_ids": COVARIATES,
    },
    ENTITIES: {"text_unit_ids": TEXT_UNITS},
    RELATIONSHIPS: {"source_id": ENTITIES, "target_id": ENTITIES, "text_unit_ids": TEXT_UNITS},
    COVARIATES: {"entity_id": ENTITIES, "text_unit_id": TEXT_UNITS},
    COMMUNITIES: {
        "entity_ids": ENTITIES, "relationship_ids": RELATIONSHIPS, "text_unit_ids": TEXT_UNITS,
        "covariate_ids": COVARIATES,
    },
}  # fmt: skip

#: Columns of one id that may be empty: an imported text unit without a document, a claim about something else.
_OPTIONAL = {(TEXT_UNITS, "document_id"), (COVARIATES, "entity_id"), (COVARIATES, "text_unit_id")}

#: Two columns that say the same from both sides.
_BOTH_WAYS = (
    (ENTITIES, "text_unit_ids", TEXT_UNITS, "entity_ids"),
    (RELATIONSHIPS, "text_unit_ids", TEXT_UNITS, "relationship_ids"),
    (COVARIATES, "text_unit_id", TEXT_UNITS, "covariate_ids"),
)

_SHOWN = 3


def check_tables(tables: Tables) -> list[str]:
    """Return what is wrong with the tables, a sentence each; nothing where they are sound.

    Looks at all tables that are there. What a tree must be beyond its references is the clusterer's own check.
    """
    wrong = [fault for name in COLUMNS if name in tables for fault in _shape(name, tables[name])]
    if wrong:
        return wrong
    for name, columns in REFERENCES.items():
        if name in tables:
            for column, target in columns.items():
                wrong += _dangling(tables, name, column, target)
    for names in _BOTH_WAYS:
        wrong += _one_way(tables, *names)
    wrong += _documents(tables)
    if COMMUNITIES in tables:
        wrong += _family(tables[COMMUNITIES])
        if COMMUNITY_REPORTS in tables:
            wrong += _reports(tables[COMMUNITIES], tables[COMMUNITY_REPORTS])
    return wrong


def _examples(values: pa.Array, wrong: np.ndarray | None = None) -> str:
    if wrong is not None:
        values = values.filter(pa.array(wrong))
    shown = [str(value) for value in pc.unique(values).slice(0, _SHOWN).to_pylist()]
    return ", ".join(shown) + (", …" if len(values) > _SHOWN else "")


def _shape(name: str, table: pa.Table) -> Iterator[str]:
    missing = [column for column in COLUMNS[name] if column not in table.column_names]
    if missing:
        yield f"{name}: columns are missing: {', '.join(missing)}."
        return
    keys = {COMMUNITIES: ("id", "community"), COMMUNITY_REPORTS: ("id", "community")}
    for column in keys.get(name, ("id", "human_readable_id")):
        values = one_chunk(table[column])
        if values.null_count or (column == "id" and pc.any(pc.equal(values, "")).as_py()):
            yield f"{name}: {column} is empty in some rows."
        twice = len(values) - pc.count_distinct(values).as_py()
        if twice:
            counted = pc.value_counts(values)
            again = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
            yield f"{name}: {twice:,} rows repeat a {column}: {_examples(again)}."


def _pairs(table: pa.Table, column: str) -> tuple[Ints, pa.Array]:
    values = one_chunk(table[column])
    if pa.types.is_list(values.type):
        return flatten(values)
    said = np.flatnonzero(pc.not_equal(pc.fill_null(values, ""), "").to_numpy(zero_copy_only=False))
    return said, values.take(pa.array(said))


def _dangling(tables: Tables, name: str, column: str, target: str) -> Iterator[str]:
    rows, values = _pairs(tables[name], column)
    if len(rows) and target not in tables:
        yield f"{name}: {column} names rows of {target}, a table that is not there."
        return
    if not pa.types.is_list(tables[name][column].type) and (name, column) not in _OPTIONAL:
        empty = tables[name].num_rows - len(rows)
        if empty:
            yield f"{name}: {column} is empty in {empty:,} rows."
    if len(rows):
        lost = positions(values, tables[target]["id"]) < 0
        if lost.any():
            yield f"{name}: {int(lost.sum()):,} ids in {column} are no rows of {target}: {_examples(values, lost)}."


def _one_way(tables: Tables, left: str, there: str, right: str, back: str) -> Iterator[str]:
    if left not in tables or right not in tables:
        return
    rows, values = _pairs(tables[left], there)
    one = unique_pairs(*_known(rows, positions(values, tables[right]["id"])))
    rows, values = _pairs(tables[right], back)
    found = _known(rows, positions(values, tables[left]["id"]))
    other = unique_pairs(found[1], found[0])
    width = tables[right].num_rows + 1
    apart = np.setxor1d(one[0] * width + one[1], other[0] * width + other[1])
    if len(apart):
        ids = tables[left]["id"].combine_chunks().take(pa.array(np.unique(apart // width)[:_SHOWN]))
        yield (
            f"{left}.{there} and {right}.{back} do not say the same in {len(apart):,} cases, "
            f"of rows such as {_examples(ids)}."
        )


def _known(rows: Ints, found: Ints) -> tuple[Ints, Ints]:
    return rows[found >= 0], found[found >= 0]


def _documents(tables: Tables) -> Iterator[str]:
    """A document lists all text units that name it; it may list more, which then lie in several documents."""
    if DOCUMENTS not in tables or TEXT_UNITS not in tables:
        return
    rows, values = _pairs(tables[TEXT_UNITS], "document_id")
    unit, document = _known(rows, positions(values, tables[DOCUMENTS]["id"]))
    rows, values = flatten(tables[DOCUMENTS]["text_unit_ids"])
    owner, listed = _known(rows, positions(values, tables[TEXT_UNITS]["id"]))
    width = tables[TEXT_UNITS].num_rows + 1
    lost = ~np.isin(document * width + unit, owner * width + listed)
    if lost.any():
        ids = tables[TEXT_UNITS]["id"].combine_chunks().take(pa.array(unit[lost][:_SHOWN]))
        yield f"documents: {int(lost.sum()):,} text units name a document that does not list them: {_examples(ids)}."


def _family(communities: pa.Table) -> Iterator[str]:
    number = one_chunk(communities["community"])
    parent = one_chunk(communities["parent"])
    above = positions(parent, number)
    orphan = (above < 0) & (parent.to_numpy() != NO_PARENT)
    if orphan.any():
        yield f"communities: {int(orphan.sum()):,} have an unknown parent: {_examples(number, orphan)}."
    rows, children = flatten(communities["children"])
    child = positions(children, number)
    lost = child < 0
    if lost.any():
        yield f"communities: {int(lost.sum()):,} unknown children: {_examples(children, lost)}."
    width = communities.num_rows + 1
    said = np.unique(rows[child >= 0] * width + child[child >= 0])
    meant = np.flatnonzero(above >= 0)
    apart = np.setxor1d(said, above[meant] * width + meant)
    if len(apart):
        ids = number.take(pa.array(apart % width))
        yield f"communities: parents and children do not name each other in {len(apart):,} cases: {_examples(ids)}."


def _reports(communities: pa.Table, reports: pa.Table) -> Iterator[str]:
    mine, theirs = one_chunk(communities["community"]), one_chunk(reports["community"])
    bare = positions(mine, theirs) < 0
    if bare.any():
        yield f"community_reports: {int(bare.sum()):,} communities have no report: {_examples(mine, bare)}."
    loose = positions(theirs, mine) < 0
    if loose.any():
        yield f"community_reports: {int(loose.sum()):,} reports are on no community: {_examples(theirs, loose)}."
