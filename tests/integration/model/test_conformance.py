"""What the documentation says of each habit of real endpoints, stage by stage, is what happens."""

from __future__ import annotations

import json

import pytest

from support.conformance import FILE, STAGES, UNNOTICED, UNSEEN, column

TOLD = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("stage", list(STAGES))
async def test_the_table_says_what_happens(stage: str) -> None:
    assert await column(stage) == TOLD[stage]


def test_nothing_cut_is_taken_for_whole() -> None:
    """But for prose that is said to have ended, and prompts that are short or begin as others: no sign tells."""
    signs = (UNSEEN, UNNOTICED)
    unseen = {(stage, habit) for stage, row in TOLD.items() for habit, cell in row.items() if cell in signs}
    cut_prompts = {(stage, "truncates") for stage in ("extract", "gleaning", "describe")}
    assert unseen == {("describe", "stop_cut"), *cut_prompts}
