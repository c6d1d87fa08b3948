"""`auto` on questions that name something: the best matches are picked at any level, the rest goes to a cut."""

from __future__ import annotations

from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import SelectionOptions
from communitree_workers.query.selection.choice import Choice, coverage, describe
from communitree_workers.query.selection.cut import cut
from support.named_facts import Facts, best_matches, planted, recall
from support.questions import question_of, select
from support.shapes import shapes
from support.views import TreeShape, is_cut, view_of

SHAPES = {
    "even": {"fan": (8, 4, 5)},
    "skewed": {"fan": (12, 6, 10), "skewed": True},
    "flat": {"fan": (60, 6)},
    "deep": {"fan": (10, 5, 5, 7)},
}


@pytest.fixture(scope="module", params=SHAPES)
def facts(request: pytest.FixtureRequest) -> Facts:
    return planted(**SHAPES[request.param])


def read(facts: Facts, text: str, tokens: int, **options: object) -> set[int]:
    selection = SelectionOptions.model_validate({"auto_tokens": tokens, "strategy": "auto", **options})
    selected = select(facts.view, selection, text)
    assert selected.selection.tokens <= tokens
    return set(selected.ids)


def test_a_question_that_names_something_finds_what_plain_search_finds(facts: Facts) -> None:
    searched = [
        recall(best_matches(facts.view, question_of(facts.view, asked.text).words.specific, 8_000), asked)
        for asked in facts.naming
    ]
    assert mean(searched) > 0.9
    found = [recall(read(facts, asked.text, 8_000), asked) for asked in facts.naming]
    assert mean(found) >= 0.9 * mean(searched)


@pytest.mark.parametrize("tokens", [8_000, 16_000, 48_000])
def test_a_question_in_other_words_finds_at_least_what_an_even_cut_finds(facts: Facts, tokens: int) -> None:
    found = [recall(read(facts, asked.text, tokens), asked) for asked in facts.paraphrased]
    even = [recall(read(facts, "What are the main themes?", tokens), asked) for asked in facts.paraphrased]
    assert mean(found) >= mean(even)
    if tokens == 48_000:
        assert mean(found) >= 0.95  # the branch that it names is read as a whole


def test_a_general_question_has_no_picks(facts: Facts) -> None:
    text = "What are the main themes?"
    selected = select(facts.view, SelectionOptions(auto_tokens=20_000), text)
    assert selected.selection.picks.count == 0
    even = select(facts.view, SelectionOptions(strategy="budget", budget_tokens=20_000), text)
    assert selected.ids == even.ids
    assert even.selection.picks.count == 0


def test_the_text_of_findings_is_searched_and_the_numbers_of_references_are_not(facts: Facts) -> None:
    view = facts.view
    for asked in facts.naming:
        *_, family = asked.text.rstrip("?").split(" involved")[0].split()
        assert set(view.community[view.lexicon.holders(family.lower())].tolist()) == asked.holders
    assert view.lexicon.frequency("entity") == 0


def _wordy() -> TreeShape:
    """Two roots of two children with two leaves each."""
    parent = (-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)
    return TreeShape(parent, (10,) * 14, (0,) * 6 + (100,) * 8)


def test_a_pick_is_listed_beside_the_levels_of_the_cut_and_covers_once() -> None:
    view = view_of(_wordy(), words=[["corpus"]] * 13 + [["zebra", "corpus"]])
    selected = select(view, SelectionOptions(auto_tokens=30), "What about zebras?")
    selection = selected.selection
    assert selected.ids == [0, 1, 13]  # the roots, and the leaf below one of them
    assert (selection.picks.count, selection.picks.reports) == (1, [13])
    assert "zebra" in selection.picks.why
    assert "zebra" in selection.why
    assert (selection.levels, selection.reports, selection.tokens) == ({"0": 2}, 3, 30)
    assert selection.budget == {"tokens": 30, "mode": "focused", "picks": 10, "kept_for_picks": 27}
    assert selected.coverage == coverage(view, np.array([0, 1]))


def test_roots_that_find_no_room_beside_the_picks_are_named() -> None:
    view = view_of(_wordy(), words=[["corpus"]] * 13 + [["zebra", "corpus"]])
    selected = select(view, SelectionOptions(auto_tokens=20), "What about zebras?")
    assert selected.ids == [0, 13]
    assert [entry["id"] for entry in selected.selection.pruned.heaviest] == [1]
    assert selected.selection.pruned.count == 1
    alone = select(view, SelectionOptions(auto_tokens=10), "What about zebras?")
    assert alone.ids == [13]
    assert {entry["id"] for entry in alone.selection.pruned.heaviest} == {0, 1}


def test_words_that_no_report_has_leave_more_to_the_cut() -> None:
    view = view_of(_wordy(), words=[["corpus"]] * 13 + [["zebra", "corpus"]])
    limits = [
        select(view, SelectionOptions(auto_tokens=60), text).selection.budget["kept_for_picks"]
        for text in (
            "What about zebras?",
            "What about zebras and unicorns?",
            "What about zebras, unicorns, elves?",
        )
    ]
    assert limits[0] > limits[1] > limits[2] >= 30


def test_what_is_in_the_cut_is_no_pick_and_paid_once() -> None:
    view = view_of(_wordy(), words=[["zebra"], *[["corpus"]] * 13])
    selected = select(view, SelectionOptions(auto_tokens=20), "What about zebras?")
    assert selected.ids == [0, 1]
    assert selected.selection.picks.count == 0
    assert selected.selection.levels == {"0": 2}


@pytest.mark.parametrize("lacks", ["rank", "report"])
def test_a_report_that_is_not_to_be_read_is_no_pick(lacks: str) -> None:
    words = [["corpus"]] * 12 + [["zebra"]] * 2
    view = view_of(_wordy(), words=words, rank=[5.0] * 13 + [1.0 if lacks == "rank" else 5.0])
    view.readable[13] = lacks == "rank"
    options = SelectionOptions(auto_tokens=30, min_community_rank=2)
    assert select(view, options, "What about zebras?").selection.picks.reports == [12]


def test_picks_are_described_apart_from_a_cut() -> None:
    view = view_of(_wordy())
    choice = Choice(np.array([0, 1]), "why", picks=np.array([2, 6]), why_picks="matches")
    selection = describe(question_of(view), choice).selection
    assert (selection.levels, selection.reports, selection.picks.reports) == ({"0": 2}, 4, [2, 6])
    assert selection.picks.why == "matches"


@settings(max_examples=50)
@given(shapes(most=16), st.integers(1, 500), st.data())
def test_auto_is_a_cut_and_picks_within_its_budget(shape: TreeShape, budget: int, data: st.DataObject) -> None:
    n = len(shape.parent)
    words = data.draw(st.lists(st.sampled_from([["zebra"], ["lion"], []]), min_size=n, max_size=n))
    view = view_of(shape, words=words)
    selected = select(view, SelectionOptions(auto_tokens=budget), "What about zebras?")
    picks = selected.selection.picks
    in_cut = [id for id in selected.ids if id not in set(picks.reports)]
    assert is_cut(view, in_cut)
    assert picks.count == len(picks.reports) == len(selected.ids) - len(in_cut)
    assert sum(selected.selection.levels.values()) == len(in_cut)
    assert int(view.tokens[[view.node[id] for id in selected.ids]].sum()) <= budget
    if cut(view, view.by_tokens, view.tokens, budget).nodes.size:
        assert selected.ids
