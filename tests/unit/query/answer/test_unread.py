"""Reports that could not be read in a batch that answered, and answers that break off: counted, named, never whole."""

from __future__ import annotations

from typing import Any

from communitree_shared.contract.options import AnswerOptions, SelectionOptions
from communitree_shared.contract.results import Answer
from communitree_workers.query.answer.account import Header, Reduced, build_answer, status_of
from communitree_workers.query.answer.citations import Resolver
from communitree_workers.query.map.outcome import BatchOutcome, MapPoint, MapResult
from communitree_workers.query.points.gathering import gather_points
from communitree_workers.query.reduce.rounds import plan_reduce
from support.questions import select
from support.views import TreeShape, view_of

VIEW = view_of(TreeShape((-1, 0, 0, -1), (0, 1, 1, 1), (2, 1, 1, 1)))
SHIPS = MapPoint("Ships sail far", 80, [1])


def build(outcome: BatchOutcome, reduced: Reduced, language: str = "en") -> Answer:
    selected = select(VIEW, SelectionOptions(strategy="leaves"), "q")
    gathered = gather_points([outcome], {}, language)
    plan_reduce(gathered, AnswerOptions(), language, rerate=False)
    return build_answer(Header("j", "Why?", "c", "v"), selected, [outcome], gathered, reduced, Resolver(VIEW),
                        language=language)  # fmt: skip


def read(*points: MapPoint, **more: Any) -> BatchOutcome:
    return BatchOutcome("answered", [1, 2, 3], MapResult(list(points)), **more)


def test_a_report_that_may_not_be_read_is_named_and_its_batch_counts() -> None:
    answer = build(read(SHIPS, unread={2: "refused."}), Reduced("Ships sail far [Data: Reports (1)]."))
    account = answer.account
    assert answer.status == "partial"
    assert answer.answer.startswith("> Note: 1 of 3 reports could not be read whole (refused); what follows")
    assert (account.batches.answered, account.batches.failed) == (1, 0)
    assert (account.reports.cited, account.reports.silent, account.reports.unread) == (1, [3], [2])
    assert [(row.report, row.cause) for row in account.reports.unread_because] == [(2, "refused.")]
    whole = build(read(SHIPS), Reduced("Ships sail far [Data: Reports (1)]."))
    assert whole.status == "answered"
    assert account.coverage.entities < whole.account.coverage.entities


def test_nothing_found_where_a_report_was_not_read_stays_open() -> None:
    outcome = read(unread={2: "refused"})
    assert status_of([outcome]) == "partial"
    answer = build(outcome, Reduced())
    assert answer.status == "partial"
    assert answer.answer == (
        "Nothing was found in what was read; 1 of 3 reports could not be read whole (refused), so the question stays "
        "open."
    )


def test_an_answer_that_breaks_off_is_partial_and_says_why_behind_its_text() -> None:
    why = "it ended with 'length', and so did its continuation"
    text = "Ships sail far [Data: Reports (1)]. And the"
    english = build(read(SHIPS), Reduced(text, broken=why))
    assert english.status == "partial"
    assert english.answer == f"{text}\n\n> Note: the answer breaks off here ({why}).\n"
    chinese = build(read(SHIPS), Reduced(text, broken=why), "zh")
    assert chinese.answer.endswith("> 注意：回答在此中断（模型的回复以“length”告终）。\n")


def test_what_was_made_otherwise_is_a_warning() -> None:
    said = build(read(SHIPS), Reduced("船航行很远[Data: Reports (1)]。", unrated="cut off")).account.warnings
    assert "The answer is in another language than was asked for." in said
    assert any(line.startswith("The best points could not be rated together (cut off)") for line in said)
