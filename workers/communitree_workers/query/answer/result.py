"""The one place where an answer is written: once, whoever else tries."""

from __future__ import annotations

import orjson

from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Answer
from communitree_shared.redis_server import rediskeys as rk
from communitree_workers.runtime.context import UnitContext


def write_once(
    context: UnitContext, record: dict[str, str], answer: Answer, options: QueryOptions, digest: str
) -> None:
    """Write an answer unless one is there, end the job, and remember the answer of an equal question.

    `digest`: of the question and the models that have answered it; "" where the answer is not to be given again.
    """
    services, message = context.services, context.message
    key = context.keys.job(message.job, "result.json")
    data = orjson.dumps(answer.model_dump())
    if not services.store.put_new(key, data):
        data = services.store.get(key)
        answer = Answer.model_validate_json(data)
    settings = services.settings
    whole = answer.status in {"answered", "no_data"} and not _cut_short(answer)
    cacheable = options.cache and whole and digest and record.get("digest")
    cached = rk.answer(message.tenant, digest) if cacheable else ""
    if cached:  # before the end is told: who asks the same at once finds it
        services.ledger.keep_answer(cached, message.job, min(settings.answer_cache_ttl, settings.job_ttl))
    if not context.finish(answer.status, {"result": key}, result=data) and cached:
        services.ledger.drop_answer(cached)  # it was cancelled just now


def _cut_short(answer: Answer) -> bool:
    """Say whether a walk had to leave ratings out for want of time or of replies: another day it would not."""
    unrated = answer.account.selection.budget.get("unrated_because", {})
    return not unrated.keys().isdisjoint(("deadline", "failed"))
