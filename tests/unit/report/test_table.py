import json

import pytest
from hypothesis import given, settings

from communitree_shared import tokens
from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ReportOptions
from communitree_shared.errors import IntegrityError
from communitree_workers.report.citations import cited
from communitree_workers.report.evidence.rows import count_rows
from communitree_workers.report.records import Report
from communitree_workers.report.table import MISSING, adopt_reports, report_table
from communitree_workers.report.writing.attachment import attach
from communitree_workers.report.writing.reply import parse_report
from communitree_workers.tables.io import Tables, from_bytes, from_rows, schema, to_bytes
from support.reports import ENCODING, write_all
from support.trees import Shape, corpora, corpus

DEEP = Shape(entities=40, relationships=90, claims=6, documents=2, depth=4, branching=3, words=25, seed=11)


@settings(max_examples=8)
@given(corpora())
def test_one_row_for_each_community(tables: Tables) -> None:
    communities = tables[names.COMMUNITIES]
    evidence, reports = write_all(tables, ReportOptions(max_prompt_tokens=700))
    table = report_table(communities, reports, ENCODING)
    assert table.schema.equals(schema(names.COMMUNITY_REPORTS))
    assert table["community"].to_pylist() == communities["community"].to_pylist()
    rows = table.to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["n_tokens"] == tokens.count(row["full_content"])
        assert row["n_tokens_summary"] == tokens.count(row["summary"])
        whole = json.loads(row["full_content_json"])
        assert whole["title"] == row["title"]
        for offset, finding in zip(whole["offsets"], row["findings"], strict=True):
            assert row["full_content"][offset:].startswith(f"## {finding['summary']}\n\n{finding['explanation']}")
        assert json.loads(row["evidence"]) == evidence[row["community"]].record
        assert json.loads(row["omitted"]) == evidence[row["community"]].omitted
        assert 0 <= row["direct"] <= row["mass"]
    stored = {number: Report.from_json(report.to_json()) for number, report in reports.items()}
    assert to_bytes(table) == to_bytes(report_table(communities, stored, ENCODING))
    assert from_bytes(to_bytes(table)).equals(table)


def test_a_hole_is_an_error() -> None:
    tables = corpus(DEEP)
    with pytest.raises(IntegrityError, match="Community 0 "):
        report_table(tables[names.COMMUNITIES], {}, ENCODING)


def test_parent_with_one_child_has_another_id() -> None:
    tables = corpus(Shape(entities=6, depth=2, branching=1, documents=0, seed=3))
    _, reports = write_all(tables, ReportOptions())
    rows = report_table(tables[names.COMMUNITIES], reports, ENCODING).to_pylist()
    assert len(rows) == 2
    assert rows[0]["key"] == rows[1]["key"]
    assert rows[0]["id"] != rows[1]["id"]


def test_a_stored_report_is_taken_over_by_a_version_with_other_numbers() -> None:
    tables = corpus(DEEP)
    moved = dict(tables)
    for name in (names.ENTITIES, names.RELATIONSHIPS, names.COVARIATES, names.TEXT_UNITS):
        rows = tables[name].to_pylist()
        moved[name] = from_rows(name, [{**row, "human_readable_id": 1000 - row["human_readable_id"]} for row in rows])
    options = ReportOptions(max_prompt_tokens=100_000)
    old, _ = write_all(tables, options)
    new, _ = write_all(moved, options)
    number = max(old, key=lambda n: len(old[n].numbers["relationships"]))
    before, after = old[number], new[number]
    if before.record["text_units"] != after.record["text_units"]:  # their order follows the numbers
        assert before.hash != after.hash
        number = max((n for n in old if not old[n].record["text_units"]), key=lambda n: old[n].size)
        before, after = old[number], new[number]
    assert before.hash == after.hash
    some = [before.numbers["entities"][0], before.numbers["entities"][-1]]
    text = f"In 1990. [Data: Entities ({some[0]}, {some[1]}); Claims (77777)]"
    reply = {"title": "T", "summary": "S.", "rating": 3, "findings": [{"summary": "F", "explanation": text}]}
    stored = Report.from_json(parse_report(reply, before, "m").to_json())
    taken = attach(stored, after)
    assert cited(taken.findings[0].explanation) == {"entities": [1000 - some[0], 1000 - some[1]]}
    assert "In 1990." in taken.findings[0].explanation
    assert "[Unverified: Claims (77777)]" in taken.findings[0].explanation
    assert taken.findings[0].explanation in taken.full_content
    assert taken.record == after.record
    assert attach(taken, after) == taken
    assert attach(attach(taken, before), after) == taken


def test_imported_reports_are_kept_and_gaps_filled() -> None:
    tables = count_rows(corpus(DEEP), ENCODING)
    communities = tables[names.COMMUNITIES]
    finding = {"summary": "A", "explanation": "B [Data: Entities (1)]"}
    given = [
        {
            "community": number,
            "title": f"Title {number}",
            "summary": "Theirs.",
            "full_content": f"# T{number}\n\nTheirs.",
            "rank": 8.5,
            "findings": [finding],
            "full_content_json": "{}",
        }
        for number in communities["community"].to_pylist()
        if number % 4
    ]
    reports = from_rows(names.COMMUNITY_REPORTS, [*given, {"community": 9_999, "title": "nobody's"}])
    options = ReportOptions(max_prompt_tokens=1_000)
    table = adopt_reports(communities, reports, tables, options, ENCODING, "en")
    assert table["community"].to_pylist() == communities["community"].to_pylist()
    for row in table.to_pylist():
        if row["community"] % 4:
            assert row["generated_by"] == "imported"
            assert (row["title"], row["rank"]) == (f"Title {row['community']}", 8.5)
            assert row["full_content"] == f"# T{row['community']}\n\nTheirs."
            assert row["n_tokens"] == tokens.count(row["full_content"])
            assert row["cause"] == ""
        else:
            assert (row["generated_by"], row["cause"]) == ("extractive", MISSING)
            assert row["summary"]
        if row["is_leaf"] and row["community"] % 4:
            assert row["direct"] == row["mass"]
    inner = [r for r in table.to_pylist() if not r["is_leaf"] and r["generated_by"] == "imported"]
    assert any(row["direct"] < row["mass"] for row in inner)
    none = adopt_reports(communities, None, tables, options, ENCODING, "en")
    assert set(none["generated_by"].to_pylist()) == {"extractive"}
