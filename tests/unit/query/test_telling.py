"""What who follows a job reads of its answer: each piece once and in order, and what is void taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from communitree_workers.query import telling
from communitree_workers.query.telling import Telling, tell_whole


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
    await tell_whole(context, "whole")  # type: ignore[arg-type]
    assert context.events == [("answer.delta", "whole")]
