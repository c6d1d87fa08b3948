"""A cited sentence leads to the text behind the finding it rests on, through child reports too."""

from __future__ import annotations

from communitree_shared.contract import tables as names
from communitree_workers.query.answer.citations import Behind
from communitree_workers.query.answer.sources import FindingSources, rows_cited
from communitree_workers.tables.io import from_rows

TABLES = {
    names.TEXT_UNITS: from_rows(names.TEXT_UNITS, [{"id": f"t{i}", "human_readable_id": i} for i in range(6)]),
    names.ENTITIES: from_rows(names.ENTITIES, [
        {"id": "a", "human_readable_id": 10, "title": "Ship", "text_unit_ids": ["t1", "t2"]},
        {"id": "b", "human_readable_id": 11, "title": "Sea", "text_unit_ids": ["t2", "gone"]},
    ]),
    names.RELATIONSHIPS: from_rows(names.RELATIONSHIPS, [
        {"id": "r", "human_readable_id": 7, "source": "Ship", "target": "Sea", "text_unit_ids": ["t2"]},
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
    assert locate(1, "Many ships sail the sea") == Behind(["t2", "t1"], [10, 11], [7])
    assert locate(1, "The bridge fell") == Behind(["t4", "t5"])
    assert locate(1, "Tall towers rise") == Behind(["t0"])
    assert locate(1, "Zebras") == locate(99, "Ships") == locate(2, "Loops") == Behind([])


def test_rows_have_titles() -> None:
    locate = FindingSources(TABLES)
    assert [locate.entity(number) for number in (10, 11, 12)] == ["Ship", "Sea", None]
    assert [locate.relationship(number) for number in (7, 8)] == ["Ship – Sea", None]


def test_citations_of_rows_are_read() -> None:
    assert rows_cited("x [Data: Entities (1, 2, +more); Reports (3)] y【数据：Claims（4）】") == [
        (names.ENTITIES, (1, 2)), (names.COMMUNITY_REPORTS, (3,)), (names.COVARIATES, (4,)),
    ]  # fmt: skip
