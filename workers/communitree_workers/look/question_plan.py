"""What questions would read and cost, before anything is spent."""

from __future__ import annotations

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Plan
from communitree_workers.query.batches.cutting import prices
from communitree_workers.query.planning.again import silent
from communitree_workers.query.planning.planner import Planner, Prices, plan, plan_all
from communitree_workers.query.question.question import check_question
from communitree_workers.query.view.stored import load_view
from communitree_workers.runtime.context import UnitContext


def plans(context: UnitContext, request: QueryRequest, options: QueryOptions) -> list[Plan]:
    """Return the plan of the chosen selection, of all of them side by side, or of reading a job's silent reports again.

    Raises:
        UsageError: as the question itself would.
    """
    view = load_view(context, request.corpus, request.version)
    paid = Prices.of(prices(context))
    place: dict[str, str] = {"corpus": request.corpus, "version": request.version}
    if options.plan_only == "all":
        return plan_all(view, options, request.question, paid, **place)
    if not options.history:  # otherwise it is asked in other words
        check_question(request.question, options.batch, view.encoding)
    if options.again:
        selected, options = silent(context, request, view, options)
        planner = Planner(view, options, request.question, paid)
        planner.priced(options.selection)
        return [planner.of(selected, options.selection, corpus=request.corpus, version=request.version)]
    return [plan(view, options, request.question, paid, **place)]
