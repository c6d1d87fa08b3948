"""The budget cut: valid, within its budget, monotone, and with an optimal core."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import BatchOptions, QueryOptions, SelectionOptions
from communitree_shared.errors import UsageError
from communitree_workers.query.selection.cut import cut
from communitree_workers.query.selection.select import must_read
from communitree_workers.query.view.costs import costs
from support.questions import plan, select
from support.shapes import shapes
from support.views import TreeShape, all_cuts, is_cut, view_of


def ancestors(shape: TreeShape, node: int) -> set[int]:
    out, up = set(), shape.parent[node]
    while up >= 0:
        out.add(up)
        up = shape.parent[up]
    return out


def covers(shape: TreeShape, nodes: set[int]) -> bool:
    leaves = [i for i, c in enumerate(shape.children) if not c]
    return all(len(nodes & (ancestors(shape, leaf) | {leaf})) == 1 for leaf in leaves)


@settings(max_examples=30)
@given(shapes(), st.booleans())
def test_cuts_are_cuts_within_the_budget_and_monotone(shape: TreeShape, stable: bool) -> None:
    view = view_of(shape)
    base = cut(view, view.by_tokens, view.tokens, 10**9).spent
    seen = []
    for budget in sorted({*range(0, sum(shape.tokens) + 20, 7), base, sum(shape.tokens)}):
        found = cut(view, view.by_tokens, view.tokens, budget, stable=stable)
        nodes = set(found.nodes.tolist())
        assert found.spent <= budget
        assert found.spent == sum(shape.tokens[n] for n in nodes)
        assert is_cut(view, found.nodes.tolist())
        assert covers(shape, nodes | set(found.missing.tolist()))
        assert found.detail <= found.bound
        seen.append((found.spent, int(view.mass[found.nodes].sum()), found.detail, bool(len(found.missing))))
    for a, b in pairwise(seen):
        assert a[0] <= b[0], "tokens fell"
        assert a[1] <= b[1] + 0, "mass fell"
        if not a[3]:
            assert not b[3]
            assert a[2] <= b[2], "F fell"


@settings(max_examples=30)
@given(shapes(most=16), st.integers(0, 600))
def test_the_fill_leaves_out_nothing_that_fits(shape: TreeShape, budget: int) -> None:
    view = view_of(shape)
    found = cut(view, view.by_tokens, view.tokens, budget)
    if len(found.missing):
        return
    blocks = view.by_tokens
    refined = {a for n in found.nodes.tolist() for a in ancestors(shape, n)}
    taken = {int(blocks.of_node[n]) for n in refined}
    for block in range(len(blocks.cost)):
        if block not in taken and (int(blocks.parent[block]) in taken or blocks.parent[block] < 0):
            assert int(blocks.cost[block]) > budget - found.spent


def test_the_fill_goes_on_below_what_it_took() -> None:
    # the best refinement (of 0) costs too much; that of 1 fits, and then that of its child 4
    parent, tokens = (-1, -1, 0, 0, 1, 1, 4, 4), (10, 10, 55, 55, 7, 8, 6, 6)
    view = view_of(TreeShape(parent, tokens, (0, 0, 10**6, 10**6, 0, 1000, 10, 10)))
    assert cut(view, view.by_tokens, view.tokens, 35, stable=True).nodes.tolist() == [0, 1]
    assert cut(view, view.by_tokens, view.tokens, 35).nodes.tolist() == [0, 5, 6, 7]
    assert cut(view, view.by_tokens, view.tokens, 29).nodes.tolist() == [0, 4, 5]


@settings(max_examples=25)
@given(shapes(most=16))
def test_the_core_never_gets_coarser(shape: TreeShape) -> None:
    view = view_of(shape)
    before: set[int] = set()
    for budget in range(0, sum(shape.tokens) + 10, 5):
        found = cut(view, view.by_tokens, view.tokens, budget, stable=True)
        if len(found.missing):
            continue
        refined = {a for n in found.nodes.tolist() for a in ancestors(shape, n)}
        assert before <= refined
        before = refined


@settings(max_examples=30)
@given(shapes(most=11))
def test_the_core_is_optimal_for_the_tokens_it_uses(shape: TreeShape) -> None:
    view = view_of(shape)
    every = [(sum(shape.tokens[n] for n in c), int(view.bits[list(c)].sum())) for c in all_cuts(shape)]
    for budget in range(0, sum(shape.tokens) + 10, 9):
        found = cut(view, view.by_tokens, view.tokens, budget, stable=True)
        if len(found.missing):
            continue
        best = max(f for tokens, f in every if tokens <= found.spent)
        # rounding of each community's share to a whole unit
        assert found.detail >= best - len(shape.parent)


@settings(max_examples=25)
@given(shapes(most=11), st.integers(0, 600))
def test_no_cut_of_the_budget_is_above_the_bound(shape: TreeShape, budget: int) -> None:
    view = view_of(shape)
    found = cut(view, view.by_tokens, view.tokens, budget)
    if len(found.missing):
        return
    fits = [c for c in all_cuts(shape) if sum(shape.tokens[n] for n in c) <= budget]
    best = max(int(view.bits[list(c)].sum()) for c in fits)
    assert best <= found.bound + len(shape.parent)


def test_children_cheaper_than_their_parent_replace_it() -> None:
    shape = TreeShape((-1, 0, 0), (100, 20, 30), (0, 5, 5))
    view = view_of(shape)
    assert cut(view, view.by_tokens, view.tokens, 60).nodes.tolist() == [1, 2]


def test_the_two_refinements_of_the_specification() -> None:
    # +10 tokens for 10 bits and +6 for 7 (in proportion): slack 6 takes the second, slack 10 the better ratio first
    shape = TreeShape((-1, -1, 0, 0, 1, 1), (10, 10, 10, 10, 8, 8), (0, 0, 500, 500, 350, 350))
    view = view_of(shape)
    assert sorted(cut(view, view.by_tokens, view.tokens, 26).nodes.tolist()) == [0, 4, 5]
    assert cut(view, view.by_tokens, view.tokens, 36).nodes.tolist() == [2, 3, 4, 5]


def test_roots_above_the_budget_are_taken_by_mass_per_token_and_the_rest_is_named() -> None:
    shape = TreeShape((-1, -1, -1), (50, 30, 40), (100, 90, 10))
    view = view_of(shape)
    selected = select(view, SelectionOptions(strategy="budget", budget_tokens=75), "q")
    assert selected.ids == [1, 2]  # the densest, then what still fits
    assert [entry["id"] for entry in selected.selection.pruned.heaviest] == [0]
    assert selected.selection.pruned.entities == pytest.approx(1 / 3, abs=1e-6)
    assert selected.selection.budget["text_units_outside"] == pytest.approx(0.0, abs=0.1)


def test_what_nothing_fits_is_said_as_it_is() -> None:
    view = view_of(TreeShape((-1, -1), (1212, 151), (900, 10)))

    def ask(tokens: int, **more: bool) -> str:
        options = SelectionOptions(strategy="budget", budget_tokens=tokens, **more)
        with pytest.raises(UsageError) as caught:
            must_read(select(view, options, "q"))
        return caught.value.message

    assert ask(1).startswith("A budget of 1 token is too small to read anything: ")
    assert ask(1).endswith("the smallest top-level report takes 151 tokens.")
    stable = ask(300, stable=True)  # 151 would fit, but is not what comes first
    assert stable.endswith("the first report in the order of --stable takes 1,212 tokens.")
    assert must_read(select(view, SelectionOptions(strategy="budget", budget_tokens=300), "q")).ids == [1]


def test_reports_and_money_and_the_tightest_of_several() -> None:
    shape = TreeShape((-1, 0, 0, 1, 1), (10, 10, 10, 10, 10), (0, 0, 50, 30, 20))
    view = view_of(shape)
    by_reports = select(view, SelectionOptions(strategy="budget", budget_reports=2), "q")
    assert by_reports.ids == [1, 2]
    both = select(view, SelectionOptions(strategy="budget", budget_reports=2, budget_tokens=1000), "q")
    assert both.ids == [1, 2]
    assert both.selection.budget["binding"] == "reports"

    def price(nodes: np.ndarray) -> float:
        return 0.1 * len(nodes)

    by_money = select(view, SelectionOptions(strategy="budget", budget_usd=0.35), "q", price=price)
    assert by_money.ids == [2, 3, 4]
    with pytest.raises(UsageError, match="price"):
        select(view, SelectionOptions(strategy="budget", budget_usd=0.35), "q")
    with pytest.raises(UsageError, match="needs a budget"):
        select(view, SelectionOptions(strategy="budget"), "q")


@pytest.mark.parametrize(("stable", "least"), [(False, 30), (True, 50)])
def test_a_budget_that_reads_nothing_is_refused_with_the_least_that_does(stable: bool, least: int) -> None:
    view = view_of(TreeShape((-1, -1, -1), (50, 30, 40), (100, 10, 10)))

    def options(tokens: int) -> SelectionOptions:
        return SelectionOptions(strategy="budget", budget_tokens=tokens, stable=stable)

    with pytest.raises(UsageError, match=f"10 tokens is too small to read anything: .* takes {least} tokens"):
        must_read(select(view, options(10), "q"))
    with pytest.raises(UsageError, match="too small"):
        plan(view, QueryOptions(selection=options(least - 1)), "q")
    assert must_read(select(view, options(least), "q")).ids


def test_a_budget_in_money_that_reads_nothing_is_refused() -> None:
    view = view_of(TreeShape((-1, -1), (5000, 3000), (100, 10)))
    options = SelectionOptions(strategy="budget", budget_usd=0.01)
    with pytest.raises(UsageError, match=r"0.01 USD is too small .* takes 0.3 USD"):
        must_read(select(view, options, "q", price=lambda nodes: float(view.tokens[nodes].sum()) / 10_000))


@settings(max_examples=50)
@given(shapes(), st.floats(1e-7, 1e-2), st.booleans())
def test_the_least_budget_in_money_that_is_named_reads_something(shape: TreeShape, each: float, stable: bool) -> None:
    view = view_of(shape)

    def ask(usd: float) -> list[int]:
        options = SelectionOptions(strategy="budget", budget_usd=usd, stable=stable)
        price = lambda nodes: (100 + float(view.tokens[nodes].sum())) * each  # noqa: E731
        return must_read(select(view, options, "q", price=price)).ids

    with pytest.raises(UsageError) as caught:
        ask(each * 100.5)
    assert ask(float(caught.value.message.rsplit(" ", 2)[1]))


@settings(max_examples=25)
@given(shapes(), st.integers(0, 500))
def test_summaries_have_costs_of_their_own(shape: TreeShape, budget: int) -> None:
    view = view_of(shape)
    batch = BatchOptions(use_community_summary=True)
    cost, blocks = costs(view, batch)
    assert cost.tolist() == view.tokens_summary.tolist()
    found = cut(view, blocks, cost, budget)
    assert int(view.tokens_summary[found.nodes].sum()) <= budget
