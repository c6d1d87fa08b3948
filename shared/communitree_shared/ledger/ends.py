"""The ends of jobs that only Redis knows: a server refused, a caller cancelled, so no worker wrote a result.

While that is so the object store still holds the marker of an open job, and after a loss of Redis the job would be
taken up again. So the ledger keeps a list of such ends, and the reconciler writes them when the store takes writes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

from redis.exceptions import RedisError

from communitree_shared import clock
from communitree_shared.contract.results import (
    Account,
    Answer,
    BatchesAccount,
    IndexResult,
    LlmAccount,
    QuerySeconds,
    Selection,
    Usage,
)
from communitree_shared.errors import InfrastructureError
from communitree_shared.languages import is_chinese, language
from communitree_shared.ledger.client import Ledger
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk

log = logging.getLogger(__name__)

#: The outcomes of a stage's ended units, by unit.
Outcomes = Mapping[str, Mapping[str, Any]]

#: So many ends are written in one go, and so many side by side.
MOST, AT_ONCE = 500, 16

#: The reason that a cancelled job's record has, and what a cancelled question's answer says in English and Chinese.
CANCELLED_BY_CALLER = "cancelled by its caller"
_CANCELLED = ("Cancelled before an answer was written.", "在写出答案之前已取消。")


def without_result(
    job: str,
    state: str,
    cause: str,
    record: Mapping[str, str],
    request: Mapping[str, Any],
    stages: Mapping[str, tuple[int, Outcomes]] = MappingProxyType({}),
) -> Answer | IndexResult:
    """Return the result of a job that ended without writing any: its cause as a warning; a question that was
    cancelled says so, in its own language. `stages`: how many units each has, and the outcomes of those that ended:
    what they cost stands in a question's account.
    """
    corpus = str(request.get("corpus") or record.get("corpus", ""))
    if (request.get("kind") or record.get("kind")) != "query":
        return IndexResult.model_validate({"job_id": job, "status": state, "corpus": corpus, "warnings": [cause]})
    strategy = request.get("options", {}).get("selection", {}).get("strategy", "auto")
    question = str(request.get("question", ""))
    wanted = request.get("options", {}).get("answer", {}).get("language") or ""
    chinese = is_chinese(wanted.strip() or language(question))
    answer = _CANCELLED[chinese] if state == "cancelled" else ""
    if cause == CANCELLED_BY_CALLER and chinese:
        cause = "由提问者取消。"
    account = Account(selection=Selection(strategy=strategy), warnings=[cause], **_spent(record, stages))
    return Answer.model_validate(
        {"job_id": job, "status": state, "question": question, "answer": answer, "corpus": corpus,
         "version": str(request.get("version") or record.get("version", "")), "account": account.model_dump()}
    )  # fmt: skip


def _spent(record: Mapping[str, str], stages: Mapping[str, tuple[int, Outcomes]]) -> dict[str, Any]:
    usage: dict[str, Usage] = {}
    for stage, (_, outcomes) in stages.items():
        name = stage.partition("-")[0]  # the waves of a walk are rate-0, rate-1 …
        for outcome in outcomes.values():
            if "usage" in outcome:
                usage[name] = usage.get(name, Usage()) + Usage.model_validate(outcome["usage"])
    total, read = stages.get("map", (0, {}))
    answered = sum(bool(outcome.get("ok")) for outcome in read.values())
    ran = (float(record.get("ended", 0)) - float(record.get("created", 0))) / 1000
    return {
        "batches": BatchesAccount(total=total, answered=answered, failed=total - answered),
        "llm": LlmAccount.of(usage),
        "seconds": QuerySeconds(total=round(max(0.0, ran), 3)),
    }


def error_of(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the error that a job's record carries: code, message, hint, as far as they are known."""
    body: Any = record.get("error") or record.get("reason") or {}
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            body = {"message": body}
    return body if isinstance(body, dict) else {"message": str(body)}


def write_ends(store: Store, ledger: Ledger, prefix: str) -> None:
    """Write the ends that the object store does not know yet, and take away their markers.

    One that the store does not take stays on the list, behind the others: next time these have their turn first.

    Raises:
        InfrastructureError: the store took not all of them.
    """

    def fault(member: str) -> InfrastructureError | None:
        tenant, job = member.split("|")
        try:
            written = _write(store, ledger.record(tenant, job), Keys(tenant, prefix), job)
            if written:
                _follow(ledger, tenant, job, written)
        except InfrastructureError as error:
            ledger.redis.zadd(rk.UNWRITTEN, {member: clock.now() * 1000}, xx=True)
            return error
        except RedisError:
            raise
        except Exception:  # it would be as wrong the next time
            log.exception("the end of job %s of %s cannot be written", job, tenant)
        ledger.redis.zrem(rk.UNWRITTEN, member)
        return None

    members: Any = ledger.redis.zrange(rk.UNWRITTEN, 0, MOST - 1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for some in (members[:1], members[1:]):  # the first one finds out whether the store answers
            faults = [error for error in pool.map(fault, map(str, some)) if error is not None]
            if faults:
                raise faults[0]


def _write(store: Store, record: Mapping[str, str], keys: Keys, job: str) -> str:
    """Write the result of a failed job, unless there is one, and remove its marker.

    A worker may have stored an answer in the moment in which another gave the job up: an answer that is there is the
    job's end, whatever was thought before. Returns its state; "" where the ledger is right. One that comes later finds
    this result, and takes it for its own.
    """
    there = ""
    # One that was cancelled has no result; of one that is gone from the ledger (its corpus was deleted) nothing stays.
    if record.get("state") == "failed":
        request = store.find_json(keys.job(job, "request.json"))
        if request is not None:
            error = error_of(record)
            cause = str(error.get("message") or "The job failed.")
            result = without_result(job, "failed", cause, record, request).model_dump()
            key, body = keys.job(job, "result.json"), json.dumps({**result, "error": error}).encode()
            if not store.put_new(key, body):
                there = str((store.find_json(key) or {}).get("status", ""))
    store.delete(keys.open_job(job))
    return there if there != "failed" else ""


def _follow(ledger: Ledger, tenant: str, job: str, state: str) -> None:
    """Let the ledger's record of an ended job say what its result says."""
    key = rk.job(tenant, job)
    left: Any = ledger.redis.pttl(key)
    if left <= 0:  # gone meanwhile
        return
    pipe = ledger.redis.pipeline()
    pipe.hset(key, "state", state)
    pipe.hdel(key, "error", "reason")
    pipe.pexpire(key, left)
    pipe.execute()
