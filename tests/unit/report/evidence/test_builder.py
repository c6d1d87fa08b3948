"""Invariant 3: each row counts once, no prompt above its limit, no call without evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared import tokens
from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ReportOptions
from communitree_shared.errors import IntegrityError
from communitree_workers.report.evidence import EvidenceBuilder
from communitree_workers.report.evidence.prompt import messages
from communitree_workers.report.evidence.rows import count_rows
from communitree_workers.report.records import KINDS, ChildReport, Evidence, Report
from communitree_workers.report.writing.extractive import read_data, write_report
from communitree_workers.tables.io import Tables, from_rows
from support.reports import ENCODING, write_all
from support.trees import Shape, corpora, corpus

BUDGETS = st.one_of(st.integers(200, 700), st.sampled_from([1_000, 2_000, 100_000]))
TABLE = {"entities": names.ENTITIES, "relationships": names.RELATIONSHIPS, "claims": names.COVARIATES}


def held(tables: Tables) -> dict[int, dict[str, set[str]]]:
    """What each community holds, taken from the tables in the plainest way."""
    documents = {r["id"]: r["text_unit_ids"] for r in tables[names.ENTITIES].to_pylist() if r["type"] == "document"}
    out = {}
    for row in tables[names.COMMUNITIES].to_pylist():
        out[row["community"]] = {
            "entities": set(row["entity_ids"]) - set(documents),
            "relationships": set(row["relationship_ids"]),
            "claims": set(row["covariate_ids"]),
            "text_units": {unit for e in row["entity_ids"] for unit in documents.get(e, ())},
        }
    return out


@settings(max_examples=30)
@given(corpora(), BUDGETS, st.booleans(), st.integers(0, 12))
def test_each_row_counts_once(tables: Tables, budget: int, short: bool, salt: int) -> None:
    def writer(evidence: Evidence, language: str) -> Report | None:
        if salt > 8 and (evidence.community + salt) % 3 == 0:
            return None
        return brief(evidence, language) if short else write_report(evidence, language)

    rows = held(tables)
    evidence, _ = write_all(tables, ReportOptions(max_prompt_tokens=budget), writer=writer)
    assert set(evidence) == set(rows)
    known: dict[int, dict[str, dict[str, set[str]]]] = {}
    for number in sorted(evidence, key=lambda n: -evidence[n].level):
        found, record = evidence[number], evidence[number].record
        known[number] = {}
        for kind in KINDS:
            total = rows[number][kind]
            direct = set(record[kind])
            assert len(direct) == len(record[kind])
            assert direct <= total, "a foreign row stands in the prompt"
            through: set[str] = set()
            pale: set[str] = set()
            for child in record["reports"]:
                through |= known[child][kind]["direct"] | known[child][kind]["through"]
                pale |= known[child][kind]["aggregated"]
            for child in record["titles"]:
                pale |= rows[child][kind] - known[child][kind]["omitted"]
            if kind == "relationships":
                pale |= between(tables, rows, record["pairs"], total)
            through -= direct
            pale -= direct | through
            lost = total - direct - through - pale
            known[number][kind] = {"direct": direct, "through": through, "aggregated": pale, "omitted": lost}
            counted = {state: record["counts"][state][kind] for state in (*known[number][kind], "total")}
            assert counted == {**{s: len(ids) for s, ids in known[number][kind].items()}, "total": len(total)}
            assert found.omitted[kind] == len(lost)
            assert set(found.omitted["ids"].get(kind, [])) == lost


def between(
    tables: Tables, rows: Mapping[int, Mapping[str, set[str]]], pairs: list[list[int]], mine: set[str]
) -> set[str]:
    found = set()
    ends = {r["id"]: (r["source_id"], r["target_id"]) for r in tables[names.RELATIONSHIPS].to_pylist()}
    for a, b, n in pairs:
        one, other = rows[a]["entities"], rows[b]["entities"]
        counted = {i for i in mine if {x in one for x in ends[i]} == {True, False} and any(x in other for x in ends[i])}
        assert len(counted) == n
        found |= counted
    return found


@settings(max_examples=15)
@given(corpora(), BUDGETS, st.sampled_from(["en", "zh"]))
def test_no_prompt_above_its_limit_and_no_call_without_evidence(tables: Tables, budget: int, language: str) -> None:
    options = ReportOptions(max_prompt_tokens=budget)
    evidence, reports = write_all(tables, options, language)
    for number, found in evidence.items():
        chat = messages(found, options, {})
        whole = sum(tokens.count(message["content"]) for message in chat)
        overhead = tokens.count(chat[0]["content"]) + 11
        assert found.prompt_tokens <= budget
        if found.needs_model:
            assert tokens.count(found.data) + overhead == found.prompt_tokens >= whole
            assert read_data(found.data)
            assert found.size >= options.min_entities
        assert reports[number].title
        assert reports[number].summary
        assert Evidence.from_json(found.to_json()) == found
        assert Report.from_json(reports[number].to_json()) == reports[number]


@settings(max_examples=10)
@given(corpora())
def test_all_is_direct_where_it_fits(tables: Tables) -> None:
    evidence, _ = write_all(tables, ReportOptions(max_prompt_tokens=1_000_000))
    mass = {row["community"]: row["mass"] for row in tables[names.COMMUNITIES].to_pylist()}
    for number, found in evidence.items():
        counts = found.record["counts"]
        assert counts["direct"] == counts["total"]
        assert found.direct == mass[number]
        assert found.record["reports"] == found.record["titles"] == found.record["pairs"] == []


@settings(max_examples=10)
@given(corpora(), BUDGETS, st.randoms(use_true_random=False))
def test_row_order_changes_nothing(tables: Tables, budget: int, rng: np.random.Generator) -> None:
    options = ReportOptions(max_prompt_tokens=budget)
    shuffled = {}
    for name, table in tables.items():
        order = list(range(table.num_rows))
        rng.shuffle(order)
        shuffled[name] = table.take(pa.array(order, pa.int64()))
    first, _ = write_all(tables, options)
    second, _ = write_all(shuffled, options)
    for number, found in first.items():
        other = second[number]
        assert (found.data, found.hash, found.direct) == (other.data, other.hash, other.direct)
        assert (found.record, found.omitted, found.names) == (other.record, other.omitted, other.names)


@settings(max_examples=10)
@given(corpora(), BUDGETS)
def test_other_row_numbers_give_the_same_hash(tables: Tables, budget: int) -> None:
    """A document added elsewhere renumbers rows; reports whose evidence did not change are still taken over."""
    options = ReportOptions(max_prompt_tokens=100_000)
    moved = dict(tables)
    for name in (*TABLE.values(), names.TEXT_UNITS):
        table = tables[name]
        numbers = pa.array([number + 5 for number in table["human_readable_id"].to_pylist()], pa.int64())
        moved[name] = table.set_column(1, table.schema.field(1), numbers)
    first, _ = write_all(tables, options)
    second, _ = write_all(moved, options)
    assert {n: e.hash for n, e in first.items()} == {n: e.hash for n, e in second.items()}


@pytest.fixture(scope="module")
def clique() -> Tables:
    """Twelve entities, all 66 relationships, split six and six."""
    ids = [f"e{i:02}" for i in range(12)]
    pairs = [(a, b) for a in range(12) for b in range(a)]
    text = "quietly financed the disputed bridges near the northern harbour in the year of the treaty"
    entities = [
        {"id": ids[i], "human_readable_id": i, "title": f"ENTITY {i}", "description": text, "mass": 10}
        for i in range(12)
    ]
    edges = [
        {"id": f"r{i}", "human_readable_id": i, "source": f"ENTITY {a}", "target": f"ENTITY {b}", "source_id": ids[a],
         "target_id": ids[b], "description": text, "weight": 1.0 + i}
        for i, (a, b) in enumerate(pairs)
    ]  # fmt: skip
    claims = [
        {"id": f"c{i}", "human_readable_id": i, "subject_id": f"ENTITY {i}", "entity_id": ids[i], "description": text}
        for i in range(12)
    ]

    def community(number: int, level: int, members: range, children: list[int]) -> dict[str, object]:
        inside = set(members)
        return {
            "community": number, "key": f"key{number}", "level": level, "children": children,
            "entity_ids": [ids[i] for i in members], "size": len(members), "mass": 10 * len(members),
            "relationship_ids": [f"r{i}" for i, (a, b) in enumerate(pairs) if a in inside and b in inside],
            "covariate_ids": [f"c{i}" for i in members],
        }  # fmt: skip

    found = [community(0, 0, range(12), [1, 2]), community(1, 1, range(6), []), community(2, 1, range(6, 12), [])]
    return {
        names.ENTITIES: from_rows(names.ENTITIES, entities),
        names.RELATIONSHIPS: from_rows(names.RELATIONSHIPS, edges),
        names.COVARIATES: from_rows(names.COVARIATES, claims),
        names.TEXT_UNITS: from_rows(names.TEXT_UNITS, []),
        names.COMMUNITIES: from_rows(names.COMMUNITIES, found),
    }


def brief(evidence: Evidence, language: str) -> Report:
    """A report as short as a model's would be."""
    report = write_report(evidence, language)
    text = f"# {report.title}\n\nShort."
    return replace(report, summary="Short.", findings=[], full_content=text)


