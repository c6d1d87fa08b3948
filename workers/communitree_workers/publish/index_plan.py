"""The plan of a corpus job: everything up to the evidence is made, no model is called, nothing is published.

Evidence of communities whose rows all fit is that of the real job, so that reports which are known already are found.
Above them a prompt depends on reports that do not exist yet, and is counted as full.
"""

from __future__ import annotations

import json

from communitree_shared.contract.index_plan import IndexPlan, LevelPlan
from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.results import IndexCounts, LlmAccount, Usage
from communitree_shared.contract.tables import COMMUNITIES, COVARIATES, DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_shared.settings import EXTRACTIVE, ModelStage
from communitree_workers.model.endpoints.prices import usd
from communitree_workers.publish.replaced import replaced
from communitree_workers.publish.seconds import index_seconds
from communitree_workers.publish.tasks import end, notes_of
from communitree_workers.report.evidence import EvidenceBuilder
from communitree_workers.report.tasks import TABLES, holds_earlier, unit_id
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.runner import Handler
from communitree_workers.tables import io
from communitree_workers.tables.handover import Extraction, TreeStats

#: Tokens of a report as a model replies it: the mean of 122 reports by a large model.
REPORT_REPLY = 1100


def plan(context: UnitContext) -> Outcome:
    """Say what the index would make and cost, and remove what was made to find that out."""
    request, options = context.corpus_request()
    services, keys, message = context.services, context.keys, context.message
    known = Extraction.load(services.store, keys, request)
    tree = TreeStats.load(services.store, keys, request)
    tables = context.read(request.corpus, request.version, *TABLES)
    levels = _imported(tables) if known.kept else _levels(context, request, options, tables, known.language)
    current = services.store.find_json(keys.current(request.corpus))
    made = IndexPlan(
        job_id=message.job,
        corpus=request.corpus,
        graph="given" if options.graph else "built-in" if known.model == EXTRACTIVE else "stand-in",
        counts=_counts(tables),
        levels={str(level): counts for level, counts in sorted(levels.items())},
        llm=_account(context, levels, known.extraction),
        seconds=index_seconds(services.ledger, message.tenant, message.job).total,
        changes=[*known.changes, *replaced(context, request.corpus, current, tables[DOCUMENTS])],
        notes=notes_of(request, known, tree),
        warnings=[*known.warnings, *tree.warnings],
    )
    end(context, made.status, made.model_dump())
    services.store.delete_all(list(services.store.keys(keys.version(request.corpus, request.version))))
    return Outcome()


def _levels(
    context: UnitContext, request: CorpusRequest, options: IndexOptions, tables: io.Tables, spoken: str
) -> dict[int, LevelPlan]:
    services, message = context.services, context.message
    language = options.report.language or spoken
    builder = EvidenceBuilder(tables, options.report, options.read.encoding_model, language, options.prompts)
    models = json.loads(services.ledger.record(message.tenant, message.job).get("models", "{}"))
    writer = models.get("report", EXTRACTIVE)
    folder = context.keys.units(request.corpus, "report")
    there = {key.removeprefix(folder) for key in services.store.keys(folder)}
    earlier = builder.earlier() if there and holds_earlier(context, request, options) else None
    found = {}
    for level, counts in builder.estimate().items():
        planned = LevelPlan(**counts)
        whole = [evidence for evidence in builder.whole(level) if evidence.needs_model] if there else []
        known = {e.community for e in whole if unit_id(message.tenant, writer, e) in there}
        if earlier is not None:
            others = earlier.whole(level, {e.community for e in whole} - known)
            known |= {e.community for e in others if unit_id(message.tenant, writer, e) in there}
        for evidence in whole:
            if evidence.community in known:
                planned.reused += 1
                planned.calls -= 1
                planned.prompt_tokens -= evidence.prompt_tokens
        found[level] = planned if writer != EXTRACTIVE else LevelPlan(communities=planned.communities)
    return found


def _imported(tables: io.Tables) -> dict[int, LevelPlan]:
    """Return the levels of a tree that came with its reports: missing ones are written by hand."""
    levels: dict[int, LevelPlan] = {}
    for level in tables[COMMUNITIES]["level"].to_pylist():
        levels.setdefault(level, LevelPlan()).communities += 1
    return levels


def _counts(tables: io.Tables) -> IndexCounts:
    communities = tables[COMMUNITIES].num_rows
    return IndexCounts(
        documents=tables[DOCUMENTS].num_rows,
        text_units=tables[TEXT_UNITS].num_rows,
        entities=tables[ENTITIES].num_rows,
        relationships=tables[RELATIONSHIPS].num_rows,
        claims=tables[COVARIATES].num_rows,
        communities=communities,
        reports=communities,
    )


def _account(context: UnitContext, levels: dict[int, LevelPlan], extraction: Usage | None) -> LlmAccount:
    calls = sum(level.calls for level in levels.values())
    usages: dict[ModelStage, Usage] = {
        "extract": extraction or Usage(),
        "report": Usage(
            calls=calls,
            prompt_tokens=sum(level.prompt_tokens for level in levels.values()),
            output_tokens=calls * REPORT_REPLY,
        ),
    }
    settings = context.services.settings
    return LlmAccount.of(
        {
            stage: usage.model_copy(update={"usd": usd(usage, settings.model(stage)) if usage.calls else 0.0})
            for stage, usage in usages.items()
        }
    )


HANDLERS: dict[str, Handler] = {"communitree.corpus.plan.v1": plan}
