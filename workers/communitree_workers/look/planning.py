"""What questions would read and cost, before anything is spent."""

from __future__ import annotations

from communitree_shared.messages import QueryRequest
from communitree_shared.options import QueryOptions, SelectionOptions
from communitree_shared.results import Plan
from communitree_workers.query.corpus_view import CorpusView
from communitree_workers.query.select import select
from communitree_workers.query.shell import cut, load_view
from communitree_workers.runtime.context import UnitContext

#: What `--plan all` shows side by side, where the caller has not set a strategy's own parameter.
_SIDE_BY_SIDE: tuple[SelectionOptions, ...] = (
    SelectionOptions(strategy="auto"),
    SelectionOptions(strategy="budget", budget_tokens=12_000),
    SelectionOptions(strategy="budget", budget_tokens=120_000),
    SelectionOptions(strategy="leaves"),
    SelectionOptions(strategy="frontier", level=0),
    SelectionOptions(strategy="frontier", level=2),
    SelectionOptions(strategy="levels", level=2),
    SelectionOptions(strategy="levels"),
)


def plans(context: UnitContext, request: QueryRequest, options: QueryOptions) -> list[Plan]:
    """Return the plan of the chosen selection, or of all of them side by side."""
    view = load_view(context, request.corpus, request.version)
    chosen = [options.selection] if options.plan_only != "all" else list(_SIDE_BY_SIDE)
    return [_plan(context, request, options, view, selection) for selection in chosen]


def _plan(
    context: UnitContext, request: QueryRequest, options: QueryOptions, view: CorpusView, selection: SelectionOptions
) -> Plan:
    selected = select(view, selection, request.question, batch=options.batch, language="en")
    batches = cut(context, request, view, selected, options)
    tokens = sum(b.prompt_tokens for b in batches)
    price = context.services.settings.model("map")
    usd = 0.0 if price.built_in else None
    if price.price_input is not None and not price.built_in:
        usd = tokens * price.price_input / 1e6
    return Plan(
        corpus=request.corpus, version=request.version, selection=selected.selection, batches=len(batches),
        tokens=tokens, usd=usd, coverage=selected.coverage,
    )  # fmt: skip