def test_all_internal_relationships_and_claims_are_candidates(clique: Tables) -> None:
    evidence, _ = write_all(clique, ReportOptions())
    assert evidence[0].record["counts"]["direct"] == {
        "entities": 12,
        "relationships": 66,
        "claims": 12,
        "text_units": 0,
    }
    assert len(read_data(evidence[0].data)["claims"]) == 12


def test_child_reports_stand_in_for_their_members(clique: Tables) -> None:
    whole = write_all(clique, ReportOptions())[0][0].prompt_tokens
    evidence, _ = write_all(clique, ReportOptions(max_prompt_tokens=whole - 1), writer=brief)
    root = evidence[0]
    assert root.record["reports"] == [2] or root.record["reports"] == [1], "one child is enough to replace"
    counts = root.record["counts"]
    assert counts["omitted"] == dict.fromkeys(KINDS, 0)
    assert counts["direct"]["relationships"] + counts["through"]["relationships"] == 66
    assert counts["through"]["relationships"] > 0
    section = read_data(root.data)["reports"]
    assert [row.number for row in section] == root.record["reports"]
    assert "[Data:" not in root.data, "a child's citations would name rows that are not there"


def test_counted_rows_when_even_reports_are_too_much(clique: Tables) -> None:
    evidence, _ = write_all(clique, ReportOptions(max_prompt_tokens=900), writer=brief)
    record = evidence[0].record
    assert record["pairs"] == [[1, 2, 36]]
    counts = record["counts"]
    assert counts["aggregated"]["relationships"] == 36 - sum(
        {int(e.split()[1]) < 6 for e in row.fields[:2]} == {True, False}
        for row in read_data(evidence[0].data)["relationships"]
    )
    assert "36," in evidence[0].data


