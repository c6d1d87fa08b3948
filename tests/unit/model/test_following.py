from __future__ import annotations

from communitree_workers.model.chat import ChatRequest
from communitree_workers.model.following import Follower
from communitree_workers.model.replies.thinking import Ear


class Reader:
    """Who follows: what stands before it now, and what it ever saw."""

    def __init__(self) -> None:
        self.text, self.pieces, self.restarts = "", 0, 0

    def take(self, piece: str) -> None:
        self.text += piece
        self.pieces += 1

    def restart(self) -> None:
        self.text, self.restarts = "", self.restarts + 1


def follow(raw: str, kept: str, *, unopened: bool = False) -> Reader:
    reader, ear = Reader(), Ear()
    follower = Follower(ChatRequest([], on_token=reader.take, on_restart=reader.restart), unopened=unopened)
    for char in raw:
        follower.hear(ear, char)
    follower.close(kept)
    assert reader.text == kept
    return reader


def test_text_is_told_as_it_comes() -> None:
    reader = follow("It is deep.", "It is deep.")
    assert (reader.pieces, reader.restarts) == (11, 0)


def test_what_may_stand_in_a_fence_or_an_object_waits_for_the_end() -> None:
    assert follow("```\nIt is deep.\n```", "It is deep.").pieces == 1
    assert follow('{"answer": "It is deep."}', "It is deep.").pieces == 1


def test_thinking_without_its_opening_makes_a_text_begin_again_or_wait() -> None:
    raw = "Let me see.\n</think>\nIt is deep."
    assert follow(raw, "It is deep.").restarts == 1
    known = follow(raw, "It is deep.", unopened=True)
    assert (known.restarts, known.pieces) == (0, 11)
    assert follow("It is deep.", "It is deep.", unopened=True).pieces == 1


def test_a_text_that_is_kept_otherwise_is_told_again() -> None:
    assert follow("It is", "Another").restarts == 1


def test_a_restart_before_anything_was_told_is_none() -> None:
    reader = Reader()
    Follower(ChatRequest([], on_token=reader.take, on_restart=reader.restart)).restart()
    assert reader.restarts == 0


def test_nobody_need_follow() -> None:
    follower = Follower(ChatRequest([]))
    follower.hear(Ear(), "It is deep.")
    follower.close("It is deep.")
