"""How the stages of a corpus job that ask a model ended, from the ledger and from what they left in `build/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.results import Failures
from communitree_shared.contract.tables import DOCUMENTS, TEXT_UNITS
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.publish.shortfall import StageEnd
from communitree_workers.report.records import Report
from communitree_workers.runtime.context import UnitContext
from communitree_workers.tables import io
from communitree_workers.tables.handover import Extraction

Outcomes = dict[str, dict[str, Any]]


def outcomes_of(context: UnitContext, *kinds: str) -> Outcomes:
    """Return the outcomes of all units of stages of these kinds: `report` is of `report-0`, `report-1` …"""
    ledger, message = context.services.ledger, context.message
    merged: Outcomes = {}
    for name in ledger.stage_names(message.tenant, message.job):
        if name.split("-")[0] in kinds:
            merged |= ledger.outcomes(message.tenant, message.job, name)
    return merged


def stage_ends(
    context: UnitContext,
    request: CorpusRequest,
    tables: io.Tables,
    extraction: Extraction,
    reports: Mapping[int, Report],
) -> list[StageEnd]:
    """Return how `extract`, `describe` and `report` ended, without those that asked no model.

    `reports`: of the new version, by community.
    """
    store, keys = context.services.store, context.keys

    def built(name: str) -> Any:
        return store.find_json(keys.build(request.corpus, request.version, name))

    ends = []
    if extraction.units and extraction.model != EXTRACTIVE:
        outcomes = outcomes_of(context, "extract")
        failed = set(_failed(outcomes))
        places = {unit: row for row, unit in enumerate(extraction.units) if unit in failed}
        names = _text_units(tables, places)
        ends.append(_end("extract", len(extraction.units), outcomes, names, extraction.failed))
        described = {unit for rows in (built("describe.json") or {}).values() for unit in rows.values()}
        if described:
            outcomes = outcomes_of(context, "describe")
            titles = {
                unit: str((built(f"describe/{unit}.json") or {}).get("title", unit)) for unit in _failed(outcomes)
            }
            ends.append(_end("describe", len(described), outcomes, titles, len(titles)))
    written: dict[str, int] = {}
    level = 0
    while index := built(f"reports/level-{level}.json"):
        written |= {entry["unit"]: entry["community"] for entry in index if entry["model"] != EXTRACTIVE}
        level += 1
    if written:
        outcomes = {unit: o for unit, o in outcomes_of(context, "report").items() if unit in written}
        titles = {unit: reports[written[unit]].title for unit in _failed(outcomes)}
        missing = sum(1 for community in written.values() if reports[community].generated_by == EXTRACTIVE)
        ends.append(_end("report", len(written), outcomes, titles, missing))
    return ends


def holes(context: UnitContext, tables: io.Tables, extraction: Extraction) -> list[Failures]:
    """Return the parts of text units that gave nothing in this job although the rest did, by cause."""
    told = {unit: outcome["holes"] for unit, outcome in outcomes_of(context, "extract").items() if "holes" in outcome}
    names = _text_units(tables, {unit: row for row, unit in enumerate(extraction.units) if unit in told})
    parts = {
        f"{names[unit]}, characters {hole['start']}–{hole['end']}": {"ok": False, **hole}
        for unit, found in told.items()
        for hole in found
        if unit in names
    }
    return Failures.grouped("extract", parts)


def _failed(outcomes: Outcomes) -> list[str]:
    return [unit for unit, outcome in outcomes.items() if not outcome["ok"]]


def _end(stage: str, units: int, outcomes: Outcomes, names: Mapping[str, str], missing: int) -> StageEnd:
    succeeded = sum(1 for outcome in outcomes.values() if outcome["ok"])
    return StageEnd(stage, units, succeeded, missing, Failures.grouped(stage, outcomes, names))


def _text_units(tables: io.Tables, places: Mapping[str, int]) -> dict[str, str]:
    """Return a name for each unit: its document's title and the number of its text unit."""
    if not places:
        return {}
    rows: Sequence[Any] = tables[TEXT_UNITS].select(["document_id", "human_readable_id"]).take(
        pa.array(list(places.values()))
    ).to_pylist()  # fmt: skip
    titles = dict(zip(*(tables[DOCUMENTS][name].to_pylist() for name in ("id", "title")), strict=True))
    return {
        unit: f"{titles.get(row['document_id']) or row['document_id']}, text unit {row['human_readable_id']}"
        for unit, row in zip(places, rows, strict=True)
    }