def test_a_child_without_a_report_is_told_apart(clique: Tables) -> None:
    evidence, _ = write_all(
        clique,
        ReportOptions(max_prompt_tokens=1_300),
        writer=lambda e, language: brief(e, language) if e.community != 1 else None,
    )
    root = evidence[0]
    assert root.record["reports"] == [2]
    assert root.omitted["reports"] == [1]
    assert root.omitted["entities"] == 6 - sum(e in {f"e{i:02}" for i in range(6)} for e in root.record["entities"])


def test_a_row_longer_than_the_budget_is_shortened(clique: Tables) -> None:
    entities = clique[names.ENTITIES].to_pylist()
    entities[3]["description"] = "a long story about the harbour " * 2_000
    tables = {**clique, names.ENTITIES: from_rows(names.ENTITIES, entities)}
    evidence, _ = write_all(tables, ReportOptions(max_prompt_tokens=3_000))
    found = evidence[1]
    assert found.prompt_tokens <= 3_000
    assert found.record["shortened"] == {"entities": ["e03"]}
    (row,) = [row for row in read_data(found.data)["entities"] if row.number == 3]
    assert row.fields[-1].endswith("[…]")
    assert len(read_data(found.data)["entities"]) == 6, "the others still have room"


def test_an_edge_that_leaves_the_community_is_no_evidence(clique: Tables) -> None:
    rows = clique[names.COMMUNITIES].to_pylist()
    rows[1]["relationship_ids"] = rows[0]["relationship_ids"]
    evidence, _ = write_all({**clique, names.COMMUNITIES: from_rows(names.COMMUNITIES, rows)}, ReportOptions())
    assert evidence[1].record["counts"]["total"]["relationships"] == 15


