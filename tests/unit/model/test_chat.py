from __future__ import annotations

import dataclasses

import pytest

from communitree_shared.contract.results import Usage
from communitree_shared.errors import OutputCut
from communitree_workers.model.chat import CutReply, WholeReply


def test_a_whole_reply_is_whole() -> None:
    reply = WholeReply(text="all of it", value={"a": 1})
    assert reply.whole() is reply


def test_a_cut_reply_has_nothing_that_could_be_taken_for_whole() -> None:
    names = {field.name for field in dataclasses.fields(CutReply)}
    assert not {"text", "value"} & names
    reply = CutReply(part="half", held={"a": 1}, why="it ended with 'length'", model="m", usage=Usage(output_tokens=7))
    with pytest.raises(OutputCut, match="'m' was cut off after 7 tokens: it ended with 'length'") as caught:
        reply.whole()
    assert not caught.value.retryable


def test_nobody_changes_a_reply() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        WholeReply(text="x").text = "y"  # type: ignore[misc]


def test_endings_add_up_by_name() -> None:
    both = Usage(calls=1, endings={"length": 1}) + Usage(calls=1, endings={"length": 2, "SAFETY": 1})
    assert (both.calls, both.endings) == (2, {"length": 3, "SAFETY": 1})
    assert sum([Usage(), Usage()], Usage()).endings == {}
