"""Publish a version: tables checked, manifest written last, `current` swapped in one step."""

from __future__ import annotations

import time
from typing import Any

import orjson

from communitree_shared import crash
from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.results import (
    IndexCounts,
    IndexResult,
    LevelCounts,
    LlmAccount,
    ReportCounts,
)
from communitree_shared.contract.tables import (
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.errors import Cancelled, IntegrityError
from communitree_workers.cluster.checks import check_tree
from communitree_workers.corpus.losses import of_left_out
from communitree_workers.publish.needs import needs
from communitree_workers.publish.replaced import replaced
from communitree_workers.publish.seconds import index_seconds
from communitree_workers.publish.shortfall import StageEnd, worse
from communitree_workers.publish.stage_ends import holes, outcomes_of, stage_ends
from communitree_workers.query.view.building import build_view
from communitree_workers.query.view.stored import VIEW
from communitree_workers.report.records import Report
from communitree_workers.report.table import report_table
from communitree_workers.report.tasks import TABLES, gather, usage_of
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.formats import TABLES_FORMAT
from communitree_workers.runtime.runner import Handler
from communitree_workers.tables import io
from communitree_workers.tables.check import check_tables
from communitree_workers.tables.handover import Extraction, TreeStats


def publish(context: UnitContext) -> Outcome:
    """Make the reports table, check everything, and swap the published version.

    Raises:
        IntegrityError: a table breaks an invariant; the old version stays published.
    """
    request, options = context.corpus_request()
    store, keys = context.services.store, context.keys
    current = store.find_json(keys.current(request.corpus))
    if current and current["version"] == request.version:
        # Whoever tried before us died after the swap: what is left to do is to clear up and to say so.
        published = store.get_json(keys.manifest(request.corpus, request.version))["result"]
        return _published(context, request, published)
    extraction, tree = Extraction.load(store, keys, request), TreeStats.load(store, keys, request)
    tables = context.read(request.corpus, request.version, *TABLES)
    reports: dict[int, Report] = {}
    reused: set[int] = set()
    earlier = 0
    if extraction.kept:
        tables |= context.read(request.corpus, request.version, COMMUNITY_REPORTS)
    else:
        reports, reused, earlier = _all_reports(context, request, options)
        made = report_table(tables[COMMUNITIES], reports, options.read.encoding_model)
        tables[COMMUNITY_REPORTS] = made
        context.write(request.corpus, request.version, {COMMUNITY_REPORTS: made})
    # An imported tree is kept as it is, and GraphRAG's largest-component option leaves out the rest: both state it.
    whole = not extraction.kept and not options.cluster.use_lcc
    overlapping = tree.held_twice.count > 0
    broken = [*check_tables(tables), *check_tree(tables, whole=whole, overlapping=overlapping)]
    if broken:
        raise IntegrityError(
            f"The new version of {request.corpus!r} breaks {len(broken)} invariants and is not published: {broken[0]}",
            hint="; ".join(broken[1:4]),
        )
    gone = replaced(context, request.corpus, current, tables[DOCUMENTS])
    ends = stage_ends(context, request, tables, extraction, reports)
    result = _result(context, request, tables, extraction, tree, reused, gone, ends)
    before = store.find_json(keys.manifest(request.corpus, str(current["version"]))) if current else None
    lacking = worse(ends, options.max_failed, before)
    if lacking and not options.publish_anyway:
        return _not_published(context, result, lacking)
    result.warnings += [f"published anyway, although the version before lacks less of {end.line()}" for end in lacking]
    store.put(keys.artifact(request.corpus, request.version, VIEW), build_view(tables).to_bytes())
    manifest = {
        "version": request.version, "corpus": request.corpus, "created": time.time(), "options": options.model_dump(),
        "settings": request.settings, "earlier_reports": earlier,
        "fallbacks": {end.stage: end.share for end in ends},
        "result": result.model_dump(), "tree": tree.as_json(), "extract": extraction.as_json(but={"units"}),
        "format": TABLES_FORMAT,
    }  # fmt: skip
    store.put_json(keys.needs(request.corpus, request.version), needs(context, request, extraction.units))
    store.put(keys.manifest(request.corpus, request.version), orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS))
    state = context.services.ledger.record(context.message.tenant, context.message.job).get("state", "")
    if state not in {"queued", "running"}:
        raise Cancelled(f"Job {context.message.job} has ended: its version is not published.")
    crash.point("swap.before")
    store.put_json(
        keys.current(request.corpus), {"version": request.version, "corpus": request.corpus, "published": time.time()}
    )
    crash.point("swap.after")
    return _published(context, request, result.model_dump())


def _not_published(context: UnitContext, result: IndexResult, lacking: list[StageEnd]) -> Outcome:
    """End the job as failed: `current` stays, and what its units made is found again by the job that resumes it."""
    message = (
        f"The model did not succeed, so that the version of {result.corpus!r} that is published stays: "
        + "; ".join(stage.line() for stage in lacking)
    )
    error = {
        "code": "model",
        "message": message,
        "hint": f"Put right what failed, then `communitree resume {result.job_id}` goes on with what is there; "
        "--publish-anyway publishes a version as it is.",
    }
    made = result.model_copy(update={"status": "failed", "version": "", "warnings": [message, *result.warnings]})
    end(context, "failed", {**made.model_dump(), "error": error}, message)
    return Outcome()


