"""Every way in which tables can dangle is found, and sound tables have no fault."""

from __future__ import annotations

from typing import Any

import pytest

from communitree_shared.contract import tables as names
from communitree_workers.cluster.adopt import adopt
from communitree_workers.tables.check import check_tables
from communitree_workers.tables.io import Tables, from_rows
from support.kept_trees import communities, graph


def sound() -> Tables:
    tables = graph("abc", [("a", "b")])
    kept = adopt(tables, communities([(0, 0, -1, "abc"), (1, 1, 0, "ab"), (2, 1, 0, "c")]))
    tables = {**tables, **kept.tables, names.COMMUNITIES: kept.communities}
    units = tables[names.TEXT_UNITS].to_pylist()
    units[0]["covariate_ids"] = ["c"]
    tables[names.TEXT_UNITS] = from_rows(names.TEXT_UNITS, units)
    tables[names.COVARIATES] = from_rows(names.COVARIATES, [{"id": "c", "entity_id": "a", "text_unit_id": "t-a"}])
    reports = [{"id": f"x{n}", "community": n} for n in range(3)]
    tables[names.COMMUNITY_REPORTS] = from_rows(names.COMMUNITY_REPORTS, reports)
    return tables


def test_sound_tables_have_no_fault() -> None:
    assert check_tables(sound()) == []
    assert check_tables({name: table.slice(0, 0) for name, table in sound().items()}) == []


@pytest.mark.parametrize(
    ("table", "row", "change", "fault"),
    [
        ("entities", 0, {"id": ""}, "entities: id is empty"),
        ("entities", 0, {"id": "b"}, "entities: 1 rows repeat a id: b"),
        ("relationships", 0, {"source_id": ""}, "relationships: source_id is empty in 1 rows"),
        ("relationships", 0, {"target_id": "zz"}, "1 ids in target_id are no rows of entities: zz"),
        ("relationships", 0, {"text_unit_ids": ["zz", "t-a"]}, "ids in text_unit_ids are no rows of text_units: zz"),
        ("entities", 1, {"human_readable_id": 0}, "entities: 1 rows repeat a human_readable_id: 0"),
        ("entities", 1, {"text_unit_ids": []}, "entities.text_unit_ids and text_units.entity_ids do not say the same"),
        ("text_units", 0, {"relationship_ids": []}, "relationships.text_unit_ids and text_units.relationship_ids"),
        ("text_units", 0, {"covariate_ids": []}, "covariates.text_unit_id and text_units.covariate_ids"),
        ("text_units", 0, {"document_id": "zz"}, "ids in document_id are no rows of documents: zz"),
        (
            "documents",
            0,
            {"text_unit_ids": ["t-a", "t-b"]},
            "1 text units name a document that does not list them: t-c",
        ),
        ("covariates", 0, {"entity_id": "zz"}, "ids in entity_id are no rows of entities"),
        ("communities", 1, {"entity_ids": ["a", "zz"]}, "communities: 1 ids in entity_ids are no rows of entities: zz"),
        ("communities", 1, {"parent": 9}, "1 have an unknown parent: 1"),
        ("communities", 1, {"parent": -1}, "parents and children do not name each other in 1 cases: 1"),
        ("communities", 0, {"children": [1, 2, 8]}, "1 unknown children: 8"),
        ("communities", 2, {"community": 1}, "communities: 1 rows repeat a community: 1"),
        ("community_reports", 2, {"community": 5}, "1 communities have no report: 2"),
        ("community_reports", 2, {"community": 5}, "1 reports are on no community: 5"),
        ("community_reports", 2, {"community": 1}, "community_reports: 1 rows repeat a community: 1"),
    ],
)
def test_a_fault_is_found_and_named(table: str, row: int, change: dict[str, Any], fault: str) -> None:
    tables = sound()
    rows = tables[table].to_pylist()
    rows[row].update(change)
    tables[table] = from_rows(table, rows)
    found = check_tables(tables)
    assert any(fault in sentence for sentence in found), found


def test_a_missing_column_or_table_is_found() -> None:
    tables = sound()
    assert check_tables({**tables, "entities": tables["entities"].drop_columns(["mass"])}) == [
        "entities: columns are missing: mass."
    ]
    del tables["text_units"]
    assert "entities: text_unit_ids names rows of text_units, a table that is not there." in check_tables(tables)
