"""The question of a job, loaded: its request, and where it came with a conversation, the question made of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from communitree_shared.contract.results import Usage
from communitree_workers.query.question.question import Question
from communitree_workers.query.view.stored import load_view
from communitree_workers.runtime.context import UnitContext

#: Where a question lies that was rewritten to stand alone, in the job's folder.
REWRITTEN = "question.json"


def load_question(context: UnitContext, models: Mapping[str, str] | None = None) -> Question:
    """Return the question of a job, once it stands alone; `models`: those that the stage knows."""
    request, options = context.query_request()
    text = request.question
    if options.history:
        text = str(json.loads(context.services.object(context.keys.job(context.message.job, REWRITTEN)))["question"])
    view = partial(load_view, context, request.corpus, request.version)
    return Question(request, options, text, view, models or {})


async def prepared_question(context: UnitContext) -> Question:
    """Return the question of a unit that waits for a model, without holding up the loop."""
    await context.load(context.keys.job(context.message.job, "request.json"))
    # A conversation's question lies in the object store; any other is at hand.
    conversation = bool(context.query_request()[1].history)
    return await context.to_thread(load_question, context) if conversation else load_question(context)


def rewriting(context: UnitContext, question: Question) -> tuple[Usage, str]:
    """Return what making one question of a conversation has used, and why it failed ("": it did not)."""
    if not question.options.history:
        return Usage(), ""
    told = json.loads(context.services.object(context.keys.job(context.message.job, REWRITTEN)))
    return Usage.model_validate(told["usage"]), str(told.get("why", ""))
