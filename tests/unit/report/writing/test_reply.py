from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ReportOptions
from communitree_shared.errors import BadInput
from communitree_workers.report.records import Evidence, Report
from communitree_workers.report.writing.reply import NEUTRAL, parse_part, parse_report
from support.reports import write_all
from support.trees import Shape, corpus


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    tables = corpus(Shape(entities=8, relationships=10, claims=2, documents=1, depth=1, branching=1))
    return write_all(tables, ReportOptions(max_prompt_tokens=100_000))[0][0]


GOOD = {
    "title": "Harbour and Treaty",
    "summary": "The harbour signed the treaty.",
    "rating": 7.5,
    "rating_explanation": "Much hangs on it.",
    "findings": [{"summary": "It signed.", "explanation": "In spring. [Data: Entities (1, 2); Relationships (0)]"}],
}


def test_a_good_reply_needs_no_repair(evidence: Evidence) -> None:
    report = parse_report(GOOD, evidence, "some-model")
    assert (report.title, report.summary, report.rating) == (GOOD["title"], GOOD["summary"], 7.5)
    assert report.repairs == {}
    assert report.citations == {"verified": 3, "unverified": 0}
    assert report.generated_by == "some-model"
    assert report.full_content == (
        "# Harbour and Treaty\n\nThe harbour signed the treaty.\n\n"
        "## It signed.\n\nIn spring. [Data: Entities (1, 2); Relationships (0)]"
    )
    assert report.n_tokens > 10
    assert report.evidence_hash == evidence.hash


@pytest.mark.parametrize(
    ("rating", "expected", "repairs"),
    [
        (7, 7.0, set()),
        ("8/10", 8.0, {"rating"}),
        ("7.5", 7.5, {"rating"}),
        ("7,5", 7.5, {"rating"}),
        ("8 out of 10", 8.0, {"rating"}),
        ("45/50", 9.0, {"rating"}),
        ("80 %", 8.0, {"rating"}),
        ({"score": 6}, 6.0, set()),
        (None, NEUTRAL, {"rating_missing"}),
        (True, NEUTRAL, {"rating_missing"}),
        ("high", NEUTRAL, {"rating", "rating_missing"}),
        ([], NEUTRAL, {"rating_missing"}),
        (float("nan"), NEUTRAL, {"rating_missing"}),
        (85, 10.0, {"rating_range"}),
        (-1, 0.0, {"rating_range"}),
        ("3/0", NEUTRAL, {"rating", "rating_missing"}),
    ],
)
def test_ratings(evidence: Evidence, rating: Any, expected: float, repairs: set[str]) -> None:
    report = parse_report({**GOOD, "rating": rating}, evidence)
    assert report.rating == pytest.approx(expected)
    assert set(report.repairs) == repairs


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (["It signed. In spring.", "It paid."], [("It signed.", "It signed. In spring."), ("It paid.", "It paid.")]),
        ("- It signed.\n- It paid.", [("It signed.", "It signed."), ("It paid.", "It paid.")]),
        ({"It signed.": "In spring."}, [("It signed.", "In spring.")]),
        ({"summary": "It signed.", "explanation": "In spring."}, [("It signed.", "In spring.")]),
        ({"findings": [{"title": "It signed.", "description": "In spring."}]}, [("It signed.", "In spring.")]),
        ([{"It signed.": "In spring."}], [("It signed.", "In spring.")]),
        ([{"explanation": "It signed. In spring."}], [("It signed.", "It signed. In spring.")]),
        ([{"摘要": "签约。", "说明": "在春天。"}], [("签约。", "在春天。")]),
        ([{"summary": "It signed.", "explanation": ["In", "spring."]}], [("It signed.", "In\n\nspring.")]),
        ([{}, None, ""], []),
        (7, []),
    ],
)
def test_findings(evidence: Evidence, findings: Any, expected: list[tuple[str, str]]) -> None:
    report = parse_report({**GOOD, "findings": findings}, evidence)
    assert [(f.summary, f.explanation) for f in report.findings] == expected
    assert report.repairs


def test_other_words_and_chinese_keys(evidence: Evidence) -> None:
    reply = {"标题": "港口", "摘要": "港口签约。", "评分": "8分", "评分说明": "重要", "发现": ["签约。"]}
    report = parse_report(reply, evidence)
    assert (report.title, report.summary, report.rating) == ("港口", "港口签约。", 8.0)
    assert report.rating_explanation == "重要"
    assert report.findings[0].summary == "签约。"
    assert report.repairs["keys"] == 5
    other = parse_report({"Name": "Harbour", "Executive Summary": "It signed."}, evidence)
    assert (other.title, other.summary) == ("Harbour", "It signed.")


