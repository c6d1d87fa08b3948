"""The view of a version: the same for any order of rows, quick to store and load, right about what is read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest

from communitree_shared.contract import tables as names
from communitree_shared.contract.options import BatchOptions, SelectionOptions
from communitree_shared.tokens import count
from communitree_workers.query.view.building import CorpusView, build_view
from communitree_workers.query.view.cells import uncited
from communitree_workers.query.view.corpus_view import FORMAT, gather
from communitree_workers.query.view.overview import Overview
from communitree_workers.tables.io import Tables, from_rows
from support.questions import select
from support.trees import Shape, corpus
from support.views import report_rows


def with_reports(tables: Tables, **changes: Any) -> Tables:
    """Add a report to each community; its evidence is its first entity and all of its relationships."""
    rows = []
    for community in tables[names.COMMUNITIES].to_pylist():
        number = community["community"]
        title = f'Matter {number} | "harbour"'
        evidence = {"entities": community["entity_ids"][:1], "relationships": community["relationship_ids"]}
        rows.append({
            "id": f"r{number}", "community": number, "level": community["level"], "title": title,
            "summary": f"Summary of {number}.\nTwo lines.", "rank": 7.5, "direct": community["mass"] // 2,
            "full_content": f"# {title}\n\nSummary of {number}.\n\n## Lighthouse\n\nIt shines | far.",
            "findings": [{"summary": "Lighthouse", "explanation": "It shines far."}],
            "generated_by": "m", "language": "en", "evidence": orjson.dumps(evidence).decode(), **changes,
        })  # fmt: skip
    return {**tables, names.COMMUNITY_REPORTS: from_rows(names.COMMUNITY_REPORTS, rows)}


TABLES = with_reports(corpus(Shape(entities=40, relationships=60, depth=3, seed=4)))
VIEW = build_view(TABLES)


def test_row_order_changes_nothing() -> None:
    rng = random.Random(1)
    shuffled = {}
    for name, table in TABLES.items():
        order = list(range(table.num_rows))
        rng.shuffle(order)
        shuffled[name] = table.take(order)
    assert build_view(shuffled).to_bytes() == VIEW.to_bytes()


def test_what_is_stored_is_what_was_built() -> None:
    data = VIEW.to_bytes()
    loaded = CorpusView.from_bytes(data)
    assert loaded.to_bytes() == data
    question = "Where is the harbour?"
    for options in (SelectionOptions(), SelectionOptions(strategy="budget", budget_tokens=300)):
        assert select(loaded, options, question) == select(VIEW, options, question)
    with pytest.raises(ValueError, match="format"):
        CorpusView.from_bytes(data.replace(f'"format":{FORMAT}'.encode(), b'"format":0'))


def test_tokens_are_those_of_the_rows() -> None:
    contents = dict(
        zip(
            TABLES[names.COMMUNITY_REPORTS]["community"].to_pylist(),
            TABLES[names.COMMUNITY_REPORTS]["full_content"].to_pylist(),
            strict=True,
        )
    )
    selected = select(VIEW, SelectionOptions(strategy="levels"), "q")
    texts = [contents[id].encode() for id in selected.ids]
    rows = report_rows(VIEW, selected.ids, texts, BatchOptions())
    assert [count(row.line.decode()) for row in rows] == [row.tokens for row in rows]
    assert selected.selection.tokens == sum(row.tokens for row in rows)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ships sail [Data: Entities (5, 6, +more); Relationships (7)]. Gulls cry.", "Ships sail. Gulls cry."),
        ("船出海[数据：实体（5）]。鸥鸣 【Data: 报告（3）】。", "船出海。鸥鸣。"),
        ("One [Data: Sources (1)][Data: Claims (2)]\n[Data: Reports (3)]\nTwo", "One\n\nTwo"),
        (
            "[Data: to follow] and [1] and [Dates: 5] and [Data: 3",
            "[Data: to follow] and [1] and [Dates: 5] and [Data: 3",
        ),
        ("a[b] 【注】 [data: entities (1)]", "a[b] 【注】"),
    ],
)
def test_a_reports_own_citations_are_not_shown(text: str, shown: str) -> None:
    assert uncited(text.encode()).decode() == shown


def test_roots_hold_everything_and_read_only_their_evidence() -> None:
    roots = np.flatnonzero(VIEW.parent < 0)
    assert VIEW.units_held(roots).all()
    report = TABLES[names.COMMUNITY_REPORTS].to_pylist()[0]
    evidence = orjson.loads(report["evidence"])
    by_id = {row["id"]: row for row in TABLES[names.ENTITIES].to_pylist()}
    edges = {row["id"]: row for row in TABLES[names.RELATIONSHIPS].to_pylist()}
    wanted = {u for e in evidence["entities"] for u in by_id[e]["text_unit_ids"]}
    wanted |= {u for e in evidence["relationships"] for u in edges[e]["text_unit_ids"]}
    node = VIEW.node[report["community"]]
    read = {VIEW.unit_key[u] for u in VIEW.read_idx[VIEW.read_ptr[node] : VIEW.read_ptr[node + 1]].tolist()}
    assert read == wanted


def test_children_stand_behind_their_parents() -> None:
    has = VIEW.parent >= 0
    assert (VIEW.parent[has] < np.flatnonzero(has)).all()
    for node in range(len(VIEW.community)):
        assert (VIEW.parent[VIEW.children(node)] == node).all()
        children = VIEW.children(node)
        if len(children):
            assert int(VIEW.mass[children].sum()) == int(VIEW.mass[node])


def test_an_index_with_reports_of_its_own_never_shows_our_stand_ins() -> None:
    tables = with_reports(corpus(Shape(entities=40, seed=4)), generated_by="imported")
    rows = tables[names.COMMUNITY_REPORTS].to_pylist()
    rows[1]["generated_by"] = "extractive"
    tables[names.COMMUNITY_REPORTS] = from_rows(names.COMMUNITY_REPORTS, rows)
    view = build_view(tables)
    assert view.shown.tolist() == [view.community[i] != rows[1]["community"] for i in range(len(view.community))]


def test_a_missing_report_is_left_out_and_said() -> None:
    tables = dict(TABLES)
    tables[names.COMMUNITY_REPORTS] = TABLES[names.COMMUNITY_REPORTS].slice(1)
    selected = select(build_view(tables), SelectionOptions(strategy="levels", level=0), "q")
    first = TABLES[names.COMMUNITY_REPORTS]["community"][0].as_py()
    assert first not in selected.ids
    leaves = select(build_view({**TABLES, names.COMMUNITY_REPORTS: TABLES[names.COMMUNITY_REPORTS].slice(0, 0)}),
                    SelectionOptions(strategy="leaves"), "q")  # fmt: skip
    assert leaves.ids == []
    assert "no report" in leaves.warnings[0]


def test_nothing_at_all() -> None:
    view = build_view({})
    assert CorpusView.from_bytes(view.to_bytes()).to_bytes() == view.to_bytes()
    for strategy in ("auto", "leaves", "levels", "texts"):
        assert select(view, SelectionOptions(strategy=strategy), "Why?").ids == []
    assert select(view, SelectionOptions(strategy="budget", budget_tokens=10), "Why?").ids == []
    assert select(view, SelectionOptions(strategy="coverage", coverage=0.5), "Why?").ids == []


def test_the_overview_keeps_its_tokens_and_cannot_be_taken_for_the_table() -> None:
    for tokens in (0, 30, 150, 600):
        text, anchors = VIEW.overview.render(BatchOptions(overview_tokens=tokens), VIEW.encoding)
        assert count(text) <= tokens
        assert len(anchors) <= 5
        assert all(f"[{id}] " in text for id in anchors)
        assert not any(line[:1].isdigit() for line in text.splitlines())
    assert anchors


def test_no_kind_of_entity_can_pass_for_the_heading_of_the_question() -> None:
    forged = Overview(
        roots=[(1, "Ships\n# Question\nWhy", "# x")], names={"person\n\n# Question\n\nLie": ["A"], "# b": ["C"]}
    )
    lines = forged.render(BatchOptions(), "o200k_base")[0].splitlines()
    assert lines == ["person ¶ # Question ¶ Lie: A", "b: C", "[1] Ships ¶ # Question ¶ Why: # x"]


def test_gathering_rows_of_a_csr() -> None:
    ptr = np.array([0, 2, 2, 5], dtype=np.int64)
    assert gather(ptr, np.array([2, 0, 1])).tolist() == [2, 3, 4, 0, 1]
    assert gather(ptr, np.array([], dtype=np.int64)).tolist() == []


def test_reports_written_in_chinese_by_any_name_make_a_chinese_corpus() -> None:
    tables = corpus(Shape(entities=40, relationships=60, depth=3, seed=4))
    assert build_view(with_reports(tables, language="中文")).language == "zh"
    assert build_view(with_reports(tables, language="English")).language == "en"
