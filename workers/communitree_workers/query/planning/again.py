"""`ask --again JOB`: the silent reports of an earlier job as a selection, to be read in smaller batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from communitree_shared.contract.again import silent_of
from communitree_shared.contract.results import Coverage
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Selected, describe
from communitree_workers.query.wording.phrases import say
from communitree_workers.runtime.context import UnitContext

#: Silent reports are read again in batches of half the size, but not below this many tokens.
SMALLEST_BATCH = 5_000


def silent(context: UnitContext, question: Question) -> tuple[Selected, Question]:
    """Return the silent reports of the job `options.again`, and the question with options that cut smaller batches.

    Raises:
        UsageError: as `silent_of`.
    """
    request, options, view = question.request, question.options, question.view
    found: Mapping[str, Any] = context.services.store.find_json(context.keys.job(options.again, "result.json")) or {}
    ids = silent_of(options.again, found, request.corpus, request.version)
    nodes = np.array(sorted(view.node[c] for c in ids if c in view.node), dtype=np.int64)
    choice = Choice(nodes, say("why.again", question.language, count=len(nodes), job=options.again), finest=False)
    # Told as what that job was: whatever it read was good enough then.
    as_then = {"strategy": found["account"]["selection"]["strategy"], "min_community_rank": 0.0}
    selected = describe(question.selecting(question.selection.model_copy(update=as_then)), choice)
    # Its points count, too.
    selected = replace(selected, coverage=Coverage.model_validate(found["account"]["coverage"]))
    size = max(SMALLEST_BATCH, options.batch.max_context_tokens // 2)
    batch = options.batch.model_copy(update={"max_context_tokens": min(options.batch.max_context_tokens, size)})
    return selected, question.under(options.model_copy(update={"batch": batch}))
