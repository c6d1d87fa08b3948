from __future__ import annotations

from typing import Any

import pytest

from communitree.events import Event, Gaps, Restart, ending, follow, text_of, to_the_end
from communitree.outcome import as_error, as_result
from communitree_shared.contract.results import Account, Answer, IndexResult, Selection
from communitree_shared.errors import BadInput, CommunitreeError, CorpusNotFound, InfrastructureError, ResultGone


def test_numbers_become_numbers_and_words_stay_words() -> None:
    raw = {
        "type": "unit.ended", "seq": "7", "at": "1700000000.500", "unit": "12345", "level": "2", "ok": "true",
        "stage": "report-2", "share": "0.5", "message": "404",
    }  # fmt: skip
    event = Event.of("5-1", raw)
    assert (event.id, event.seq, event.type, event.at) == ("5-1", 7, "unit.ended", 1_700_000_000.5)
    assert event.fields == {
        "unit": "12345", "level": 2, "ok": True, "stage": "report-2", "share": 0.5, "message": "404"
    }  # fmt: skip
    assert event.as_json()["level"] == 2


def test_events_of_an_older_worker_say_the_same() -> None:
    old = Event.of("5-1", {"type": "unit.ended", "seq": "7", "at": "1700000000500", "ok": "1"})
    assert old == Event.of("5-1", {"type": "unit.ended", "seq": "7", "at": "1700000000.500", "ok": "true"})
    assert Event.of("5-1", {"type": "unit.ended", "ok": "0"}).fields == {"ok": False}
    assert Event.of("5-1", {"type": "unit.ended", "ok": "false"}).fields == {"ok": False}


@pytest.mark.parametrize(
    ("numbers", "seen", "told"),
    [
        ([1, 2, 3], 0, [1, 2, 3]),
        ([41, 42], 0, [40, 41, 42]),  # it came late
        ([3, 6, 7], 2, [3, 2, 6, 7]),  # it fell behind
        ([3, 1, 2], 2, [3, 1, 2]),  # the job was taken up again, and counts anew
        ([3, 2], 2, [3, 1, 2]),
        ([0, 0], 0, [0, 0]),  # without numbers nothing can be told
    ],
)
def test_events_that_are_missing_are_told_with_their_number(numbers: list[int], seen: int, told: list[int]) -> None:
    events = [Event(f"{n}-0", seq, "x", 9.0) for n, seq in enumerate(numbers, 100)]
    found = list(Gaps(seen).told(events))
    assert [e.fields["count"] if e.type == "lost" else e.seq for e in found] == told
    assert [e for e in found if e.type != "lost"] == events


def test_a_loss_stands_where_the_missing_events_did() -> None:
    lost, _ = Gaps(4).told([Event("100-0", 9, "x", 9.0)])
    assert (lost.id, lost.seq, lost.at, lost.as_json()["count"]) == (f"99-{2**64 - 1}", 5, 9.0, 4)
    lost, _ = Gaps().told([Event("100-7", 2, "x", 9.0)])
    assert lost.id == "100-6"  # who goes on after it reads the event


class Stream:
    """Stands in for Jobs: a script of (events, state) that each read takes one step of."""

    tenant = "default"

    def __init__(self, *steps: tuple[list[str], str]) -> None:
        self.steps, self.reads, self.log = list(steps), 0, []
        self.ledger = self

    def events(
        self, tenant: str, job: str, after: str = "-", block_ms: int = 0, most: int | None = None
    ) -> list[tuple[str, dict[str, str]]]:
        if block_ms:
            self.reads += 1
            self.log += self.steps[min(self.reads, len(self.steps)) - 1][0] if self.reads <= len(self.steps) else []
        start = 0 if after == "-" else int(after.split("-")[0])
        return [(f"{i}-0", {"type": kind, "seq": str(i)}) for i, kind in enumerate(self.log, 1) if i > start][:most]

    def ended(self, tenant: str, job: str, block_ms: int) -> bool:
        return any(fields["type"] == "job.ended" for _, fields in self.events(tenant, job, block_ms=block_ms))

    def record(self, job: str) -> dict[str, str]:
        return {"state": self.steps[min(max(self.reads, 1), len(self.steps)) - 1][1]}


def kinds(stream: Any, **more: Any) -> list[str | None]:
    return [event.type if event else None for event in follow(stream, "j", **more)]


def test_follows_until_the_last_event() -> None:
    stream = Stream((["job.submitted"], "queued"), ([], "running"), (["stage.started", "job.ended"], "published"))
    assert kinds(stream) == ["job.submitted", None, "stage.started", "job.ended"]


def test_goes_on_after_an_event() -> None:
    stream = Stream((["c", "job.ended"], "published"))
    stream.log += ["a", "b"]
    assert kinds(stream, after="2-0") == ["c", "job.ended"]


def test_a_job_that_ended_and_whose_events_are_gone_is_not_waited_for() -> None:
    assert kinds(Stream(([], "answered"))) == []


def test_who_wants_the_end_alone_is_told_of_it() -> None:
    stream: Any = Stream((["job.submitted"], "queued"), ([], "running"), (["job.ended"], "published"))
    assert list(ending(stream, "j")) == [None, None]
    assert list(ending(Stream(([], "answered")), "j")) == []  # type: ignore[arg-type]  # it ended long ago


