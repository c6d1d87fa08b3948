"""The other selections that need no ratings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import SelectionOptions
from communitree_shared.errors import UsageError
from communitree_workers.query.selection.coverage import _exact, fewest_tokens, lagrange
from support.questions import select
from support.shapes import shapes
from support.views import TreeShape, all_antichains, is_cut, view_of

#: Roots {A,B,C}, {D}; then {A,B}, {C}, {D}; then {A}, {B}.
EXAMPLE = TreeShape((-1, -1, 0, 0, 1, 2, 2), (10,) * 7, (0, 0, 0, 1, 1, 1, 1))


def chosen(shape: TreeShape, **options: object) -> list[int]:
    return select(view_of(shape), SelectionOptions(**options), "q").ids  # type: ignore[arg-type]


def test_level_one_of_the_example_is_five_reports_by_levels_and_three_by_frontier() -> None:
    assert chosen(EXAMPLE, strategy="levels", level=1) == [0, 1, 2, 3, 4]
    assert chosen(EXAMPLE, strategy="frontier", level=1) == [2, 3, 4]
    assert chosen(EXAMPLE, strategy="levels") == list(range(7))
    assert chosen(EXAMPLE, strategy="leaves") == [3, 4, 5, 6]
    assert chosen(EXAMPLE, strategy="frontier", level=9) == [3, 4, 5, 6]


def test_what_ends_above_the_wanted_level_is_called_finest_available() -> None:
    selection = select(view_of(EXAMPLE), SelectionOptions(strategy="frontier", level=2), "q").selection
    assert selection.finest_available.count == 2
    assert {entry["id"] for entry in selection.finest_available.heaviest} == {3, 4}
    assert selection.levels == {"1": 2, "2": 2}


def test_levels_never_shows_stand_ins_and_the_frontier_needs_them() -> None:
    shown = [True, True, True, False, True, True, True]
    view = view_of(EXAMPLE, shown=shown)
    assert select(view, SelectionOptions(strategy="levels", level=1), "q").ids == [0, 1, 2, 4]
    assert select(view, SelectionOptions(strategy="frontier", level=1), "q").ids == [2, 3, 4]


def test_reports_below_the_minimum_rank_are_left_out_and_named() -> None:
    view = view_of(EXAMPLE, rank=[5, 5, 5, 2, 5, 5, 5])
    selected = select(view, SelectionOptions(strategy="leaves", min_community_rank=3), "q")
    assert selected.ids == [4, 5, 6]
    assert selected.selection.pruned.heaviest[0]["id"] == 3
    assert selected.selection.pruned.text_units == 1
    assert "minimum rank" in selected.warnings[0]


def test_texts_reads_the_text_units_themselves() -> None:
    selected = select(view_of(EXAMPLE), SelectionOptions(strategy="texts"), "q")
    assert selected.kind == "sources"
    assert selected.ids == list(range(7))
    assert selected.coverage.text_units_read == 1.0


def test_coverage_counts_what_is_held_apart_from_what_is_read() -> None:
    selected = select(view_of(EXAMPLE), SelectionOptions(strategy="frontier", level=0), "q")
    assert selected.coverage.entities == 1.0
    assert selected.coverage.text_units_assigned == pytest.approx(4 / 7, abs=1e-5)  # the bare view has seven units


@settings(max_examples=30)
@given(shapes(most=10), st.data())
def test_coverage_takes_the_fewest_tokens(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    direct = data.draw(st.lists(st.integers(0, 50), min_size=n, max_size=n))
    target = data.draw(st.integers(1, max(1, sum(direct))))
    view = view_of(shape, direct=direct)
    nodes, reached = fewest_tokens(view, view.tokens, view.direct, target)
    assert is_cut(view, nodes.tolist())
    sets = all_antichains(shape)
    enough = [s for s in sets if sum(direct[v] for v in s) >= target]
    if enough:
        assert reached >= target
        assert sum(shape.tokens[v] for v in nodes) == min(sum(shape.tokens[v] for v in s) for s in enough)
    else:
        assert reached == max(sum(direct[v] for v in s) for s in sets)


@settings(max_examples=15)
@given(shapes(most=14), st.data())
def test_large_trees_come_near_and_always_reach(shape: TreeShape, data: st.DataObject) -> None:
    n = len(shape.parent)
    direct = data.draw(st.lists(st.integers(0, 50), min_size=n, max_size=n))
    view = view_of(shape, direct=direct)
    target = max(1, sum(direct) // 3)
    nodes = lagrange(view, view.tokens, view.direct, target)
    exact = _exact(view, view.tokens, view.direct, target, int(view.tokens[nodes].sum()))
    if exact is not None:
        assert int(view.direct[nodes].sum()) >= target
        assert int(view.tokens[exact].sum()) <= int(view.tokens[nodes].sum())


def test_a_share_that_cannot_be_read_is_said_to_be_short() -> None:
    shape = TreeShape((-1, 0, 0), (10, 10, 10), (0, 2_000_000, 2_000_000))
    view = view_of(shape, direct=[0, 1_000_000, 0])
    selected = select(view, SelectionOptions(strategy="coverage", coverage=0.9), "q")
    assert selected.ids == [1]
    assert "less than 90%" in selected.selection.why
    with pytest.raises(UsageError, match="share"):
        select(view, SelectionOptions(strategy="coverage"), "q")


def _wordy() -> TreeShape:
    """Two roots of two children with two leaves each."""
    parent = (-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)
    return TreeShape(parent, (10,) * 14, (0,) * 6 + (100,) * 8)


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("What are the main themes?", "whole corpus"),
        ("这本书的主要内容是什么？", "整个语料"),
        ("What about unicorns?", "question's words"),
        ("What about corpuscles?", "most reports"),
    ],
)
def test_auto_reads_an_even_cut_for_themes_and_says_why(question: str, why: str) -> None:
    view = view_of(_wordy(), words=[["corpuscle"]] * 14)
    selected = select(view, SelectionOptions(auto_tokens=60), question)
    assert selected.selection.budget["mode"] == "themes"
    assert why in selected.selection.why
    assert selected.ids == select(view, SelectionOptions(strategy="budget", budget_tokens=60), "q").ids


def test_auto_says_when_everything_fits() -> None:
    view = view_of(_wordy())
    assert "fits" in select(view, SelectionOptions(), "Where do zebras live?").selection.why


def test_a_selection_that_rates_cannot_be_made_in_one_step() -> None:
    with pytest.raises(UsageError, match="rates"):
        select(view_of(EXAMPLE), SelectionOptions(strategy="relevant"), "q")