def test_no_description_no_call(clique: Tables) -> None:
    tables = dict(clique)
    for name in TABLE.values():
        table = clique[name]
        at = table.column_names.index("description")
        tables[name] = table.set_column(at, table.schema.field(at), pa.array([""] * table.num_rows))
    evidence, reports = write_all(tables, ReportOptions())
    assert not any(found.needs_model for found in evidence.values())
    assert "ENTITY" in reports[0].title or "Entity" in reports[0].title


def test_small_communities_are_extractive_by_design() -> None:
    tables = corpus(Shape(entities=2, relationships=1, documents=0, depth=1, branching=1))
    evidence, reports = write_all(tables, ReportOptions())
    assert [(e.needs_model, e.cause) for e in evidence.values()] == [(False, "")]
    assert reports[0].generated_by == "extractive"
    assert reports[0].cause == ""


def test_a_limit_without_room_for_evidence_makes_no_call(clique: Tables) -> None:
    evidence, reports = write_all(clique, ReportOptions(max_prompt_tokens=300))
    assert not any(found.needs_model for found in evidence.values())
    assert "no room" in reports[0].cause
    assert tokens.count(evidence[0].data) <= 300
    assert reports[0].findings


def test_longest_prompt_first(clique: Tables) -> None:
    builder = EvidenceBuilder(count_rows(clique, ENCODING), ReportOptions(), ENCODING, "en", {})
    spent = [found.prompt_tokens for found in builder.build(1, {})]
    assert spent == sorted(spent, reverse=True)
    assert builder.estimate()[0]["calls"] == 1
    assert builder.estimate()[0]["prompt_tokens"] == builder.build(0, {})[0].prompt_tokens


def test_the_hash_covers_what_matters(clique: Tables) -> None:
    def hashes(options: ReportOptions, language: str = "en", prompts: Mapping[str, str] | None = None) -> set[str]:
        return {e.hash for e in write_all(clique, options, language, prompts)[0].values()}

    base = hashes(ReportOptions())
    assert base == hashes(ReportOptions(max_prompt_tokens=50_000)), "more room for evidence that fits changes nothing"
    assert not base & hashes(ReportOptions(max_length=100))
    assert not base & hashes(ReportOptions(), "zh")
    assert not base & hashes(ReportOptions(), prompts={"report": "Write a report."})


def test_a_dangling_id_is_named(clique: Tables) -> None:
    rows = clique[names.COMMUNITIES].to_pylist()
    rows[1]["entity_ids"] = [*rows[1]["entity_ids"], "nobody"]
    with pytest.raises(IntegrityError, match="nobody"):
        write_all({**clique, names.COMMUNITIES: from_rows(names.COMMUNITIES, rows)}, ReportOptions())


def test_a_child_report_survives_its_bytes(clique: Tables) -> None:
    _, reports = write_all(clique, ReportOptions(max_prompt_tokens=900))
    child = ChildReport.of(reports[0])
    assert ChildReport.from_json(child.to_json()) == child
