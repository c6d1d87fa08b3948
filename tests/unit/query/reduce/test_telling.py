"""What who follows a job reads of its answer: each piece once and in order, and what is void taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from communitree_shared.contract.results import Point
from communitree_workers.query.answer.checking import Checker, check
from communitree_workers.query.reduce import telling
from communitree_workers.query.reduce.telling import Telling, Writing, tell_whole


class Context:
    """A job's stream of events, each of which takes a while to be written."""

    def __init__(self, attempt: int = 1) -> None:
        self.attempt = attempt
        self.events: list[tuple[str, str]] = []

    async def in_ledger(self, work: Callable[[], Any]) -> None:
        await asyncio.sleep(0.01)
        work()

    def tell(self, kind: str, **fields: str) -> None:
        self.events.append((kind, fields.get("text", "")))


def shown(events: list[tuple[str, str]]) -> str:
    """What stands before a reader in the end."""
    text = ""
    for kind, piece in events:
        text = "" if kind == "answer.restart" else text + piece
    return text


async def run(context: Context, *steps: str | float | None) -> None:
    """Pieces, None where the stream breaks, pauses."""
    told = Telling(context)  # type: ignore[arg-type]
    teller = asyncio.create_task(told.tell())
    for step in steps:
        if step is None:
            told.restart()
        elif isinstance(step, float):
            await asyncio.sleep(step)
        else:
            told.pieces.append(step)
    told.done.set()
    await teller


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "_FLUSH", 0.02)


async def test_the_last_piece_is_told_even_while_one_is_on_its_way() -> None:
    context = Context()
    await run(context, "a", 0.025, "b", "c")
    assert shown(context.events) == "abc"
    assert [kind for kind, _ in context.events].count("answer.restart") == 0


async def test_what_was_told_before_a_break_is_taken_back() -> None:
    context = Context()
    await run(context, "half ", 0.06, "an ans", None, "whole", 0.06, " answer")
    assert shown(context.events) == "whole answer"
    assert [kind for kind, _ in context.events].count("answer.restart") == 1


async def test_what_was_not_told_yet_needs_no_taking_back() -> None:
    context = Context()
    await run(context, "half", None, "whole")
    assert context.events == [("answer.delta", "whole")]


async def test_a_second_attempt_takes_back_what_the_first_may_have_told() -> None:
    context = Context(attempt=2)
    await run(context, "whole")
    assert context.events == [("answer.restart", ""), ("answer.delta", "whole")]


async def test_a_break_at_the_end_leaves_nothing_standing() -> None:
    context = Context()
    await run(context, "half", 0.06, None)
    assert shown(context.events) == ""


async def test_a_text_that_is_there_already_is_told_in_one_piece() -> None:
    context = Context()
    told = Telling(context)  # type: ignore[arg-type]
    await tell_whole(told, "whole")
    await told.settle("whole")
    assert context.events == [("answer.delta", "whole")]


async def test_a_text_that_became_another_is_taken_back() -> None:
    context = Context()
    told = Telling(context)  # type: ignore[arg-type]
    await tell_whole(told, "half")
    await told.settle("> Note\n\nwhole")
    assert context.events == [("answer.delta", "half"), ("answer.restart", ""), ("answer.delta", "> Note\n\nwhole")]


@pytest.mark.parametrize("whole", [None, "Thought away [Data: Reports (2)]."])
async def test_a_stream_shows_the_note_and_the_marks_that_the_answer_has(whole: str | None) -> None:
    point = Point(text="so", score=50, batch=0, reports=[2], used=True)
    context = Context()
    told = Telling(context)  # type: ignore[arg-type]
    writing = Writing(told, "> Note\n\n", lambda: Checker([point], "en"))
    teller = asyncio.create_task(told.tell())
    pieces = ["Void [Da", None, "\nSo", " [Data: Rep", "orts (2, 9)", "]. And", " [Data: Entities (5)]\n"]
    for piece in pieces:
        if piece is None:
            writing.restart()
        else:
            writing.take(piece)
        await asyncio.sleep(0.05)
    text = "".join(piece or "" for piece in pieces[2:]) if whole is None else whole
    checked = writing.close(text)
    told.done.set()
    await teller
    assert checked == check(text, [point], "en")
    assert shown(context.events) == told.text == f"> Note\n\n{checked.text}"
    assert [kind for kind, _ in context.events].count("answer.restart") == (1 if whole is None else 2)
