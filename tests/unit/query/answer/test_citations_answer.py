"""Citations are checked and resolved, states are told apart, and the account's sums close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.citing import check_context_name
from communitree_shared.contract.options import AnswerOptions, SelectionOptions
from communitree_shared.contract.results import Answer, Coverage, Point, QuerySettings, ReportsAccount
from communitree_shared.errors import UsageError
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.citing.grades import Evidence
from communitree_workers.citing.grammar import grammar_of
from communitree_workers.citing.writing import reference
from communitree_workers.query.answer.account import Header, Reduced, build_answer, needs_reduce
from communitree_workers.query.answer.checking import Checker, check
from communitree_workers.query.answer.citations import Behind, Resolver, cite, nearest_finding
from communitree_workers.query.map.outcome import BatchOutcome, MapPoint, MapResult
from communitree_workers.query.points.gathering import gather_points
from communitree_workers.query.reduce.rounds import plan_reduce
from support.questions import select
from support.views import TreeShape, view_of

SHAPE = TreeShape((-1, -1, 0, 0, 1, 2, 2), (10,) * 7, (0, 0, 0, 1, 1, 1, 1))
VIEW = view_of(SHAPE)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("x [Data: Reports (1, 2, +more)] y", [1, 2]),
        ("[Data: Report 7]", [7]),
        ("[Reports (3)]", [3]),
        ("[data: reports(4,5); Sources (6)]", [4, 5]),
        ("[Data: Community Reports 4 and 5]", [4, 5]),
        ("[Report](page.html) and [Data: Reports ()]", []),
        ("【数据：报告（1、2，+更多）】", [1, 2]),
        ("［来源：报告（８）］", [8]),
        ("【数据：实体（1、2）；关系（3）和报告（4）】", [4]),
        ("[Data: Reports (2-4)]", [2, 3, 4]),
        ("[Data: Reports (1), Reports (2)]", [1, 2]),
        ("[1] and [note] and (Reports 5) and [see 7]", [1, 5]),
        ("[Data: Entities (5)]", []),
    ],
)
def test_references_are_read_in_many_forms(text: str, ids: list[int]) -> None:
    assert grammar_of().ids(text) == ids


def test_references_are_written_in_one_form() -> None:
    assert reference([3, 1, 3]) == "[Data: Reports (3, 1)]"
    assert reference(range(9), "Sources") == "[Data: Sources (0, 1, 2, 3, 4, +more)]"
    assert reference([]) == ""


def kinds(text: str, context: str = "Reports") -> list[tuple[str, tuple[int, ...], bool]]:
    return [tuple(part) for found in grammar_of(context).find(text) for part in found.parts]  # type: ignore[misc]


def test_each_part_of_a_reference_is_of_its_kind() -> None:
    assert kinds("[Data: Reports (1, +more); Sources (2)]") == [("reports", (1,), True), ("sources", (2,), False)]
    assert kinds("【数据：实体（1、2）；关系（3），声明（4）和来源（5）】") == [
        ("entities", (1, 2), False), ("relationships", (3,), False), ("claims", (4,), False), ("sources", (5,), False),
    ]  # fmt: skip
    assert kinds("[Data: Text Units 1, 2; Covariates 3]") == [("sources", (1, 2), False), ("claims", (3,), False)]
    assert kinds("[Data: Annexes (9)]") == [("Annexes", (9,), False)]  # a name of no kind is none of the reports
    assert kinds("[Annexes (9)]") == []
    assert kinds(f"[Data: Reports ({'9' * 5000})]") == [("reports", (int("9" * 18),), False)]


@pytest.mark.parametrize("name", ["Dossiers", "Board Reports", "档案", "Case files"])
def test_reports_go_by_the_name_asked_for_and_by_their_own(name: str) -> None:
    text = f"A. {reference([1, 2], name)} B. [{name.lower()} 3] C. [Data: Reports (4); Entities (5)]"
    assert grammar_of(name).ids(text) == [1, 2, 3, 4]
    assert grammar_of(name).without(text) == "A.  B.  C. "
    checked = check(text, [used("a b c", 1, 2, 3, 4)], "en", name)
    assert checked.cited == [1, 2, 3, 4]
    assert checked.text.startswith(f"A. [Data: {name} (1, 2)]")
    assert checked.unverified == [("entities", 5)]


@given(st.text(max_size=30))
def test_a_name_is_refused_or_read_again(name: str) -> None:
    try:
        check_context_name(name)
    except UsageError:
        return
    assert grammar_of(name).ids(f"x {reference([7, 8], name)}") == [7, 8]
    assert grammar_of(name).ids("x [Data: Entities (1); Sources (2); Claims (3); Relationships (4); Reports (5)]") == [
        5
    ]


@pytest.mark.parametrize(
    "name",
    ["", "  ", "Entities", "entity", "Sources", "text  units", "关系", "Claims", "A (1)", "a;b", "a\nb", "7", "R 7"],
)
def test_a_name_that_cannot_be_told_apart_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="context_name"):
        check_context_name(name)


def used(text: str, *reports: int) -> Point:
    return Point(text=text, score=50, adjusted=50, batch=0, reports=list(reports), used=True)


def test_unverified_ids_are_marked_and_counted() -> None:
    checked = check("So. [Data: Reports (2, 99)]\nAnd 【报告（98）】", [used("so", 2)], "en")
    assert checked.text == "So. [Data: Reports (2, 99 unverified)]\nAnd [Data: Reports (98 unverified)]"
    assert (checked.cited, checked.unverified) == ([2], [("reports", 99), ("reports", 98)])
    assert "未核实" in check("甲。[Data: Reports (99)]", [used("甲", 2)], "zh").text


def test_a_point_that_is_not_used_verifies_nothing() -> None:
    point = used("so", 2)
    point.used = False
    assert check("So. [Data: Reports (2)]", [point], "en").unverified == [("reports", 2)]


@pytest.mark.parametrize(
    ("context", "text", "shown", "cited", "unverified"),
    [
        ("Reports", "[Data: Entities (5)]", "[Data: Entities (5 unverified)]", [], [("entities", 5)]),
        ("Reports", "[Data: Reports (2); Entities (5, 7)]",
         "[Data: Reports (2); Entities (5 unverified, 7 unverified)]", [2], [("entities", 5), ("entities", 7)]),
        ("Reports", "[Data: Reports (2), Sources (4)]", "[Data: Reports (2); Sources (4 unverified)]", [2],
         [("sources", 4)]),
        ("Reports", "【数据：关系（2）；报告（4）】", "[Data: Reports (4); Relationships (2 unverified)]", [4],
         [("relationships", 2)]),
        ("Sources", "[Data: Reports (2)]", "[Data: Reports (2 unverified)]", [], [("reports", 2)]),
        ("Sources", "[Data: Sources (2); Reports (2)]", "[Data: Sources (2); Reports (2 unverified)]", [2],
         [("reports", 2)]),
        ("Reports", "[Data: Annexes (2)]", "[Data: Annexes (2 unverified)]", [], [("Annexes", 2)]),
    ],
)  # fmt: skip
def test_a_row_of_another_kind_is_never_verified(
    context: str, text: str, shown: str, cited: list[int], unverified: list[tuple[str, int]]
) -> None:
    checked = check(f"So. {text}", [used("so", 2, 4)], "en", context)
    assert checked.text == f"So. {shown}"
    assert (checked.cited, checked.unverified) == (cited, unverified)


def test_at_most_five_ids_are_shown_and_more_stands_for_the_rest() -> None:
    point = used("ships sail far", *range(8))
    checked = check("Ships sail far [Data: Reports (0, 1, +more)].", [point], "en")
    assert checked.text == "Ships sail far [Data: Reports (0, 1, 2, 3, 4, +more)]."
    assert checked.cited == list(range(8))


def test_marks_are_stable_when_checked_again() -> None:
    points = [used("so", 2)]
    once = check("So. [Data: Reports (2, 99)]", points, "en")
    assert check(once.text, points, "en").text == once.text


PASSAGES = st.lists(
    st.sampled_from(["ships sail far ", "[Data: Reports (1, 2)]", "[Data: Reports (2, +more); Entities (4)]", "[", "]",
                     "\n", "  ", "【报告（9）】", "[Data: ", "Reports (", "船。"]),
    max_size=12,
).map("".join)  # fmt: skip


@given(PASSAGES, st.data())
def test_a_text_is_checked_alike_in_pieces_and_whole(text: str, data: st.DataObject) -> None:
    points = [used("ships sail far", 1, 2, 3), used("bridges", 3)]
    whole, checker, shown = check(text, points, "en"), Checker(points, "en"), ""
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    for start, end in zip([0, *at], [*at, len(text)], strict=True):
        shown += checker.feed(text[start:end])
        assert whole.text.startswith(shown)
    assert checker.close() == whole


def test_what_a_stream_shows_lags_behind_by_an_open_bracket_at_most() -> None:
    checker = Checker([used("so", 2)], "en")
    pieces = ("So", " it [Da", "ta: Reports (2, 9", "9)] is ", "[x\n\n", "y [")
    assert [checker.feed(piece) for piece in pieces] == [
        "So", " it ", "", "[Data: Reports (2, 99 unverified)] is", " [x", "\n\ny ",
    ]  # fmt: skip
    assert checker.close().text == "So it [Data: Reports (2, 99 unverified)] is [x\n\ny ["


class Narrowing:
    def __call__(self, community: int, statement: str) -> Behind:
        return Behind(["t6"], list(range(13)), [4, 5]) if "six" in statement else Behind([])

    def entity(self, number: int) -> str | None:
        return f"e{number}" if number else None

    def relationship(self, number: int) -> str | None:
        return "a – b" if number == 4 else None


def test_citations_lead_to_text() -> None:
    resolver = Resolver(VIEW)
    leaf = resolver.citation(5, known=True, kind="reports")
    assert (leaf.level, leaf.title, leaf.text_units, leaf.documents) == (2, "title 5", ["t5"], ["book.txt"])
    assert sorted(resolver.citation(0, known=True, kind="reports").text_units) == ["t3", "t5", "t6"]
    assert resolver.citation(5, known=False, kind="reports").text_units == []
    assert resolver.citation(4711, known=True, kind="reports").verified is False
    source = resolver.citation(4, known=True, kind="sources")
    assert (source.report, source.text_units, source.title) == (None, ["t4"], "book.txt")
    for id in (4, 4711):
        nowhere = resolver.citation(id, known=False, kind="sources")
        assert (nowhere.id, nowhere.verified, nowhere.text_units, nowhere.documents) == (id, False, [], [])
    assert resolver.document_titles([4, 5, 4711]) == {4: "book.txt", 5: "book.txt"}
    narrowed = Resolver(VIEW, Narrowing())
    six = narrowed.citation(0, known=True, kind="reports", statements=["six", "six"])
    assert six.text_units == ["t6"]
    assert [(row.id, row.title) for row in six.entities] == [(n, f"e{n}") for n in range(1, 11)]
    assert (six.more_entities, [row.title for row in six.relationships], six.more_relationships) == (2, ["a – b"], 0)
    other = narrowed.citation(0, known=True, kind="reports", statements=["x"])
    assert (len(other.text_units), other.entities, other.more_entities) == (3, [], 0)
    assert narrowed.citation(0, known=False, kind="reports", statements=["six"]).entities == []


def test_the_finding_a_statement_rests_on() -> None:
    findings = [("Ships", "Ships sail."), ("Bridges", "The bridge fell in 1907.")]
    assert nearest_finding(findings, "A bridge fell") == 1
    assert nearest_finding(findings, "Zebra") is None


# -- the answer -----------------------------------------------------------------------------------------------------


def build(outcomes: list[BatchOutcome], text: str | None, language: str = "en", **more: Any) -> Answer:
    selected = select(VIEW, more.pop("selection", SelectionOptions(strategy="leaves")), "q")
    gathered = gather_points(outcomes, {}, language)
    if needs_reduce(outcomes, gathered):
        plan_reduce(gathered, AnswerOptions(max_data_tokens=200), language, rerate=False)
    written = Reduced(text=text if needs_reduce(outcomes, gathered) else None, cause=more.pop("cause", ""))
    reduced = more.pop("reduced", written)
    made_with = QuerySettings(models=more.pop("models", {}))
    again, earlier = more.pop("again", ""), more.pop("earlier", 0)
    header = Header("job", "Why?", "corpus", "v1", settings=made_with, again=again, earlier=earlier)
    return build_answer(header, selected, outcomes, gathered, reduced, Resolver(VIEW), language=language, **more)


def good(*points: tuple[str, float | None, list[int]], ids: Sequence[int] = (3, 4)) -> BatchOutcome:
    return BatchOutcome("answered", list(ids), MapResult([MapPoint(t, s, i) for t, s, i in points]))


def bad(cause: str = "the provider answered 500") -> BatchOutcome:
    return BatchOutcome("failed", [5, 6], cause=cause)


SHIPS = ("Ships sail far", 80, [3])


def test_answered() -> None:
    answer = build(
        [good(SHIPS), good(("Bridges fall down", 60, [4]), ids=[5, 6])], "Ships sail far [Data: Reports (3)]."
    )
    assert answer.status == "answered"
    assert answer.answer == "Ships sail far [Data: Reports (3)]."
    assert [p.in_answer for p in answer.points] == [True, False]
    assert answer.points[1].why_not == "the answer does not use it"
    assert answer.account.reports.silent == [5, 6]
    assert answer.account.reports.cited == 2
    assert [(c.report, c.verified, c.text_units) for c in answer.citations] == [(3, True, ["t3"])]
    assert answer.account.warnings == ["`ask --again job` reads 2 silent reports once more, in smaller batches."]


@pytest.mark.parametrize(
    "more", [{"models": {"map": EXTRACTIVE}}, {"again": "first"}, {"selection": SelectionOptions(strategy="texts")}]
)
def test_again_is_no_advice_where_it_finds_the_same(more: dict[str, Any]) -> None:
    answer = build([good(SHIPS, ids=[3, 4, 5, 6])], "Ships sail far [Data: Reports (3)].", **more)
    assert answer.account.reports.silent
    assert answer.account.warnings == []


def test_two_of_four_failing_is_partial_and_said_in_the_text() -> None:
    answer = build([good(SHIPS), bad(), good(), bad()], "Ships sail far [Data: Reports (3)].")
    assert answer.status == "partial"
    assert "2 of 4 batches could not be read (the provider answered 500)" in answer.answer
    assert "Ships sail far" in answer.answer
    assert answer.account.batches.model_dump() == {
        "total": 4, "answered": 2, "empty": 1, "failed": 2, "retried": 0, "split": 0, "at_limit": 0, "cached": 0,
    }  # fmt: skip


def test_what_stood_in_a_failed_batch_is_not_read_and_not_silent() -> None:
    whole = build([good(SHIPS, ids=[3, 4, 5, 6])], "Ships sail far [Data: Reports (3)].").account
    some = build([good(SHIPS), bad()], "Ships sail far [Data: Reports (3)].").account
    assert (some.reports.cited, some.reports.silent, some.reports.unread) == (1, [4], [5, 6])
    assert (whole.coverage.entities, whole.coverage.text_units_read) == (1.0, pytest.approx(4 / 7, abs=1e-5))
    assert some.coverage.text_units_read == pytest.approx(2 / 7, abs=1e-5)
    assert 0 < some.coverage.entities < 1
    assert "`ask --again job` reads 2 reports whose batch failed." in some.warnings
    none = build([bad(), BatchOutcome("failed", [3, 4], cause="deadline")], None).account
    assert (none.reports.silent, none.reports.unread) == ([], [3, 4, 5, 6])
    assert none.coverage == Coverage()


def test_text_units_of_failed_batches_are_not_read() -> None:
    lost = BatchOutcome("failed", [2, 3, 4, 5, 6], cause="refused")
    account = build([good(ids=[0, 1]), lost], None, selection=SelectionOptions(strategy="texts")).account
    assert (account.reports.silent, account.reports.unread) == ([0, 1], [2, 3, 4, 5, 6])
    assert account.coverage.text_units_read == account.coverage.entities == pytest.approx(2 / 7, abs=1e-5)


def test_a_report_that_was_cut_is_read_when_all_its_parts_are() -> None:
    account = build([good(SHIPS, ids=[3, 4, 5]), bad()], "Ships sail far [Data: Reports (3)].").account
    assert (account.reports.silent, account.reports.unread) == ([4], [5, 6])


def test_reports_of_the_earlier_job_count_where_its_points_do() -> None:
    text = "Ships sail far [Data: Reports (1)]."
    earlier = good(("Ships sail far", 80, [1]), ids=[1, 2, 3])
    again = build([earlier, bad(), good(ids=[3, 4])], text, again="first", earlier=1).account
    assert again.reports == ReportsAccount(selected=6, cited=1, silent=[3, 4, 2], unread=[5, 6])
    failed = build([earlier, BatchOutcome("failed", [3, 4, 5, 6])], text, again="first", earlier=1).account
    assert failed.reports.silent == [3, 2]  # it was read the first time


def test_four_of_four_failing_is_failed_and_never_an_apology() -> None:
    answer = build([bad()] * 4, None)
    assert answer.status == "failed"
    assert "says nothing about the corpus" in answer.answer
    assert "the provider answered 500" in answer.answer


def test_all_empty_is_no_data_without_a_reduce_call() -> None:
    outcomes = [good(), good(("I don't know", 0, []))]
    assert not needs_reduce(outcomes, gather_points(outcomes))
    answer = build(outcomes, "must not appear")
    assert answer.status == "no_data"
    assert "hold nothing that answers" in answer.answer
    assert answer.account.points.zero == 1


def test_no_data_counts_in_words_and_names_what_was_read() -> None:
    two = SelectionOptions(strategy="budget", budget_reports=2)
    one = build([good(ids=select(VIEW, two, "q").ids)], None, selection=two).answer
    assert "Read without an error: 1 batch (2 reports)." in one
    units = SelectionOptions(strategy="texts")
    texts = build([good(ids=range(3)), good(ids=range(3, 7))], None, selection=units).answer
    assert texts.startswith("The text units that were read hold nothing")
    assert "2 batches (7 text units)" in texts


@pytest.mark.parametrize(("language", "words"), [("en", "only matches words"), ("zh", "只按字词匹配")])
def test_no_data_of_the_built_in_model_says_what_it_cannot(language: str, words: str) -> None:
    def warned(model: str, *outcomes: BatchOutcome) -> bool:
        made = build(list(outcomes), "x", language, models={"map": model, "reduce": model})
        return any(words in warning for warning in made.account.warnings)

    assert warned("extractive", good())
    assert not warned("another", good())
    assert not warned("extractive", good(SHIPS))
    assert not warned("extractive")


def test_nothing_found_and_batches_failed_stays_open() -> None:
    answer = build([good(), bad()], None)
    assert answer.status == "partial"
    assert "stays open" in answer.answer


def test_a_reduce_that_fails_is_failed_and_the_points_are_kept() -> None:
    answer = build([good(SHIPS)], None, cause="timeout.")
    assert answer.status == "failed"
    assert "1 point was found" in answer.answer
    assert "timeout" in answer.answer
    assert answer.account.points.used == 1
    assert not answer.points[0].in_answer


def test_cancelled_and_empty() -> None:
    assert build([good(SHIPS)], None, cancelled=True).status == "cancelled"
    empty = build([], None)
    assert empty.status == "no_data"
    assert "nothing to read" in empty.answer


@pytest.mark.parametrize(
    ("point", "why"), [(("Ships", None, [3]), "its score could not be read"), (("Ships", 80, []), "it names no report")]
)
def test_what_cannot_be_used_is_no_answer_and_not_taken_for_nothing(point: Any, why: str) -> None:
    answer = build([good(point), good(("I don't know", 0, []))], None)
    assert answer.status == "partial"
    assert "1 point has no readable score, text or report" in answer.answer
    assert answer.account.points.dropped == answer.account.points.zero == 1
    assert answer.points[0].why_not.startswith(why)


def test_points_lost_in_a_round_are_said_in_the_text() -> None:
    reduced = Reduced("Ships sail far [Data: Reports (3)].", lost=2, lost_cause="refused.")
    answer = build([good(SHIPS)], reduced.text, reduced=reduced)
    assert answer.status == "partial"
    assert answer.answer.startswith(
        "> Note: 2 points are not in this answer, because the model failed to condense them"
    )
    assert "(refused)" in answer.answer


def test_a_point_that_rests_on_the_overview_alone_is_named() -> None:
    ships = MapPoint("Ships sail far", 80, [3], overview_only=True)
    answer = build([BatchOutcome("answered", [4], MapResult([ships]))], "Ships sail far [Data: Reports (3)].")
    assert "1 used point rests on the overview alone, not on a report that was read." in answer.account.warnings


@pytest.mark.parametrize(
    ("outcomes", "status", "words"),
    [
        ([good(SHIPS)], "answered", "船"),
        ([good(SHIPS), bad("超时")], "partial", "2 批中有 1 批未能读取（超时）"),
        ([good(), bad("超时")], "partial", "问题仍未有定论"),
        ([good()], "no_data", "没有能回答这个问题的内容"),
        ([bad("超时")], "failed", "一批也没能读成"),
    ],
)
def test_states_are_told_in_chinese(outcomes: list[BatchOutcome], status: str, words: str) -> None:
    answer = build(outcomes, "船 [Data: Reports (3)]", "zh")
    assert answer.status == status
    assert words in answer.answer


POINTS = st.tuples(
    st.sampled_from(
        ["ships sail far", "ships sail", "bridges fall", "", "word " * 60, "船在海上", "ships do not sail"]
    ),
    st.one_of(st.none(), st.integers(0, 100)),
    st.lists(st.sampled_from([3, 4, 5, 6, 99]), max_size=3),
)
OUTCOMES = st.lists(st.one_of(st.builds(lambda p: good(*p), st.lists(POINTS, max_size=5)), st.builds(bad)), max_size=6)
PIECES = ["ships sail far ", "[Data: Reports (3, 4)] ", "\n", "[Data: Reports (7, +more)]", "[报告（5）]", "[Data: "]
TEXTS = st.one_of(
    st.none(), st.lists(st.sampled_from([*PIECES, "fall [Data: Reports (4, 4, 99)]"]), max_size=8).map("".join)
)


@settings(max_examples=40)
@given(OUTCOMES, TEXTS, st.sampled_from(["en", "zh"]))
def test_the_sums_close_whatever_happens(outcomes: list[BatchOutcome], text: str | None, language: str) -> None:
    answer = build(outcomes, text, language)
    account = answer.account
    batches, points, citations = account.batches, account.points, account.citations
    assert batches.answered + batches.failed == batches.total == len(outcomes)
    assert batches.empty <= batches.answered
    assert points.used + points.dropped + points.zero + points.duplicate == points.produced == len(answer.points)
    assert points.in_answer == sum(p.in_answer for p in answer.points) <= points.used
    assert citations.verified + citations.unverified == citations.total == len(answer.citations)
    reports = account.reports
    assert reports.cited + len(reports.silent) + len(reports.unread) == reports.selected
    failed = [o for o in outcomes if o.status == "failed"]
    if failed and len(failed) == len(outcomes):
        assert answer.status == "failed"
    if not failed and not points.dropped:
        assert answer.status != "partial"
    if answer.status == "answered":
        assert not failed
    known = {r for p in answer.points if p.used for r in p.reports}
    for citation in answer.citations:
        assert not citation.verified or (citation.report in known and citation.text_units)
    for point in answer.points:
        assert bool(point.why_not) != point.in_answer
    if answer.status not in ("answered",):
        assert answer.answer
    assert Answer.model_validate_json(answer.model_dump_json()) == answer
    for outcome in outcomes:
        assert BatchOutcome.from_json(outcome.to_json()) == outcome


# -- states and grades ----------------------------------------------------------------------------------------------


def test_points_have_states_and_citations_grades() -> None:
    made = [
        good(("Alder Trust financed the Maren bridge in 1990.", 80, [3]),
             ("Alder Trust financed the Lorne canal in 1991.", 70, [3]), ("Ships reached Ystad in 1850.", 60, [4])),
    ]  # fmt: skip
    text = "In 1990 Alder Trust financed the Maren bridge [3]. The mills of Pell closed in 1999 (Report 4). "
    text += "Also [Data: Reports (x)]."
    answer = build(made, text)
    assert [p.state for p in answer.points] == ["stated", "not stated", "not stated"]
    assert [p.in_answer for p in answer.points] == [True, False, False]
    graded = [(c.report, c.grade, c.verified) for c in answer.citations]
    assert graded == [(3, "supported", True), (4, "unsupported", False)]
    assert [p.text for p in answer.citations[1].passages] == ["The mills of Pell closed in 1999"]
    account = answer.account
    assert (account.citations.supported, account.citations.unsupported, account.citations.unread) == (1, 1, 1)
    assert (account.points.in_answer, account.points.not_stated) == (1, 2)
    assert "[Data: Reports (x)] (not understood)." in answer.answer
    assert any("do not say" in w or "does not say" in w for w in account.warnings)


def test_what_an_earlier_round_left_out_is_condensed_away() -> None:
    made = [good(("Ships reached Ystad in 1850.", 80, [3]), ("Bridges fell in 1907.", 70, [4]))]
    text = "Ships reached Ystad in 1850 [Data: Reports (3)]."
    answer = build(made, text, reduced=Reduced(text=text, condensed=frozenset([1])))
    assert answer.points[1].why_not == "condensed away in an earlier round of the reduce"
    assert (answer.points[1].used, answer.account.points.condensed) == (True, 1)


def test_the_text_of_what_is_cited_decides() -> None:
    points = [used("Alder Trust financed the bridge in 1990.", 3)]
    checked = check("Alder Trust financed the bridge in 1990 [Data: Reports (3)].", points, "en")

    def grade(text: str) -> str:
        resolver = Resolver(VIEW, None, lambda kind, id: Evidence("", (text,)))
        return cite(checked, resolver, "reports", points)[0].grade

    assert grade("In 1990 Alder Trust financed the bridge.") == "supported"
    assert grade("In 1991 Alder Trust financed the bridge.") == "unsupported"


def test_a_point_whose_only_ids_were_in_no_prompt_is_not_used() -> None:
    points = [MapPoint("So it is.", 50, [], [99]), MapPoint("And so.", 40, [3], [98])]
    outcome = BatchOutcome("answered", [3], MapResult(points))
    gathered = gather_points([outcome])
    assert (gathered.order, gathered.dropped) == ([1], 1)
    assert gathered.points[0].why_not == "it names only reports that were not in its prompt"


def test_years_in_brackets_stay_and_numbers_in_code_too() -> None:
    text = "In [2019] it ran `x[3]` and y[2] = 1 [2]."
    checked = check(text, [used("so", 2)], "en")
    assert checked.text == "In [2019] it ran `x[3]` and y[2] = 1 [Data: Reports (2)]."
    assert (checked.cited, checked.unverified, checked.unread) == ([2], [], 0)
