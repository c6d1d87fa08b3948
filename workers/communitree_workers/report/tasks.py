"""The report stage's tasks: one level at a time, the deepest first.

A level's evidence is built in one step when the level below has ended, packed into one object, and each report
is a unit that reads its part of it. A unit's output is its own cache: it lies at the hash of what it was made from.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from communitree_shared.contract.messages import CorpusRequest, Unit
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.results import Usage
from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.errors import CommunitreeError
from communitree_shared.ledger import Stage, Step
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.model.chat import CallContext, ChatRequest, CutReply, Reply, WholeReply
from communitree_workers.model.client import ModelClient
from communitree_workers.report.evidence import EvidenceBuilder, prompt
from communitree_workers.report.evidence.rows import count_rows
from communitree_workers.report.records import ChildReport, Evidence, Report
from communitree_workers.report.table import adopt_reports, attach
from communitree_workers.report.writing import extractive
from communitree_workers.report.writing import reply as parse
from communitree_workers.runtime.context import Outcome, UnitContext, failed
from communitree_workers.runtime.runner import Handler
from communitree_workers.tables import io
from communitree_workers.tables.handover import Extraction

#: A level's reports by a model are spread over at least so many messages before one carries several of them.
_MESSAGES = 64

#: Units of this kind are reports that were cut.
PART = "report_part"

PUBLISH = Step("publish", "communitree.corpus.publish.v1")
PLAN = Step("plan", "communitree.corpus.plan.v1")
TABLES = (DOCUMENTS, TEXT_UNITS, ENTITIES, RELATIONSHIPS, COVARIATES, COMMUNITIES)


def level_step(level: int) -> Step:
    """Return the step that builds a level's evidence; below level 0 it is publishing."""
    return Step(f"level-{level}", "communitree.corpus.level.v1", {"level": level}) if level >= 0 else PUBLISH


def rows(context: UnitContext) -> Outcome:
    """Count the tokens of every row, once; keep the reports that came with the communities."""
    request, options = context.corpus_request()
    keys, store = context.keys, context.services.store
    found = Extraction.load(store, keys, request)
    made = context.read(request.corpus, request.version, *TABLES, made_by="cluster")
    tables = count_rows(made, options.read.encoding_model)
    language = options.report.language or found.language
    if found.kept:
        kept = store.find(keys.build(request.corpus, request.version, "kept_reports.parquet"))
        reports = adopt_reports(
            tables[COMMUNITIES],
            io.from_bytes(kept) if kept else None,
            tables,
            options.report,
            options.read.encoding_model,
            language,
        )
        tables = {**tables, COMMUNITY_REPORTS: reports}
    context.write(request.corpus, request.version, tables)
    levels = tables[COMMUNITIES]["level"].to_pylist()
    follows = PUBLISH if found.kept else level_step(max(levels, default=-1))
    context.step(PLAN if options.plan_only else follows)
    return Outcome(event={"levels": max(levels, default=-1) + 1})


