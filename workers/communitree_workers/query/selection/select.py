"""Selections: which reports a query reads. One module a strategy, this façade over all that need no ratings.

`relevant` and `dynamic` ask a model on the way; they are walks (`relevant.py`, `dynamic.py`) that a caller drives.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context

import numpy as np

from communitree_shared.contract.options import BatchOptions, SelectionOptions
from communitree_shared.errors import UsageError
from communitree_workers.query.question.words import read_question
from communitree_workers.query.selection.auto import auto
from communitree_workers.query.selection.budget import Price, by_budget, without_price
from communitree_workers.query.selection.choice import Choice, Selected, describe
from communitree_workers.query.selection.levels import frontier, leaves, levels
from communitree_workers.query.selection.limits import Limits
from communitree_workers.query.selection.texts import texts
from communitree_workers.query.view.blocks import Blocks
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say

__all__ = ["Selected", "check_budget", "costs", "must_read", "select"]


def select(
    view: CorpusView,
    options: SelectionOptions,
    question: str,
    *,
    batch: BatchOptions | None = None,
    price: Price | None = None,
    language: str = "",
) -> Selected:
    """Select what a query reads.

    Args:
        view: the version's view.
        options: the strategy and its parameters.
        question: used by `auto`, and for the language of what is said.
        batch: how rows will be rendered, which decides their tokens.
        price: what reading some communities would cost in USD; needed for a budget in money.
        language: of the sentences in the account; '' = the question's.

    Raises:
        UsageError: a parameter is missing, or the strategy needs ratings.
    """
    batch = batch or BatchOptions()
    asked = read_question(question, view.lexicon)
    language = language or asked.language
    if options.strategy == "texts":
        return texts(view, language)
    cost, blocks = costs(view, batch)
    choice: Choice
    match options.strategy:
        case "auto":
            choice = auto(view, blocks, cost, options.auto_tokens, asked, language)
        case "budget":
            choice = _budget(view, options, price, cost, blocks, language)
        case "leaves":
            choice = leaves(view, language)
        case "frontier":
            choice = frontier(view, options.level, language)
        case "levels":
            choice = levels(view, options.level, language)
        case "coverage":
            from communitree_workers.query.selection.coverage import by_coverage

            if options.coverage is None:
                raise UsageError("The selection `coverage` needs a share.", hint="For example --coverage 0.8.")
            choice = by_coverage(view, cost, options.coverage, language)
        case _:
            raise UsageError(
                f"The selection {options.strategy!r} rates communities on the way and cannot be made in one step.",
                hint="Drive `Relevant` or `Dynamic`.",
            )
    return describe(view, options.strategy, choice, min_rank=options.min_community_rank, batch=batch, language=language)


def _budget(
    view: CorpusView,
    options: SelectionOptions,
    price: Price | None,
    cost: IntArray,
    blocks: Blocks,
    language: str,
) -> Choice:
    if options.budget_tokens is None and options.budget_reports is None and options.budget_usd is None:
        raise UsageError(
            "The selection `budget` needs a budget.", hint="Give --budget-tokens, --budget-reports or --budget-usd."
        )
    if options.budget_usd is not None and price is None:
        raise without_price()
    return by_budget(
        view,
        tokens=options.budget_tokens,
        reports=options.budget_reports,
        usd=options.budget_usd,
        price=price,
        stable=options.stable,
        cost=cost,
        blocks=blocks,
        language=language,
    )


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


def too_small(unit: str, given: float, least: float, what: str, flag: str = "budget") -> UsageError:
    """Return the error of a budget in which nothing fits; `least`: what `what`, the cheapest, takes."""
    if unit == "usd":  # upwards, as far as it is printed: who follows the hint has enough
        least = float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(least))
    budget, needed = (say(f"limit.{unit}", "en", n=n) for n in (given, least))
    return UsageError(
        f"A budget of {budget} is too small to read anything: {what} takes {needed}.",
        hint=f"Raise --{flag}-{unit} to that or more.",
    )


def check_budget(view: CorpusView, options: SelectionOptions, batch: BatchOptions, price: Price | None) -> Limits:
    """Return the limits of a relevance walk, before anything is rated.

    Raises:
        UsageError: no report at all fits; or there is a budget in money, and no price.
    """
    limits = Limits.of(options, costs(view, batch)[0], price)
    if found := limits.too_small(np.flatnonzero(view.readable).tolist()):
        given = getattr(options, f"budget_{found['binding']}")
        raise too_small(found["binding"], given, found["least"], "the smallest report")
    return limits
