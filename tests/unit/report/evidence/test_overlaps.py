"""Kept trees may overlap (indexes that were updated in place): equal communities still have reports of their own."""

from __future__ import annotations

from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ReportOptions
from communitree_workers.cluster.adopt import adopt
from communitree_workers.report.evidence.rows import count_rows
from communitree_workers.report.table import adopt_reports
from communitree_workers.tables.check import check_tables
from support.kept_trees import communities, graph


def test_two_parents_that_miss_the_same_members_make_a_sound_index() -> None:
    graph_tables = graph("abc")
    kept = communities([(1, 0, -1, "ab"), (2, 1, 1, "b"), (3, 0, -1, "ac"), (4, 1, 3, "c")])
    found = adopt(graph_tables, kept)
    rest = [row for row in found.communities.to_pylist() if row["kind"] == "remainder"]
    assert [row["entity_ids"] for row in rest] == [["a"], ["a"]]
    made = {**graph_tables, **found.tables, names.COMMUNITIES: found.communities}
    made = count_rows(made, "o200k_base")
    reports = adopt_reports(found.communities, None, made, ReportOptions(), "o200k_base", "en")
    assert len(set(reports["id"].to_pylist())) == 6
    assert check_tables({**made, names.COMMUNITY_REPORTS: reports}) == []
