"""Walks of the tree that ask for ratings: the ratings of a wave are the units of one stage, the step behind it decides
the next.
"""

from __future__ import annotations

import json
from typing import Any

from communitree_shared import clock
from communitree_shared.contract.messages import Unit
from communitree_shared.contract.results import Usage
from communitree_shared.ledger import Stage, Step
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.query.planning.planner import Planner
from communitree_workers.query.question.loading import rewriting
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Price, Selected
from communitree_workers.query.selection.select import must_read, walk_of
from communitree_workers.query.selection.walk import Walk, Why
from communitree_workers.runtime.context import UnitContext

#: The share of the time until the map's deadline that ratings may take; the rest is for reading.
_RATING_SHARE = 0.5
#: No wave is opened when less than this share of the time for ratings is left.
_LAST_WAVE = 1 / 8
#: Causes of failed units, as the account of a walk tells them.
_WHY: dict[str, Why] = {"budget": "money", "deadline": "deadline"}


def begin_walk(context: UnitContext, question: Question, planner: Planner) -> Selected | None:
    """Open the first wave of a walk; returns the selection where nothing has to be rated."""
    walk = walk_of(question, _price(planner))
    walk.check()
    until = context.services.ledger.record(context.message.tenant, context.message.job).get("map_deadline")
    now = clock.now()
    time = [now, now + _RATING_SHARE * (float(until) - now)] if until else None
    return _go_on(context, walk, 0, planner, time)


def continue_walk(context: UnitContext, question: Question, planner: Planner) -> Selected | None:
    """Take the ratings of a wave; open the next, or return the selection."""
    services, message = context.services, context.message
    wave = int(context.args["wave"])
    walk = walk_of(question, _price(planner))
    state = json.loads(services.object(context.keys.job(message.job, f"walk-{wave}.json")))
    walk.restore(state)
    ratings: dict[int, float | None] = {}
    why: dict[int, Why] = {}
    used = Usage()
    told = services.ledger.outcomes(message.tenant, message.job, f"rate-{wave}")
    for n, communities in enumerate(walk.ask()):
        outcome = told.get(_unit(wave, n), {})
        used = used + Usage.model_validate(outcome.get("usage", {}))
        if "ratings" in outcome:
            ratings |= {int(c): r for c, r in outcome["ratings"].items()}
        else:
            why |= dict.fromkeys(communities, _WHY.get(outcome.get("cause", ""), "failed"))
    walk.tell(ratings, used.calls, why)
    if "money" in why.values():
        walk.stop("money")
    elif not ratings and "deadline" in why.values():  # nor would the next: what is read shall be coarse, not everything
        walk.stop("deadline")
    return _go_on(context, walk, wave + 1, planner, state.get("time"))


def _go_on(context: UnitContext, walk: Walk, wave: int, planner: Planner, time: list[float] | None) -> Selected | None:
    """Open a wave, or return the selection. `time`: when ratings began, and until when they may be asked for.

    A wave has half of the time that is left: calls that hang in one leave something for the next.
    """
    question, until = walk.question, None
    if time is not None:
        left = time[1] - clock.now()
        until = time[1] - left / 2
        if left < _LAST_WAVE * (time[1] - time[0]):
            walk.stop("deadline")
    if walk.done:
        walk.spent = (rating_usage(context) + rewriting(context, question)[0]).usd or 0.0
        return must_read(walk.selected())
    services, message, options = context.services, context.message, question.options
    state = json.dumps({**walk.to_state(), "time": time}).encode()
    services.store.put(context.keys.job(message.job, f"walk-{wave}.json"), state)
    args: dict[str, Any] = {"model": question.models["rate"]}
    if options.selection.budget_usd is not None:
        args["usd"] = planner.for_rating()
    units = [
        Unit(id=_unit(wave, n), args={"communities": communities, **args}) for n, communities in enumerate(walk.ask())
    ]
    then = Step(f"walk-{wave}", "communitree.query.walk.v1", {"wave": wave})
    window = options.concurrency or services.settings.window
    stage = Stage(f"rate-{wave}", "communitree.query.rate.v1", then, window=window, deadline=until)
    most = 1 if options.concurrency else 4
    local = args["model"] == EXTRACTIVE
    context.open(stage, context.messages(stage, units, local=local, per_message=most))
    return None


def rating_usage(context: UnitContext) -> Usage:
    """Return what all waves of a query's walk have used."""
    ledger, message = context.services.ledger, context.message
    total = Usage()
    for name in ledger.stage_names(message.tenant, message.job):
        if name.startswith("rate-"):
            for outcome in ledger.outcomes(message.tenant, message.job, name).values():
                total = total + Usage.model_validate(outcome.get("usage", {}))
    return total


def _unit(wave: int, n: int) -> str:
    return f"r{wave}-{n}"


def _price(planner: Planner) -> Price | None:
    return None if planner.selection.budget_usd is None else planner.price()
