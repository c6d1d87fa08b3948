"""End a job whose critical step failed: the result says which step, why, and what was there by then."""

from __future__ import annotations

from typing import Any

from communitree_shared.contract.results import IndexResult
from communitree_workers.publish.tasks import end
from communitree_workers.query.reduce.failure import failed_answer
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.runner import Handler


def failure(context: UnitContext) -> dict[str, Any]:
    """Return the first failed critical stage: its name, code, message and hint."""
    ledger, message = context.services.ledger, context.message
    for name in ledger.stage_names(message.tenant, message.job):
        record = ledger.stage_record(message.tenant, message.job, name)
        if record.get("critical") != "1" or record.get("failed", "0") == "0":
            continue
        for outcome in ledger.outcomes(message.tenant, message.job, name).values():
            if not outcome["ok"]:
                cause = outcome.get("cause", "failed")
                return {
                    "stage": name,
                    "code": cause,
                    "message": outcome.get("message") or f"The step {name} ended as {cause}.",
                    "hint": outcome.get("hint", ""),
                }
    return {"stage": "", "code": "failed", "message": "The job failed.", "hint": ""}


def finish(context: UnitContext) -> Outcome:
    """Write the result of a failed job and end it."""
    record = context.services.ledger.record(context.message.tenant, context.message.job)
    why = failure(context)
    if record.get("kind") == "query":
        answer = failed_answer(context, why)
        error = {"error": why} if answer.status == "failed" else {}
        end(context, answer.status, {**answer.model_dump(), **error}, why["message"])
    elif record.get("kind") == "corpus":
        result = IndexResult(
            job_id=context.message.job, status="failed", corpus=record.get("corpus", ""), warnings=[why["message"]]
        )
        end(context, "failed", {**result.model_dump(), "error": why}, why["message"])
    else:
        end(context, "failed", {"error": why}, why["message"])
    return Outcome()


HANDLERS: dict[str, Handler] = {"communitree.job.finish.v1": finish}
