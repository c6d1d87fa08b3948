"""What a reduce begins with: the sealed plan, what each batch gave, and the points that are in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from communitree_shared.contract.results import Usage
from communitree_shared.contract.strategies import walks
from communitree_shared.errors import IntegrityError
from communitree_workers.query.batches.batch import CutBatch
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.planning.sealed import SealedPlan
from communitree_workers.query.planning.waves import rating_usage
from communitree_workers.query.points.gathering import Gathered, gather_points
from communitree_workers.query.question.loading import load_question, rewriting
from communitree_workers.query.question.question import Question, context_name
from communitree_workers.query.selection.choice import Selected
from communitree_workers.runtime.context import UnitContext


@dataclass(frozen=True)
class Inputs:
    """What was read for a question.

    `sealed`: the plan as it lies in the ledger. `outcomes`: of all batches; the first `earlier` are those of the job
    whose silent reports were read again. `ranks`: of the reports that points cite. `usage`: what has been spent so far,
    by stage. `not_alone`: why a conversation could not be made one question. What becomes of each point is marked in
    `gathered` on the way to the answer.
    """

    question: Question
    selected: Selected
    sealed: Mapping[str, Any]
    outcomes: Sequence[BatchOutcome]
    earlier: int
    ranks: Mapping[int, float]
    gathered: Gathered
    usage: Mapping[str, Usage]
    not_alone: str = ""

    @property
    def context_name(self) -> str:
        """Return how the answer names what it cites."""
        return context_name(self.selected.kind, self.question.batch)


def load_inputs(context: UnitContext) -> Inputs:
    """Gather what the batches of a job gave.

    Raises:
        IntegrityError: the plan is gone.
    """
    message = context.message
    text, found = context.services.ledger.gathered(message.tenant, message.job, "map")
    if text is None:
        raise IntegrityError(f"The plan of job {message.job} is gone.", hint="Ask the question again.")
    sealed = orjson.loads(text)
    plan = SealedPlan.from_json(sealed)
    question = load_question(context, plan.models)
    told = [found.get(plan.unit(n), {"ok": False, "cause": "lost"}) for n in range(len(plan.batches))]
    usage = {"map": sum((Usage.model_validate(data["usage"]) for data in told if "usage" in data), Usage())}
    if walks(question.selection.strategy):
        usage["rate"] = rating_usage(context)
    not_alone = ""
    if question.options.history:
        usage["rewrite"], not_alone = rewriting(context, question)
    earlier = _earlier(context, question.options.again) if question.options.again else []
    outcomes = [*earlier, *(_outcome(data, batch) for data, batch in zip(told, plan.batches, strict=True))]
    ranks = _ranks(question, outcomes) if plan.selected.kind == "reports" else {}
    gathered = gather_points(outcomes, ranks, question.language)
    return Inputs(question, plan.selected, sealed, outcomes, len(earlier), ranks, gathered, usage, not_alone)


def _outcome(data: Mapping[str, Any], batch: CutBatch) -> BatchOutcome:
    if data["ok"]:
        return BatchOutcome.from_json(data["batch"])
    return BatchOutcome("failed", batch.ids, cause=str(data.get("message") or data.get("cause") or ""))


def _ranks(question: Question, outcomes: Sequence[BatchOutcome]) -> dict[int, float]:
    node, rank = question.view.node, question.view.rank
    cited = {id for o in outcomes for point in (o.result.points if o.result else ()) for id in point.reports}
    return {id: float(rank[node[id]]) for id in cited if id in node}


def _earlier(context: UnitContext, job: str) -> list[BatchOutcome]:
    """Return the answered batches of the job whose silent reports are read again: its points count here too."""
    found = context.services.store.find_json(context.keys.job(job, "points.json"))
    batches = found["batches"] if found else []
    answered = (o for o in map(BatchOutcome.from_json, batches) if o.status == "answered")
    return [replace(o, ids=[id for id in o.ids if id not in o.unread], unread={}) for o in answered]
