from __future__ import annotations

import pytest

from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.ladder import Abilities, Ladder, refused, suspected

TOP = Abilities()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        (422, "response_format.type: Input should be 'text' or 'json_object'"),
        (500, "{\"detail\": \"Input should be 'text' or 'json_object'\"}"),
        (501, "structured output is not implemented"),
    ],
)
def test_a_refusal_that_names_the_format_goes_one_rung_down(status: int, words: str) -> None:
    other = refused(TOP, CallFailed(words, status=status), wants_json=True)
    assert other is not None
    assert other.mode == "json_object"
    again = refused(other, CallFailed(words, status=status), wants_json=True)
    assert again is not None
    assert again.mode == "text"
    assert refused(again, CallFailed(words, status=status), wants_json=True) is None


def test_other_refusals_teach_nothing() -> None:
    assert refused(TOP, CallFailed("model not found", status=404), wants_json=True) is None
    assert refused(TOP, CallFailed("response_format is bad", status=429), wants_json=True) is None
    assert refused(TOP, CallFailed("response_format is bad", status=400), wants_json=False) is None


def test_parameters_are_renamed_or_left_out() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    other = refused(TOP, CallFailed(words, status=400), wants_json=False)
    assert other is not None
    assert other.max_tokens_name == "max_completion_tokens"
    other = refused(
        TOP, CallFailed("Unsupported value: 'temperature' does not support 0.", status=400), wants_json=False
    )
    assert other is not None
    assert other.dropped == {"temperature"}
    assert refused(other, CallFailed("Unsupported value: 'temperature'", status=400), wants_json=False) is None


@pytest.mark.parametrize(
    ("words", "learned"),
    [
        ("System role not supported", Abilities(one_message=True)),
        ("This model only support stream mode, please enable the stream parameter.", Abilities(streams="always")),
        ("Unsupported value: 'stream' does not support true with this model.", Abilities(streams="never")),
    ],
)
def test_roles_and_streams_are_learned_once(words: str, learned: Abilities) -> None:
    failure = CallFailed(words, status=400)
    assert refused(TOP, failure, wants_json=True) == learned
    assert refused(learned, failure, wants_json=False) is None


def test_a_bare_500_is_suspected_at_its_second_time_and_only_on_an_unproven_rung() -> None:
    bare = CallFailed("Internal server error", status=500)
    assert suspected(TOP, bare, wants_json=True, proven=False, failures=1) is None
    other = suspected(TOP, bare, wants_json=True, proven=False, failures=2)
    assert other is not None
    assert other.mode == "json_object"
    assert suspected(TOP, bare, wants_json=True, proven=True, failures=2) is None
    assert suspected(TOP, CallFailed("no such key", status=401), wants_json=True, proven=False, failures=2) is None


async def test_what_was_learned_is_remembered_by_endpoint() -> None:
    ladder = Ladder(None, "communitree")
    assert (await ladder.start("a", "auto")).mode == "json_schema"
    await ladder.learn("a", Abilities("text"))
    assert (await ladder.start("a", "auto")).mode == "text"
    assert (await ladder.start("b", "auto")).mode == "json_schema"
    assert (await ladder.start("a", "json_object")).mode == "json_object"


async def test_a_mode_set_by_hand_teaches_nothing() -> None:
    ladder = Ladder(None, "communitree")
    await ladder.start("a", "text")
    await ladder.learn("a", Abilities("text", dropped=frozenset({"seed"})), keep_mode=True)
    known = await ladder.start("a", "auto")
    assert (known.mode, known.dropped) == ("json_schema", {"seed"})


def test_the_stored_form() -> None:
    abilities = Abilities("json_object", "max_completion_tokens", frozenset({"seed"}), True, "always", True)
    assert Abilities.from_json(abilities.to_json()) == abilities
    assert Abilities.from_json('["text", "max_tokens", []]') == Abilities("text")  # as an older release kept it
    with pytest.raises(ValueError, match="rung"):
        Abilities.from_json('["xml", "max_tokens", []]')
