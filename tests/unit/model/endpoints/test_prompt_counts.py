from __future__ import annotations

import pytest

from communitree_workers.model.endpoints.prompt_counts import PromptCounts


def messages(text: str, system: str = "") -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def asked(counts: PromptCounts, number: int, ours: int, theirs: int, *, system: str = "", text: str = "word ") -> bool:
    """A prompt of so many tokens, one word each; its beginning is its number."""
    return counts.read_all("k", messages(f"{number} " + text * ours, system), ours, True, theirs)


def test_a_count_far_below_ours_is_a_prompt_that_was_cut() -> None:
    counts = PromptCounts()
    assert asked(counts, 1, 4000, 3900)
    assert not asked(counts, 2, 4000, 2000)


def test_missing_and_zero_prove_nothing() -> None:
    counts = PromptCounts()
    assert asked(counts, 1, 4000, 0)


def test_the_ratio_of_an_endpoint_is_learned_from_good_calls() -> None:
    frugal, wordy = PromptCounts(), PromptCounts()
    for number in range(5):
        assert asked(frugal, number, 500, 250)  # short prompts cannot be cut: a tokeniser of its own
        assert asked(wordy, number, 500, 700)
    assert asked(frugal, 9, 4000, 2000)
    assert not asked(frugal, 10, 4000, 1300)
    assert not asked(wordy, 9, 4000, 4000)  # 5600 were to be expected
    assert asked(wordy, 10, 4000, 5000)


def test_prompts_that_were_cut_teach_nothing() -> None:
    counts = PromptCounts()
    for number in range(5):
        asked(counts, number, 500, 500)
    for number in range(10, 200):
        assert not asked(counts, number, 4000, 2000)


def test_what_a_shared_beginning_explains_is_no_cut() -> None:
    """A server that keeps what it computed counts only what was new."""
    counts, system = PromptCounts(), "instructions " * 3000
    assert asked(counts, 1, 4000, 4000, system=system)
    assert asked(counts, 2, 4000, 1000, system=system)
    assert asked(counts, 2, 4000, 1, system=system)  # the very same prompt
    other = PromptCounts()
    assert asked(other, 1, 4000, 4000, system="short")
    assert not asked(other, 2, 4000, 1000, system="short")


@pytest.mark.parametrize(("theirs", "fine"), [(2000, True), (1300, True), (1000, False)])
def test_other_scripts_have_more_room(theirs: int, fine: bool) -> None:
    assert asked(PromptCounts(), 1, 4000, theirs, text="港") is fine


def test_endpoints_are_apart() -> None:
    counts = PromptCounts()
    for number in range(5):
        counts.read_all("a", messages(f"{number} text"), 500, True, 250)
    assert not counts.read_all("b", messages("text"), 4000, True, 2000)
