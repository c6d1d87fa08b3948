"""What a query answers whose plan or reduce failed."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.results import Account, Answer, Selection
from communitree_shared.errors import InfrastructureError
from communitree_workers.query.answer.account import Header, Reduced, build_answer
from communitree_workers.query.answer.citations import Resolver
from communitree_workers.query.answer.timing import PHASES, seconds
from communitree_workers.query.reduce.inputs import load_inputs
from communitree_workers.runtime.context import UnitContext

log = logging.getLogger(__name__)


def failed_answer(context: UnitContext, why: dict[str, str]) -> Answer:
    """Return the answer of a query whose plan or reduce failed: never an empty success."""
    request: QueryRequest
    request, options = context.query_request()
    if context.services.ledger.gathered(context.message.tenant, context.message.job, "map")[0] is not None:
        try:
            return _without_text(context, why)
        except (InfrastructureError, RedisError):
            raise
        except Exception:  # what made the reduce fail may do so here: the job must end all the same
            log.exception("the points of %s cannot be told with its failure", context.message.job)
    account = Account(selection=Selection(strategy=options.selection.strategy), warnings=[why["message"]])
    return Answer(
        job_id=context.message.job, status="failed", question=request.question, answer=why["message"],
        corpus=request.corpus, version=request.version, account=account,
    )  # fmt: skip


def _without_text(context: UnitContext, why: dict[str, str]) -> Answer:
    inputs = load_inputs(context)
    question, request, options = inputs.question, inputs.question.request, inputs.question.options
    record, stages = context.services.ledger.records(context.message.tenant, context.message.job, PHASES)
    header = Header(
        context.message.job, request.question, request.corpus, request.version,
        standalone_question=question.text if options.history else "", usage=inputs.usage,
        seconds=seconds(record, stages), warnings=[why["message"]], again=options.again, earlier=inputs.earlier,
    )  # fmt: skip
    return build_answer(
        header, inputs.selected, inputs.outcomes, inputs.gathered, Reduced(cause=why["message"]),
        Resolver(question.view), language=question.language, context=inputs.context_name,
    )  # fmt: skip
