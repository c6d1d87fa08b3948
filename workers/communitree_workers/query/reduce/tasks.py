"""From points to the answer: read `reduce`, the last task of a question, from top to bottom."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import orjson

from communitree_shared.contract.results import Answer, QuerySettings, Usage
from communitree_shared.contract.tables import COMMUNITY_REPORTS, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_shared.errors import CommunitreeError
from communitree_shared.ledger.entry import models_text, question_digest
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.query.answer.account import Header, Reduced, build_answer, needs_reduce, status_of
from communitree_workers.query.answer.citations import Resolver
from communitree_workers.query.answer.notes import audit_notes, word_notes
from communitree_workers.query.answer.result import write_once
from communitree_workers.query.answer.sources import FindingSources
from communitree_workers.query.answer.timing import PHASES, Stages, seconds
from communitree_workers.query.batches.cutting import stands, unit_evidence
from communitree_workers.query.reduce.inputs import Inputs, load_inputs
from communitree_workers.query.reduce.writer import Writer
from communitree_workers.query.wording.causes import cause_in
from communitree_workers.query.wording.phrases import say
from communitree_workers.runtime.context import Outcome, UnitContext

SOURCE_TABLES = (COMMUNITY_REPORTS, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS)


async def reduce(context: UnitContext) -> Outcome:
    """Put the points together, check the citations, and write the answer."""
    inputs, writer = await context.to_thread(_begun, context)
    # Stored while the model writes: behind it there is only the answer itself to store.
    kept = asyncio.get_running_loop().run_in_executor(None, _keep, context, inputs)
    kept.add_done_callback(lambda done: done.cancelled() or done.exception())  # read below, if we come so far
    reduced, usage = Reduced(), inputs.usage
    if writer is not None:
        try:
            reduced = await writer.write()
        except CommunitreeError as error:
            if error.retryable or error.code == "cancelled":
                raise
            reduced = replace(await context.to_thread(writer.by_hand), cause=error.message)
        usage = writer.usage
    record, stages = await kept
    built = await context.to_thread(_built, context, inputs, reduced, usage, record, stages)
    question = inputs.question
    fallback = inputs.not_alone or reduced.unrated or record.get("other_models")
    digest = "" if fallback else question_digest(question.request, models_text(question.models))
    if writer is not None:
        await writer.told(built)  # all pieces stand before the job's end
    await context.to_thread(write_once, context, record, built, question.options, digest)
    return Outcome()


def _begun(context: UnitContext) -> tuple[Inputs, Writer | None]:
    """Gather the points and, where there is something to write, plan that: one turn of a thread for both."""
    inputs = load_inputs(context)
    context.has_model("reduce")
    return inputs, Writer(context, inputs) if needs_reduce(inputs.outcomes, inputs.gathered) else None


def _keep(context: UnitContext, inputs: Inputs) -> tuple[dict[str, str], Stages]:
    """Store what was planned and what each batch gave; returns the records of the job and of its stages."""
    services, message = context.services, context.message
    points = {"plan": inputs.sealed, "batches": [o.to_json() for o in inputs.outcomes]}
    services.store.put(context.keys.job(message.job, "points.json"), orjson.dumps(points))
    return services.ledger.records(message.tenant, message.job, PHASES)


def _built(
    context: UnitContext, inputs: Inputs, reduced: Reduced, usage: Mapping[str, Usage], record: dict[str, str],
    stages: Stages,
) -> Answer:  # fmt: skip
    """Return the answer with its account."""
    question, request, options = inputs.question, inputs.question.request, inputs.question.options
    stages_used = ("map", "rate", "reduce") if usage.get("rate", Usage()).calls else ("map", "reduce")
    header = Header(
        context.message.job, request.question, request.corpus, request.version,
        standalone_question=question.text if options.history else "",
        usage=usage,
        warnings=[*_differences(inputs, record), *_notes(context, inputs)],
        again=options.again,
        earlier=inputs.earlier,
        seconds=seconds(record, stages),
        settings=QuerySettings(models={k: question.models[k] for k in stages_used}, seed=options.seed),
    )  # fmt: skip
    sources = _sources(context, inputs)
    read = sources.evidence if sources else partial(unit_evidence, context, question)
    return build_answer(
        header, inputs.selected, inputs.outcomes, inputs.gathered, reduced,
        Resolver(question.view, sources, read), language=question.language, context=inputs.context_name,
    )  # fmt: skip


def _differences(inputs: Inputs, record: Mapping[str, str]) -> list[str]:
    """Return in what the answer was made otherwise than it was to be."""
    language, said = inputs.question.language, []
    if inputs.not_alone:
        said.append(say("warn.rewrite", language, cause=cause_in(language, inputs.not_alone)))
    if record.get("other_models"):
        said.append(say("warn.models", language, models=record["other_models"]))
    return said


def _notes(context: UnitContext, inputs: Inputs) -> list[str]:
    """Return what the account says of a sample of pruned communities, and of words that the built-in model lacks."""
    question, selected, gathered = inputs.question, inputs.selected, inputs.gathered
    said = audit_notes(selected, gathered.points, question.language)
    if question.models["map"] == EXTRACTIVE and status_of(inputs.outcomes) in ("answered", "no_data"):
        found = [gathered.points[i].text for i in gathered.order]
        held = partial(stands, context, question, selected.kind)
        said += word_notes(question.words, question.view.lexicon, found, held, question.language, kind=selected.kind)
    return said


def _sources(context: UnitContext, inputs: Inputs) -> FindingSources | None:
    """Return what leads from a citing sentence to its text; made once for a version and process."""
    if inputs.selected.kind == "sources":
        return None
    corpus, version = inputs.question.request.corpus, inputs.question.request.version

    def make() -> tuple[FindingSources, int]:
        tables = context.read(corpus, version, *SOURCE_TABLES)
        return FindingSources(tables), 2 * sum(table.nbytes for table in tables.values())

    found: FindingSources = context.services.value(context.keys.version(corpus, version) + "#sources", make)
    return found
