"""Selections: which reports a query reads. One module a strategy, of its name.

A module has `choose(question, price)`, or for a strategy that rates communities on the way `walk(question, price)`:
a `Walk` that its caller drives.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from communitree_shared.contract.strategies import STRATEGIES
from communitree_shared.errors import UsageError
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Price, Selected
from communitree_workers.query.selection.limits import too_small
from communitree_workers.query.selection.walk import Walk


def select(question: Question, price: Price | None = None) -> Selected:
    """Select what a question reads, in one step.

    `price`: what reading some communities would cost in USD; needed for a budget in money.

    Raises:
        UsageError: a parameter is missing, or the strategy needs ratings.
    """
    strategy = question.selection.strategy
    if STRATEGIES[strategy].walks:
        raise UsageError(
            f"The selection {strategy!r} rates communities on the way and cannot be made in one step.",
            hint="Drive its walk, see `walk_of`.",
        )
    found: Selected = _module(strategy).choose(question, price)
    return found


def walk_of(question: Question, price: Price | None = None) -> Walk:
    """Return the walk of a question whose strategy rates communities on the way, at its start."""
    walk: Walk = _module(question.selection.strategy).walk(question, price)
    return walk


def usual_calls(strategy: str) -> int | None:
    """Return the most rating calls of a walk where the options name no limit; None: there is none."""
    calls: int | None = _module(strategy).walk.usual_calls
    return calls


def must_read(selected: Selected) -> Selected:
    """Return a selection, unless its budget is below the price of the cheapest report that it could have read.

    Raises:
        UsageError: nothing fits; says what the least budget is.
    """
    budget = selected.selection.budget
    if selected.ids or "least" not in budget:
        return selected
    what = "the smallest top-level report"
    if selected.selection.strategy == "relevant":
        what = "the smallest relevant report"
    elif budget.get("stable"):
        what = "the first report in the order of --stable"
    flag = "auto" if selected.selection.strategy == "auto" else "budget"
    raise too_small(str(budget["binding"]), budget[budget["binding"]], budget["least"], what, flag)


def _module(strategy: str) -> Any:
    return import_module(f"{__package__}.{strategy}")
