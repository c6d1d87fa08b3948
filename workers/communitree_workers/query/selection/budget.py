"""`budget`: the finest cut within tokens, reports or money."""

from __future__ import annotations

from typing import Any

import numpy as np

from communitree_shared.contract.tables import MASS_SCALE
from communitree_shared.errors import UsageError
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe, without_price
from communitree_workers.query.selection.cut import Cut, cut
from communitree_workers.query.view.blocks import Blocks
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select by tokens, reports or money; where several are given, the tightest holds.

    Raises:
        UsageError: no budget is given, or one in money without a price.
    """
    options, view, language = question.selection, question.view, question.language
    tokens, reports, usd, stable = options.budget_tokens, options.budget_reports, options.budget_usd, options.stable
    if tokens is reports is usd is None:
        raise UsageError(
            "The selection `budget` needs a budget.", hint="Give --budget-tokens, --budget-reports or --budget-usd."
        )
    if usd is not None and price is None:
        raise without_price()
    cost, blocks = costs(view, question.batch)
    found: list[tuple[str, float, Cut]] = []
    if tokens is not None:
        found.append(("tokens", tokens, cut(view, blocks, cost, tokens, stable=stable)))
    if reports is not None:
        ones = np.ones(len(view.community), dtype=np.int64)
        found.append(("reports", reports, cut(view, view.by_reports, ones, reports, stable=stable)))
    if usd is not None and price is not None:
        found.append(("usd", usd, _by_money(view, blocks, cost, usd, price, stable=stable)))
    unit, limit, best = min(found, key=lambda item: (int(cost[item[2].nodes].sum()), item[0]))
    words = say(f"limit.{unit}", language, n=limit)
    key = "why.budget_roots" if len(best.missing) else "why.budget"
    why = say(key, language, limit=words, reports=len(best.nodes)) + (say("why.stable", language) if stable else "")
    total = max(1, view.total_mass)
    account: dict[str, Any] = {
        name: value for name, value in (("tokens", tokens), ("reports", reports), ("usd", usd)) if value
    }
    account |= {
        "binding": unit,
        "used": int(cost[best.nodes].sum()) if unit == "usd" else best.spent,
        "core": best.core,
        "detail_bits": round(best.detail / total, 6),
        "detail_bits_at_most": round(max(best.bound, best.detail) / total, 6),
    }
    if stable:
        account["stable"] = True
    if not len(best.nodes) and best.least:
        account["least"] = best.least
        if unit == "usd" and price is not None:
            account["least"] = price(cut(view, blocks, cost, best.least, stable=stable).nodes)
    if len(best.missing):
        account["text_units_outside"] = round(int(view.mass[best.missing].sum()) / MASS_SCALE, 1)
    return describe(question, Choice(best.nodes, why, account, pruned=best.missing))


def _by_money(view: CorpusView, blocks: Blocks, cost: IntArray, usd: float, price: Price, *, stable: bool) -> Cut:
    """Bisect on tokens, each try priced through the real batch plan."""
    low, high = 0, int(cost[view.is_leaf].sum()) + int(cost.max(initial=0)) + 1
    best = cut(view, blocks, cost, low, stable=stable)
    whole = cut(view, blocks, cost, high, stable=stable)
    if price(whole.nodes) <= usd:
        return whole
    if best.least:  # not even the cheapest is in it: what pays for that one reads it, whatever the steps below try
        cheapest = cut(view, blocks, cost, best.least, stable=stable)
        if price(cheapest.nodes) <= usd:
            low, best = best.least, cheapest
    while high - low > max(64, high // 256):
        middle = (low + high) // 2
        tried = cut(view, blocks, cost, middle, stable=stable)
        if price(tried.nodes) <= usd:
            low, best = middle, tried
        else:
            high = middle
    return best
