"""Grades of citations, measured on right ones and on planted wrong ones from sibling reports."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from communitree_workers.citing.grades import Evidence, grade
from communitree_workers.citing.passages import Passage
from support.statements import SHAPES, sibling, world

AROUND = {True: "此事见于地方志。", False: "This was told in the chronicle of the region."}


def rates(shape: str) -> tuple[Counter[str], Counter[str]]:
    """Return the grades of right citations, and of those to a report where one name or number is another."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    style = SHAPES[shape][1]
    for seed in range(6):
        rng, made = random.Random(seed), world(shape, seed)
        for report, title in made.titles.items():
            own = [fact for fact in made.facts if fact.report == report]
            texts = [f"{fact.text} {AROUND[made.chinese]}" for fact in own]
            true = Evidence(title, (" ".join(fact.text for fact in own[:2]), *texts))
            for fact in own:
                planted = [sibling(other, made, rng) for other in own]
                if any(other.text in planted for other in own):
                    continue  # by chance it says the same
                passage = Passage((fact.written(style),), (report,))
                right[grade(passage, true)] += 1
                wrong[grade(passage, Evidence(title, (" ".join(planted[:2]), *planted)))] += 1
    return right, wrong


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.startswith("translated")])
def test_right_citations_are_supported_and_planted_ones_are_not(shape: str) -> None:
    right, wrong = rates(shape)
    assert right.total() > 200
    assert right["supported"] >= 0.85 * right.total(), right
    assert right["unsupported"] <= 0.05 * right.total(), right
    assert wrong["supported"] <= 0.02 * wrong.total(), wrong


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.startswith("translated")])
def test_what_is_translated_is_related_unless_numbers_differ(shape: str) -> None:
    right, wrong = rates(shape)
    assert right["unsupported"] <= 0.05 * right.total(), right
    assert wrong["supported"] <= 0.02 * wrong.total(), wrong


REPORT = Evidence("Harbours", ("Norden Bank lent 40,000 crowns for the harbour in 1907.", "The mills of Ystad closed."))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("In 1907 Norden Bank lent 40,000 crowns for the harbour.", "supported"),
        ("In 1908 Norden Bank lent 40,000 crowns for the harbour.", "unsupported"),
        ("In 1907 Pine Mutual lent 40,000 crowns for the harbour.", "unsupported"),
        ("The mills of Ystad opened.", "unsupported"),
        ("Zebras graze in Kenya.", "unsupported"),
        ("1907年，银行为港口贷款40000克朗。", "related"),
    ],
)
def test_names_and_numbers_come_first(sentence: str, expected: str) -> None:
    assert grade(Passage((sentence,), (1,)), REPORT) == expected


def test_an_id_of_no_report_is_unknown() -> None:
    assert grade(Passage(("Anything.",), (1,)), None) == "unknown"


def test_of_two_sentences_both_must_be_there() -> None:
    both = Passage(("Norden Bank lent 40,000 crowns for the harbour.", "The bank of Lorne failed in 1911."), (1,))
    assert grade(both, REPORT) == "related"


def test_reports_cited_together_support_a_sentence_together() -> None:
    other = Evidence("Mills", ("Delta Mills employed 300 people in Lorne.",))
    said = Passage(("Norden Bank lent 40,000 crowns, and Delta Mills employed 300 people in Lorne.",), (1, 2))
    assert grade(said, REPORT, [other]) == "supported"
    assert grade(said, other, [REPORT]) == "supported"
    assert grade(said, other) == "unsupported"
