"""Wall seconds of a query's phases, from the ledger's records."""

from __future__ import annotations

from communitree_shared import clock
from communitree_shared.results import QuerySeconds
from communitree_workers.runtime.context import UnitContext


def seconds(context: UnitContext, record: dict[str, str]) -> QuerySeconds:
    """Return the wall seconds of a query's phases until now."""
    ledger, message = context.services.ledger, context.message
    now = clock.now() * 1000
    created = float(record.get("created", now))

    def span(stage: str) -> float:
        found = ledger.stage_record(message.tenant, message.job, stage)
        if "opened" not in found:
            return 0.0
        return round(max(0.0, float(found.get("closed", now)) - float(found["opened"])) / 1000, 3)

    return QuerySeconds(
        queued=round(max(0.0, float(record.get("started", now)) - created) / 1000, 3),
        plan=span("plan"),
        map=span("map"),
        reduce=span("reduce"),
        total=round(max(0.0, now - created) / 1000, 3),
    )