def level(context: UnitContext) -> Outcome:
    """Build the evidence of a level from rows and the reports of the level below, and seal its reports."""
    request, options = context.corpus_request()
    services, keys = context.services, context.keys
    number = int(context.args["level"])
    children = gather(context, request, options, number + 1)
    tables = context.read(request.corpus, request.version, *TABLES)
    language = options.report.language or Extraction.load(services.store, keys, request).language
    builder = EvidenceBuilder(tables, options.report, options.read.encoding_model, language, options.prompts)
    model = json.loads(services.ledger.record(context.message.tenant, context.message.job).get("models", "{}"))
    name = model.get("report", EXTRACTIVE)
    below = {c: ChildReport.of(r) for c, r in children.items()}
    found = builder.build(number, below)
    folder = keys.units(request.corpus, "report")
    units = {evidence.community: _unit(context, evidence, name) for evidence in found}
    known = services.store.present(folder, units.values())
    kept: set[int] = set()
    if name != EXTRACTIVE and holds_earlier(context, request, options):
        missing = {e.community for e in found if e.needs_model and units[e.community] not in known}
        earlier = {e.community: e for e in builder.earlier().build(number, below, missing)} if missing else {}
        ids = {community: _unit(context, evidence, name) for community, evidence in earlier.items()}
        there = services.store.present(folder, ids.values())
        kept = {community for community, unit in ids.items() if unit in there}
        known |= there
        found = [earlier[e.community] if e.community in kept else e for e in found]
    packed, index = _pack(context, found, name)
    for entry in index:
        entry["reused"] = entry["unit"] in known
        entry["earlier"] = entry["community"] in kept
    services.store.put(keys.build(request.corpus, request.version, f"evidence/level-{number}.bin"), packed)
    services.store.put_json(keys.build(request.corpus, request.version, f"reports/level-{number}.json"), index)
    stage = Stage(
        f"report-{number}", "communitree.corpus.report.v1", level_step(number - 1), kind="report", level=number,
        window=services.settings.window,
    )  # fmt: skip
    common = {"corpus": request.corpus, "version": request.version, "level": number, "language": language}
    by_model: list[Unit] = []
    by_hand: list[Unit] = []
    seen: set[str] = set()
    for entry in index:
        if entry["reused"] or entry["unit"] in seen:
            continue
        seen.add(entry["unit"])
        place = {"offset": entry["offset"], "length": entry["length"], "model": entry["model"]}
        unit = Unit(id=entry["unit"], args={**common, **place})
        (by_model if entry["model"] != EXTRACTIVE else by_hand).append(unit)
    together = max(1, min(services.settings.reports_per_message, len(by_model) // _MESSAGES))
    messages = context.messages(stage, by_model, local=False, per_message=together)
    messages += context.messages(stage, by_hand, local=True, per_message=services.settings.local_units_per_message)
    context.open(stage, messages)
    return Outcome(event={"level": number, "reports": len(index), "reused": len(index) - len(by_model) - len(by_hand)})


def unit_id(tenant: str, writer: str, evidence: Evidence) -> str:
    """Return the id of a report's unit: a hash of who writes it from what."""
    return hashlib.sha256(f"{tenant}\n{writer}\n{evidence.hash}".encode()).hexdigest()[:40]


def _unit(context: UnitContext, evidence: Evidence, model: str) -> str:
    return unit_id(context.message.tenant, model if evidence.needs_model else EXTRACTIVE, evidence)


def holds_earlier(context: UnitContext, request: CorpusRequest, options: IndexOptions) -> bool:
    """Say whether the published version may hold reports by an earlier built-in prompt, and they are to be kept."""
    store, keys = context.services.store, context.keys
    current = store.find_json(keys.current(request.corpus))
    manifest = store.find_json(keys.manifest(request.corpus, str(current["version"]))) if current else None
    return bool(manifest and manifest.get("earlier_reports", 1) and not options.rewrite_reports)


def _pack(context: UnitContext, found: list[Evidence], model: str) -> tuple[bytes, list[dict[str, Any]]]:
    parts, index, offset = [], [], 0
    for evidence in found:
        data = evidence.to_json()
        writer = model if evidence.needs_model else EXTRACTIVE
        unit = _unit(context, evidence, model)
        index.append({
            "community": evidence.community, "unit": unit, "offset": offset, "length": len(data), "model": writer,
            "tokens": evidence.prompt_tokens,
        })  # fmt: skip
        parts.append(data)
        offset += len(data)
    return b"".join(parts), index


async def write(context: UnitContext) -> Outcome:
    """Write one report, by the job's model or by hand."""
    args, keys = context.args, context.keys
    key = keys.unit(args["corpus"], "report", context.unit.id)
    store = context.services.store
    event: dict[str, Any] = {"level": args["level"]}
    # A part lies apart from what is whole, so that the next index asks for it again.
    part_key = keys.unit(args["corpus"], PART, context.unit.id)
    if context.attempt > 1 and any([await context.to_thread(store.exists, k) for k in (key, part_key)]):
        return Outcome(event={**event, "reused": 1})
    packed = keys.build(args["corpus"], args["version"], f"evidence/level-{args['level']}.bin")
    data = await context.to_thread(context.services.part, packed, args["offset"], args["length"])
    evidence = Evidence.from_json(data)
    if args["model"] == EXTRACTIVE:
        report = extractive.write_report(evidence, args["language"])
        await context.save(key, report.to_json())
        return Outcome(event={**event, "title": report.title})
    _, options = await context.to_thread(context.corpus_request)
    call = context.call(usd=options.budget_usd, tokens=options.budget_tokens)
    try:
        report = await ask_report(context.services.models, evidence, options, args["model"], call)
    except CommunitreeError as error:
        return failed(error, call.spent, **event)
    await context.save(part_key if report.cause else key, report.to_json())
    event |= {"title": report.title, "tokens": call.spent.prompt_tokens + call.spent.output_tokens}
    return Outcome(data={"usage": call.spent.model_dump(), "cut": report.cause}, event=event)


async def ask_report(
    models: ModelClient, evidence: Evidence, options: IndexOptions, model: str, call: CallContext
) -> Report:
    """Return the report that a model writes; its cause says that it is cut although its rest was asked for.

    Raises:
        OutputCut: nothing of a cut reply is whole. BadInput: it holds no report. ModelError: the call failed.
    """
    request = ChatRequest(
        messages=prompt.messages(evidence, options.report, options.prompts),
        schema=prompt.schema(),
        json=True,
        temperature=0.0,
        prompt_tokens=evidence.prompt_tokens,
    )
    reply = await models.complete("report", request, call)
    if isinstance(reply, CutReply):
        reply = await models.go_on("report", request, reply, call)
    return _report(reply, evidence, model)


def _report(reply: Reply, evidence: Evidence, model: str) -> Report:
    """Return the report of a reply; of a cut one, what is whole of it, with a cause that says so.

    Raises:
        OutputCut: nothing of a cut reply is whole. BadInput: there is no summary.
    """
    if isinstance(reply, WholeReply):
        return parse.parse_report(reply.value if reply.value is not None else reply.text, evidence, model)
    report = parse.parse_part(reply.held, evidence, model)
    if report is None:
        reply.whole()
    found = len(report.findings)
    return replace(report, cause=f"{found} finding{'' if found == 1 else 's'}, cut: {reply.why}")


def gather(context: UnitContext, request: CorpusRequest, options: IndexOptions, number: int) -> dict[int, Report]:
    """Return the reports of a level by community. A missing one is written by hand and says why.

    Fallbacks lie apart from what units made, so that a later job tries those reports, and only those, again.
    """
    services, keys = context.services, context.keys
    index = services.store.find_json(keys.build(request.corpus, request.version, f"reports/level-{number}.json"))
    if not index:
        return {}
    outcomes = services.ledger.outcomes(context.message.tenant, context.message.job, f"report-{number}")
    packed = services.store.get(keys.build(request.corpus, request.version, f"evidence/level-{number}.bin"))

    def one(entry: dict[str, Any]) -> Report:
        evidence = Evidence.from_json(packed[entry["offset"] : entry["offset"] + entry["length"]])
        for kind in ("report", PART):
            data = services.store.find(keys.unit(request.corpus, kind, entry["unit"]))
            if data is not None:
                return attach(Report.from_json(data), evidence)
        outcome = outcomes.get(entry["unit"], {})
        cause = str(outcome.get("message") or outcome.get("cause") or "lost")
        report = extractive.write_report(evidence, evidence.language, cause=cause)
        services.store.put(keys.unit(request.corpus, "fallback", entry["unit"]), report.to_json())
        return report

    with ThreadPoolExecutor(16) as pool:
        reports = list(pool.map(one, index))
    return {report.community: report for report in reports}


def usage_of(outcomes: dict[str, dict[str, Any]]) -> Usage:
    """Return the sum of the units' usage."""
    return sum((Usage.model_validate(o["usage"]) for o in outcomes.values() if "usage" in o), Usage())


HANDLERS: dict[str, Handler] = {
    "communitree.corpus.rows.v1": rows,
    "communitree.corpus.level.v1": level,
    "communitree.corpus.report.v1": write,
}
