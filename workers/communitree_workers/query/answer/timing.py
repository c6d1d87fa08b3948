"""Wall seconds of a query's phases, from the ledger's records."""

from __future__ import annotations

from collections.abc import Mapping

from communitree_shared import clock
from communitree_shared.contract.results import QuerySeconds

#: The stages that are phases of every query.
PHASES = ("plan", "map", "reduce")

#: Records of stages, by name; an empty one where there is no such stage.
Stages = Mapping[str, Mapping[str, str]]


def seconds(record: Mapping[str, str], stages: Stages) -> QuerySeconds:
    """Return the wall seconds of a query's phases until now, from the records of its job and of its stages."""
    now = clock.now() * 1000
    created = float(record.get("created", now))

    def span(stage: str) -> float:
        found = stages.get(stage, {})
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
