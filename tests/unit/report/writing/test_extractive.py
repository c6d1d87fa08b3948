import re

from hypothesis import given, settings

from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ReportOptions
from communitree_workers.report import citations
from communitree_workers.report.writing.extractive import join, write_report
from communitree_workers.report.writing.phrases import listed, rating_by_share
from communitree_workers.tables.io import Tables, from_rows
from support.reports import write_all
from support.trees import corpora


def family(language: str) -> Tables:
    """Four people with what is said about them, and one community of them all."""
    if language == "en":
        people = ["Scrooge", "Bob Cratchit", "Tiny Tim", "Ghost of Christmas Past"]
        about = "{0} lives in London. Everybody knows {0} by sight."
        tie = "{0} looks after {1} in the winter"
    else:
        people = ["贾宝玉", "林黛玉", "薛宝钗", "贾母"]
        about = "{0}住在荣国府。众人都认得{0}。"
        tie = "{0}时常探望{1}"
    entities = [
        {
            "id": f"e{i}",
            "human_readable_id": i + 10,
            "title": person.upper(),
            "type": "PERSON",
            "description": about.format(person),
            "mass": 1_000_000,
        }
        for i, person in enumerate(people)
    ]
    edges = [
        {
            "id": f"r{i}",
            "human_readable_id": i + 20,
            "source": people[0].upper(),
            "target": people[i].upper(),
            "source_id": "e0",
            "target_id": f"e{i}",
            "description": tie.format(people[0], people[i]),
            "weight": 1.0,
        }
        for i in (1, 2, 3)
    ]
    community = {
        "community": 0, "key": "k", "level": 0, "entity_ids": [f"e{i}" for i in range(4)], "size": 4,
        "relationship_ids": ["r1", "r2", "r3"], "mass": 4_000_000,
    }  # fmt: skip
    return {
        names.ENTITIES: from_rows(names.ENTITIES, entities),
        names.RELATIONSHIPS: from_rows(names.RELATIONSHIPS, edges),
        names.COVARIATES: from_rows(names.COVARIATES, []),
        names.TEXT_UNITS: from_rows(names.TEXT_UNITS, []),
        names.COMMUNITIES: from_rows(names.COMMUNITIES, [community]),
    }


def test_english() -> None:
    report = write_all(family("en"), ReportOptions())[1][0]
    assert report.title == "Scrooge, Bob Cratchit and Ghost of Christmas Past"
    assert report.findings[0].summary.startswith("Scrooge, with ")
    assert "Scrooge lives in London." in report.summary
    first = report.findings[0].explanation
    assert first.endswith("[Data: Entities (10); Relationships (21, 23)]")
    assert "in the winter. " in first, "a sentence without an end gets one"
    assert report.rating == 10.0
    assert report.language == "en"


def test_chinese() -> None:
    report = write_all(family("zh"), ReportOptions(), "zh")[1][0]
    assert report.title == "贾宝玉、林黛玉和薛宝钗"
    assert report.findings[0].summary.startswith("贾宝玉与")
    assert "贾宝玉住在荣国府。" in report.summary
    prose = citations.remove(report.full_content + report.rating_explanation)
    assert not re.search("[A-Za-z]", prose), "no English words around Chinese facts"


@settings(max_examples=12)
@given(corpora())
def test_every_finding_cites_its_rows_and_says_nothing_twice(tables: Tables) -> None:
    evidence, reports = write_all(tables, ReportOptions(max_prompt_tokens=900))
    for number, report in reports.items():
        assert report.citations["unverified"] == 0
        for finding in report.findings:
            assert citations.cited(finding.explanation)
        assert not re.match(r"Community \d+", report.title)
        assert len({f.explanation for f in report.findings}) == len(report.findings)
        again = write_report(evidence[number], "en")
        assert again == report


def test_lists_and_sentences() -> None:
    assert [listed(["a", "b", "c"][:n], "en") for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed(["甲", "乙", "丙"], "zh") == "甲、乙和丙"
    assert join(["cut…", "Next", "甲…", "乙"]) == "cut… Next. 甲…乙。"
    assert join(["One", "two.", "甲", "乙。", "丙"]) == "One. two. 甲。乙。丙。"


def test_rating_grows_with_the_share() -> None:
    ratings = [rating_by_share(share) for share in (0, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1, 2)]
    assert ratings == sorted(ratings)
    assert (ratings[0], ratings[3], ratings[-1]) == (1.0, 5.5, 10.0)