def _published(context: UnitContext, request: CorpusRequest, result: dict[str, Any]) -> Outcome:
    """Clear away what only the making of the version needed, then end the job: who dies before that tries again."""
    store = context.services.store
    store.delete_all(list(store.keys(context.keys.build(request.corpus, request.version))))
    end(context, str(result["status"]), result)
    return Outcome()


def end(context: UnitContext, status: str, result: dict[str, Any], reason: str = "") -> None:
    """Write a job's result, once, and end it."""
    key, data = context.keys.job(context.message.job, "result.json"), orjson.dumps(result)
    if not context.services.store.put_new(key, data):
        data = context.services.store.get(key)
        status = str(orjson.loads(data).get("status", status))  # the first writer's result counts
    context.finish(status, {"result": key, "reason": reason[:500]}, reason, result=data)


def _all_reports(
    context: UnitContext, request: CorpusRequest, options: IndexOptions
) -> tuple[dict[int, Report], set[int], int]:
    """Return the reports by community, those that were found again, and how many of them an earlier prompt made."""
    reports: dict[int, Report] = {}
    reused: set[int] = set()
    level = earlier = 0
    while found := gather(context, request, options, level):
        reports |= found
        key = context.keys.build(request.corpus, request.version, f"reports/level-{level}.json")
        index = context.services.store.get_json(key)
        reused |= {e["community"] for e in index if e["reused"]}
        earlier += sum(1 for e in index if e.get("earlier"))
        level += 1
    return reports, reused, earlier


def _result(
    context: UnitContext,
    request: CorpusRequest,
    tables: io.Tables,
    extraction: Extraction,
    tree: TreeStats,
    reused: set[int],
    gone: list[str],
    ends: list[StageEnd],
) -> IndexResult:
    services, message = context.services, context.message
    reports = tables[COMMUNITY_REPORTS].select(["community", "level", "n_tokens", "generated_by", "cause"]).to_pylist()
    counts = ReportCounts()
    causes: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for row in reports:
        kind = {"extractive": "extractive", "imported": "imported"}.get(row["generated_by"], "generated")
        kind = "reused" if row["community"] in reused else kind
        setattr(counts, kind, getattr(counts, kind) + 1)
        tokens[str(row["level"])] = tokens.get(str(row["level"]), 0) + row["n_tokens"]
        if row["cause"] and not extraction.kept:
            causes[row["cause"]] = causes.get(row["cause"], 0) + 1
    kinds = {"extract": ("extract", "describe"), "report": ("report",)}
    by_stage = {stage: usage_of(outcomes_of(context, *names)) for stage, names in kinds.items()}
    failures = [group for stage in ends for group in stage.failures] + holes(context, tables, extraction)
    warnings = [*extraction.warnings, *tree.warnings]
    warnings += [f"{n} × {cause}" for cause, n in sorted(causes.items(), key=lambda c: (-c[1], c[0]))]
    if extraction.failed:
        warnings.append(f"{extraction.failed} extraction units failed; their text is held by document entities")
    warnings += [group.line() for group in failures if group.stage != "report"]  # those stand with their reports
    return IndexResult(
        job_id=message.job,
        status="partial" if causes or extraction.failed or extraction.merge.get("holes") else "published",
        corpus=request.corpus,
        version=request.version,
        counts=IndexCounts(
            documents=tables[DOCUMENTS].num_rows,
            text_units=tables[TEXT_UNITS].num_rows,
            entities=tables[ENTITIES].num_rows,
            relationships=tables[RELATIONSHIPS].num_rows,
            claims=tables[COVARIATES].num_rows,
            communities=tables[COMMUNITIES].num_rows,
            reports=len(reports),
        ),
        coverage=tree.coverage,
        levels={
            name: LevelCounts(
                communities=level.communities,
                leaves=level.leaves,
                entities=level.entities,
                tokens=tokens.get(name, 0),
            )
            for name, level in tree.levels.items()
        },
        reports=counts,
        llm=LlmAccount.of(by_stage),
        seconds=index_seconds(services.ledger, message.tenant, message.job),
        changes=[*extraction.changes, *gone],
        notes=notes_of(request, extraction, tree),
        warnings=warnings,
        failures=failures,
        left_out=extraction.left_out,
    )


def notes_of(request: CorpusRequest, extraction: Extraction, tree: TreeStats) -> list[str]:
    """Return what a rule left out (hidden files), and what was done to a graph's tables and its kept tree.

    Notes on documents stand among the warnings.
    """
    graph = [*extraction.notes, *tree.notes] if request.options.get("graph") else []
    return [*of_left_out(request.left_out, by_rule=True), *graph]


HANDLERS: dict[str, Handler] = {"communitree.corpus.publish.v1": publish}
