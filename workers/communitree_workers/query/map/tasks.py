"""From one batch to points: each unit of the map reads a batch by itself, so that one that fails costs no other."""

from __future__ import annotations

from dataclasses import replace

from communitree_shared.contract.results import Usage
from communitree_shared.errors import CommunitreeError
from communitree_shared.objects.keys import encode_name
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.builtin.replies import map_reply
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.map.reader import Reader
from communitree_workers.query.map.reply import parse_points
from communitree_workers.query.question.loading import prepared_question
from communitree_workers.runtime.context import Outcome, UnitContext, failed


async def map_batch(context: UnitContext) -> Outcome:
    """Read one batch: points with scores and citations."""
    question = await prepared_question(context)
    corpus, settings = question.request.corpus, context.services.settings
    batch = await _batch(context, context.keys.batch(corpus, context.args["batch"]))
    if context.args["model"] == EXTRACTIVE:
        reply = map_reply(batch, question.text, question.options.answer, question.view.lexicon)
        result = parse_points(reply, batch)
        outcome = BatchOutcome("answered", batch.reports, result)
        return Outcome(data={"batch": outcome.to_json()}, event={"points": len(result.points)})
    reader = Reader(context, question)
    if reader.model != context.args["model"]:
        await context.in_ledger(context.has_model, "map")
    try:
        found, hit = await context.services.calls.cached(
            reader.key(context.args["batch"]), settings.map_cache_ttl, lambda: reader.fresh(batch),
            tenant=f"{context.message.tenant}:{encode_name(corpus)}",
            enabled=question.options.cache and reader.may_cache, context=reader.call,
        )  # fmt: skip
    except CommunitreeError as error:
        return failed(error, reader.call.spent)
    found = found or reader.outcome  # one that is not kept
    outcome = replace(BatchOutcome.from_json(found["batch"]), cached=hit)
    usage = Usage(cached=found["calls"]) if hit else reader.call.spent
    points = len(outcome.result.points) if outcome.result else 0
    return Outcome(
        data={"batch": outcome.to_json(), "usage": usage.model_dump()}, event={"points": points, "cached": int(hit)}
    )


async def _batch(context: UnitContext, key: str) -> Batch:
    """Return a batch, parsed once a process."""
    known: Batch | None = context.services.parsed.peek(f"{key}#batch")
    if known is not None:
        return known
    data = await context.load(key)
    batch: Batch = context.services.value(f"{key}#batch", lambda: (Batch.from_bytes(data), 2 * len(data)))
    return batch