def test_an_end_is_waited_for_as_long_as_events_are() -> None:
    with pytest.raises(TimeoutError, match="has not ended within 0 s"):
        list(ending(Stream(([], "running")), "j", timeout=0))  # type: ignore[arg-type]
    with pytest.raises(InfrastructureError, match="Redis has lost job j"):
        list(ending(Stream(([], "lost")), "j", lost_after=0.15))  # type: ignore[arg-type]


def test_an_event_that_came_with_the_end_is_not_missed() -> None:
    stream = Stream(([], "running"), (["x"], "answered"), (["job.ended"], "answered"))
    assert kinds(stream) == [None, "x", "job.ended"]


def test_waiting_has_a_limit() -> None:
    with pytest.raises(TimeoutError, match="has not ended within 0 s"):
        kinds(Stream(([], "running")), timeout=0)


def test_a_job_that_redis_has_lost_is_given_time_to_come_back() -> None:
    with pytest.raises(InfrastructureError, match="Redis has lost job j") as error:
        kinds(Stream(([], "lost")), lost_after=0.15)
    assert "communitree resume j" in error.value.hint
    assert kinds(Stream(([], "lost"), (["job.ended"], "published"))) == [None, "job.ended"]


@pytest.mark.parametrize(
    ("raw", "record", "kind", "message"),
    [
        ({"error": {"code": "bad_input", "message": "row 3", "hint": "mend it"}}, {}, BadInput, "row 3"),
        (None, {"error": '{"code": "corpus_not_found", "message": "gone"}'}, CorpusNotFound, "gone"),
        (None, {"reason": "the step failed"}, CommunitreeError, "the step failed"),
        (None, {}, CommunitreeError, "it failed"),
        ({"error": {"code": "from the future"}}, {}, CommunitreeError, "it failed"),
    ],
)
def test_errors_get_their_class_back(
    raw: dict[str, Any] | None, record: dict[str, str], kind: type[CommunitreeError], message: str
) -> None:
    error = as_error(raw, record, "it failed")
    assert type(error) is kind
    assert error.message == message


def test_a_job_that_ended_without_a_result_has_one_that_says_so() -> None:
    request = {"kind": "query", "corpus": "c", "question": "q?", "options": {"selection": {"strategy": "leaves"}}}
    answer = as_result("j", {"state": "cancelled", "reason": "by its caller"}, None, request)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.question, answer.account.selection.strategy) == ("cancelled", "q?", "leaves")
    assert answer.account.warnings == ["by its caller"]
    index = as_result("j", {"state": "failed", "kind": "corpus", "corpus": "c"}, None, {})
    assert isinstance(index, IndexResult)
    assert (index.status, index.corpus) == ("failed", "c")
    assert index.warnings
    refused = {
        "state": "failed",
        "kind": "query",
        "error": '{"code": "refused", "message": "no space", "hint": "mend"}',
    }
    failed = as_result("j", refused, None, request)
    assert failed.error == {"code": "refused", "message": "no space", "hint": "mend"}  # type: ignore[union-attr]
    assert answer.error is None


@pytest.mark.parametrize(("kind", "state"), [("query", "answered"), ("query", "no_data"), ("corpus", "published")])
def test_a_result_that_was_removed_is_an_error_and_not_an_empty_answer(kind: str, state: str) -> None:
    with pytest.raises(ResultGone, match=f"removed .* ended as {state}") as told:
        as_result("j", {"state": state, "kind": kind}, None, {})
    assert (told.value.code, told.value.exit_code) == ("job_result_gone", 2)


def test_the_hint_of_a_failed_index_is_shown() -> None:
    raw = {"job_id": "j", "status": "failed", "corpus": "c", "warnings": ["bad"], "error": {"hint": "do this"}}
    result = as_result("j", {}, raw, {"kind": "corpus"})
    assert isinstance(result, IndexResult)
    assert result.warnings == ["bad", "do this"]


def test_pieces_before_a_restart_are_void() -> None:
    def event(kind: str, **fields: str) -> Event:
        return Event("1-0", 1, kind, 0.0, dict(fields))

    events = [
        event("answer.restart"), None, event("answer.delta", text="Ha"), event("unit.ended"),
        event("answer.delta", text="lf"), event("answer.restart"), event("answer.restart"),
        event("answer.delta", text="Whole"),
    ]  # fmt: skip
    # A restart before any piece (an attempt whose predecessor told nothing) is nothing to the reader.
    assert list(text_of(events)) == ["Ha", "lf", Restart(), "Whole"]


@pytest.mark.parametrize(
    ("pieces", "text", "read"),
    [
        (["Wh", "ole"], "Whole", ["Wh", "ole"]),
        (["Ha", Restart(), "Whole"], "Whole", ["Ha", Restart(), "Whole"]),
        (["Ha", "lf"], "Cancelled.", ["Ha", "lf", Restart(), "Cancelled."]),
        (["Ha", Restart()], "Failed.", ["Ha", Restart(), "Failed."]),
        ([], "Nothing found.", ["Nothing found."]),
        (["Ha"], "", ["Ha", Restart()]),
    ],
)
def test_a_stream_ends_with_the_text_that_the_answer_has(
    pieces: list[str | Restart], text: str, read: list[str | Restart]
) -> None:
    answer = Answer(
        job_id="j", status="answered", question="q", corpus="c", answer=text,
        account=Account(selection=Selection(strategy="auto")),
    )  # fmt: skip
    assert list(to_the_end(pieces, lambda: answer)) == [*read, answer]