WRAPS = [lambda r: [r], lambda r: {"report": r}, lambda r: [{"x": 1}, r], lambda r: [{"report": r}]]


@pytest.mark.parametrize("wrap", WRAPS)
def test_wrapped_replies(evidence: Evidence, wrap: Any) -> None:
    report = parse_report(wrap(GOOD), evidence)
    assert report.title == GOOD["title"]
    assert report.repairs["unwrapped"]


def test_markdown_instead_of_json(evidence: Evidence) -> None:
    text = "# Harbour\n\nIt signed.\n\n## Spring\n\nThen it signed. [Data: Entities (1)]\n\n## Summer\n\nIt paid."
    report = parse_report(text, evidence)
    assert (report.title, report.summary) == ("Harbour", "It signed.")
    assert [f.summary for f in report.findings] == ["Spring", "Summer"]


def test_a_missing_title_is_made_from_the_central_names(evidence: Evidence) -> None:
    report = parse_report({**GOOD, "title": None}, evidence)
    assert evidence.names[0] in report.title
    assert report.repairs["title_derived"] == 1


NOTHING = [None, {}, [], "I cannot help with that.", {"title": "Harbour"}, {"summary": ""}, 7, [[]]]


@pytest.mark.parametrize("reply", NOTHING)
def test_no_summary_is_an_error_that_says_what_is_wanted(evidence: Evidence, reply: Any) -> None:
    with pytest.raises(BadInput, match="no summary") as caught:
        parse_report(reply, evidence)
    assert "summary" in caught.value.hint


def test_unknown_citations_are_counted_and_marked(evidence: Evidence) -> None:
    text = "In spring. [Data: Entities (1, 9999); Claims (0)] And 【数据：实体（2，8888）】, [Data: Reports (5)]."
    report = parse_report({**GOOD, "findings": [{"summary": "It signed.", "explanation": text}]}, evidence)
    assert report.findings[0].explanation == (
        "In spring. [Data: Entities (1); Claims (0)] [Unverified: Entities (9999)] "
        "And [Data: Entities (2)] [Unverified: Entities (8888)], [Unverified: Reports (5)]."
    )
    assert report.citations == {"verified": 3, "unverified": 3}
    assert report.repairs == {"unverified": 3}
    assert set(report.cited) == {"entities", "claims"}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["title", "summary", "findings", "rating", "explanation", "摘要", "x"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(value=JSON)
def test_any_json_is_a_report_or_bad_input(evidence: Evidence, value: Any) -> None:
    try:
        report = parse_report(value, evidence)
    except BadInput:
        return
    assert report.summary
    assert report.title
    assert 0 <= report.rating <= 10
    assert Report.from_json(report.to_json()) == report


def test_a_title_is_one_line_of_a_bounded_length(evidence: Evidence) -> None:
    long = parse_report({**GOOD, "title": "T" * 100_000}, evidence)
    assert (len(long.title), long.repairs) == (300, {"title_cut": 1})
    assert parse_report({**GOOD, "title": "A\x00\x1b[31m\nB"}, evidence).title == "A [31m B"
    assert parse_report({**GOOD, "title": "\x00"}, evidence).repairs == {"title_derived": 1}


def test_the_whole_part_of_a_cut_report(evidence: Evidence) -> None:
    findings = [{"summary": f"Finding {n}.", "explanation": f"It is {n}."} for n in range(3)]
    held = {"title": "T", "summary": "All of it.", "rating": 6, "rating_explanation": "So.", "findings": findings}
    part = parse_part(held, evidence, "m")
    assert part is not None
    assert [f.summary for f in part.findings] == ["Finding 0.", "Finding 1."], "the last one may be short"
    assert (part.title, part.summary, part.rating, part.generated_by) == ("T", "All of it.", 6.0, "m")
    wrapped = parse_part({"report": held}, evidence)
    assert wrapped is not None
    assert len(wrapped.findings) == 2
    assert parse_part({"title": "T", "summary": "The summary itself is to"}, evidence) is None
    assert parse_part(None, evidence) is None
    bare = parse_part({"title": "T", "summary": "All of it.", "rating": 6}, evidence)
    assert bare is not None
    assert (bare.findings, bare.rating) == ([], 5.0)
