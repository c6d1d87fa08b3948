"""What questions would read and cost, before anything is spent."""

from __future__ import annotations

from functools import partial

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Plan
from communitree_workers.query.planning.again import silent
from communitree_workers.query.planning.planner import Planner, Prices, plan_all
from communitree_workers.query.question.question import Question
from communitree_workers.query.view.stored import load_view
from communitree_workers.runtime.context import UnitContext


def plans(context: UnitContext, request: QueryRequest, options: QueryOptions) -> list[Plan]:
    """Return the plan of the chosen selection, of all of them side by side, or of reading a job's silent reports again.

    Raises:
        UsageError: as the question itself would.
    """
    view = partial(load_view, context, request.corpus, request.version)
    question = Question(request, options, request.question, view)
    planner = Planner(question, Prices.of(context.services.settings.model))
    if options.plan_only == "all":
        return plan_all(planner)
    if not options.history:  # otherwise it is asked in other words
        question.check()
    if options.again:
        planner.priced()
        selected, again = silent(context, question)
        return [Planner(again, planner.prices).of(selected)]
    return [planner.plan()]
