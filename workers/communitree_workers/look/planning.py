"""What questions would read and cost, before anything is spent."""

from __future__ import annotations

from communitree_shared.messages import QueryRequest
from communitree_shared.options import QueryOptions
from communitree_shared.results import Plan
from communitree_workers.query.plan import Prices, plan, plan_all
from communitree_workers.query.shell import load_view, prices
from communitree_workers.runtime.context import UnitContext


def plans(context: UnitContext, request: QueryRequest, options: QueryOptions) -> list[Plan]:
    """Return the plan of the chosen selection, or of all of them side by side."""
    view = load_view(context, request.corpus, request.version)
    paid = Prices.of(prices(context))
    place = {"corpus": request.corpus, "version": request.version}
    if options.plan_only == "all":
        return plan_all(view, options, request.question, paid, **place)
    return [plan(view, options, request.question, paid, **place)]
