"""A cited sentence leads to the text behind the finding it rests on, through child reports too."""

from __future__ import annotations

from communitree_shared import tables as names
from communitree_workers.query.sources import FindingSources, rows_cited
from communitree_workers.tables.io import from_rows

TABLES = {
    names.TEXT_UNITS: from_rows(names.TEXT_UNITS, [{"id": f"t{i}", "human_readable_id": i} for i in range(6)]),
    names.ENTITIES: from_rows(names.ENTITIES, [
        {"id": "a", "human_readable_id": 10, "text_unit_ids": ["t1", "t2"]},
        {"id": "b", "human_readable_id": 11, "text_unit_ids": ["t2", "gone"]},
    ]),
    names.RELATIONSHIPS: from_rows(names.RELATIONSHIPS, [
        {"id": "r", "human_readable_id": 7, "text_unit_ids": ["t2"]},
    ]),
    names.COVARIATES: from_rows(names.COVARIATES, [{"id": "c", "human_readable_id": 3, "text_unit_id": "t5"}]),
    names.COMMUNITY_REPORTS: from_rows(names.COMMUNITY_REPORTS, [
        {"community": 1, "findings": [
            {"summary": "Ships", "explanation": "Ships sail [Data: Entities (10, 11, +more); Relationships (7)]."},
            {"summary": "Bridges", "explanation": "A bridge fell [Data: Claims (3); Sources (4)]."},
            {"summary": "Towers", "explanation": "Towers rise [Data: Reports (2)]."},
        ]},
        {"community": 2, "findings": [{"summary": "Towers", "explanation": "Tall towers [Data: Sources (0)]."},
                                      {"summary": "Loops", "explanation": "Loops [Data: Reports (2)]."}]},
    ]),
}  # fmt: skip


def test_a_statement_leads_to_its_finding() -> None:
    locate = FindingSources(TABLES)
    assert locate(1, "Many ships sail the sea") == ["t2", "t1"]
    assert locate(1, "The bridge fell") == ["t4", "t5"]
    assert locate(1, "Tall towers rise") == ["t0"]
    assert locate(1, "Zebras") == []
    assert locate(99, "Ships") == []
    assert locate(2, "Loops") == []


def test_citations_of_rows_are_read() -> None:
    assert rows_cited("x [Data: Entities (1, 2, +more); Reports (3)] y【数据：Claims（4）】") == [
        (names.ENTITIES, [1, 2]), (names.COMMUNITY_REPORTS, [3]), (names.COVARIATES, [4]),
    ]  # fmt: skip
