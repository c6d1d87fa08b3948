"""Where small roots and text without entities go."""

from __future__ import annotations

from typing import Any

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import COMMUNITIES, DOCUMENTS, TEXT_UNITS
from communitree_workers.cluster.core import build
from communitree_workers.tables.io import Tables, from_rows
from support.graphs import clique, corpus, faults_of, rows_of


def tree(tables: Tables, **options: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    made = build(tables, ClusterOptions(**options))
    assert faults_of({**made.tables, COMMUNITIES: made.communities}) == []
    return rows_of(made.communities), made.stats


def test_a_small_root_becomes_a_child_of_the_root_it_shares_text_with() -> None:
    big, tight = [f"A{i:02d}" for i in range(12)], ["X", "Y", "Z"]
    text = [("d", [*big[:4], "X", "Y", "Z"])]
    rows, stats = tree(corpus([*big, *tight], clique(big) + clique(tight, 50.0), text))
    roots = [row for row in rows if row["level"] == 0]
    assert len(roots) == 1
    assert stats.attached_roots == 1
    children = [row for row in rows if row["parent"] == roots[0]["community"]]
    assert sorted(map(len, (c["entity_ids"] for c in children))) == [3, 12]  # a leaf root first gets its own members
    assert {c["kind"] for c in children} == {"cluster"}


def test_what_shares_nothing_hangs_under_one_residual_root_by_document() -> None:
    big = [f"A{i:02d}" for i in range(12)]
    lone = [f"L{i:02d}" for i in range(30)]
    text = [("main", big)] + [(f"doc{i % 3}", [name]) for i, name in enumerate(lone)]
    # entities of one document are tied to each other, so that these form roots of their own
    rows, _ = tree(corpus([*big, *lone], clique(big), text))
    roots = [row for row in rows if row["level"] == 0]
    assert [row["kind"] for row in roots].count("residual") <= 1
    names = [{i for i in row["entity_ids"] if i.startswith("id-L")} for row in rows if row["is_leaf"]]
    documents = {f"id-{name}": i % 3 for i, name in enumerate(lone)}
    assert all(len({documents[i] for i in part}) == 1 for part in names if part)


def test_entities_without_any_text_are_packed_in_title_order() -> None:
    lone = [f"L{i:03d}" for i in range(450)]
    rows, stats = tree(corpus(lone))
    assert stats.residual_roots == 450
    assert rows[0]["kind"] == "residual"
    leaves = [row for row in rows if row["is_leaf"]]
    assert len(leaves) == 45
    assert {row["size"] for row in leaves} == {10}
    assert {row["kind"] for row in leaves} == {"documents"}
    assert max(len(row["children"]) for row in rows) <= 20
    ordered = sorted(row["entity_ids"] for row in leaves)
    assert [i for ids in ordered for i in ids] == [f"id-{name}" for name in lone]


def test_a_corpus_of_small_components_has_them_as_roots() -> None:
    groups = [[f"G{g}N{i}" for i in range(4)] for g in range(3)]
    rows, _ = tree(corpus([n for g in groups for n in g], [e for g in groups for e in clique(g)]))
    assert [(row["level"], row["size"], row["kind"]) for row in rows] == [(0, 4, "cluster")] * 3


def test_too_many_small_components_hang_together() -> None:
    groups = [[f"G{g:02d}N{i}" for i in range(4)] for g in range(50)]
    rows, _ = tree(corpus([n for g in groups for n in g], [e for g in groups for e in clique(g)]))
    assert rows[0]["size"] == 200
    assert rows[0]["kind"] == "residual"
    assert max(len(row["children"]) for row in rows) <= 20
    assert {(row["kind"], row["size"]) for row in rows if row["is_leaf"]} == {("cluster", 4)}


def test_a_document_entity_stays_alone_and_fits_a_report() -> None:
    names = [f"A{i}" for i in range(12)]
    text = [("d", names)] + [("d", [])] * 100 + [("e", ["A0"]), ("e", []), ("e", ["lone"]), ("f", ["solo"])]
    tables = corpus([*names, "lone", "solo"], clique(names), text)
    rows, stats = tree(tables)
    assert stats.document_entities == 3  # 100 text units of 100 tokens are cut at 6,000
    residual = next(row for row in rows if row["kind"] == "residual")
    assert {row["size"] for row in rows if row["kind"] == "documents" and row["is_leaf"]} == {1}
    assert residual["weight"] == 102  # the runs of d and e, and solo's text unit
    assert residual["size"] == 4


def test_documents_of_one_title_are_told_apart() -> None:
    tables = corpus([], text=[("d1", []), ("d2", [])])
    documents = [{**row, "title": "same"} for row in tables[DOCUMENTS].to_pylist()]
    made = build({**tables, DOCUMENTS: from_rows(DOCUMENTS, documents)}, ClusterOptions())
    assert made.tables["entities"]["title"].to_pylist() == ["same (d1) [1]", "same (d2) [1]"]


def test_text_units_of_no_document_are_held_too() -> None:
    tables = corpus([], text=[("", []), ("d", []), ("", [])])
    made = build(tables, ClusterOptions())
    assert made.tables["entities"]["title"].to_pylist() == ["d.txt [1]", "[1–2]"]
    assert made.stats.coverage.text_units == 1.0


def test_positions_follow_human_readable_ids_not_rows() -> None:
    rows = [
        {**row, "human_readable_id": 9 - i}
        for i, row in enumerate(corpus([], text=[("d", [])] * 3)[TEXT_UNITS].to_pylist())
    ]
    made = build({TEXT_UNITS: from_rows(TEXT_UNITS, rows)}, ClusterOptions())
    assert made.tables["entities"]["text_unit_ids"].to_pylist() == [["t002", "t001", "t000"]]
