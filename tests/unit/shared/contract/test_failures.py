"""Failed units by cause."""

from __future__ import annotations

from communitree_shared.contract.results import Failures


def test_messages_that_differ_in_numbers_are_one_cause() -> None:
    bad = {"ok": False, "cause": "output_cut", "hint": "Raise the limit."}
    outcomes = {
        "a": {**bad, "message": "cut off after 512 tokens"},
        "b": {"ok": True},
        "c": {**bad, "message": "cut off after 498 tokens"},
        "d": {"ok": False, "cause": "poison"},
        **{f"e{n}": {**bad, "message": "cut off after 1 tokens"} for n in range(9)},
    }
    first, second = Failures.grouped("extract", outcomes, {"a": "one.txt, text unit 0"})
    assert (first.cause, first.count, first.message) == ("output_cut", 11, "cut off after 512 tokens")
    assert (first.hint, first.examples) == ("Raise the limit.", ["one.txt, text unit 0", "c", "e0"])
    assert (second.cause, second.message, second.count, second.examples) == ("poison", "poison", 1, ["d"])
    assert second.line() == "1 × extract: poison (for example d)"
