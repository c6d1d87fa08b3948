"""Jobs as a caller sees them: the newest, and one with the progress of its stages."""

from __future__ import annotations

import json
from typing import Any

from communitree.events import past
from communitree.outcome import as_error
from communitree_shared.contract.job_views import JobRow, JobView
from communitree_shared.contract.results import Failures, Usage
from communitree_shared.errors import UsageError
from communitree_shared.ledger.jobs import ENDED, Jobs
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import memory_fault, where_of

_COUNTS = ("level", "total", "done", "failed", "released")


def newest(jobs: Jobs, limit: int) -> list[JobRow]:
    """Return the newest corpus and query jobs, the newest first."""
    found: list[JobRow] = []
    for job in jobs.ledger.jobs(jobs.tenant, limit * 4):
        record = jobs.ledger.record(jobs.tenant, job)
        if record.get("kind") in {"corpus", "query"}:
            row = {"job_id": job, "kind": record["kind"], "status": record.get("state", ""), **_times(record)}
            found.append(JobRow(corpus=record.get("corpus", ""), question=record.get("question", ""), **row))
    return found[:limit]


def asked(jobs: Jobs, question: str, again: str) -> str:
    """Return a question; where it is empty, that of the job whose silent reports are read again.

    Raises:
        UsageError: it is empty. Others as `question_of`.
    """
    question = question.strip() or (question_of(jobs, again) if again else "")
    if not question:
        raise UsageError("The question is empty.", hint='communitree ask CORPUS "What are the main themes?"')
    return question


def question_of(jobs: Jobs, job: str) -> str:
    """Return a query job's question; of a conversation, as it stands alone.

    Raises:
        JobNotFound: no such job of this tenant. UsageError: it is no query, or nothing of it is left.
    """
    jobs.record(job)
    told = jobs.result(job) or jobs.store.find_json(jobs.keys.job(job, "request.json")) or {}
    question = told.get("standalone_question") or told.get("question")
    if not question:
        raise UsageError(
            f"Job {job} has no question to ask again: it is no query, or its answer was removed.",
            hint="Give the question, or another job.",
        )
    return str(question)


def view(jobs: Jobs, job: str) -> JobView:
    """Return a job's state, the progress of its stages and its events.

    Raises:
        JobNotFound: no such job of this tenant.
    """
    record = jobs.record(job)
    ledger, tenant = jobs.ledger, jobs.tenant
    stages = {name: ledger.stage_record(tenant, job, name) for name in ledger.stage_names(tenant, job)}
    progress = [
        {"stage": name, "state": s.get("state", ""), **{k: int(s[k]) for k in _COUNTS if s.get(k, "").isdigit()}}
        for name, s in sorted(stages.items(), key=lambda item: (int(item[1].get("opened", 0)), item[0]))
    ]
    state = record.get("state", "")
    failed = state in {"failed", "lost"} or record.get("error")
    result = (jobs.result(job) or {}) if state in ENDED else {}
    told = (result.get("account") or result).get("llm") if state != "done" else None  # a plan's was not spent
    return JobView(
        job_id=job,
        kind="query" if record.get("kind") == "query" else "corpus",
        status=state,
        corpus=record.get("corpus", ""),
        question=str(result.get("question") or record.get("question", "")),
        llm=Usage.model_validate(told) if told else None,
        models=json.loads(record.get("models", "{}")),
        **_times(record),
        progress={"stages": progress},
        failures=_failures(jobs, job, stages, result),
        waits=waits(jobs, job) if state in {"queued", "running"} else None,
        error=as_error(None, record, f"Job {job} is {state}.").as_json() if failed else None,
        events=[event.as_json() for event in past(jobs, job)],
    )


def _failures(jobs: Jobs, job: str, stages: dict[str, dict[str, str]], result: dict[str, Any]) -> list[Failures]:
    """Return a job's failed units by cause: as its result has them, or, while there is none, as the ledger does."""
    if "failures" in result:
        return [Failures.model_validate(group) for group in result["failures"]]
    some = [name for name, stage in stages.items() if stage.get("failed", "0") != "0"]
    found = ((name, jobs.ledger.outcomes(jobs.tenant, job, name)) for name in sorted(some))
    return [group for name, outcomes in found for group in Failures.grouped(name, outcomes)]


def _times(record: dict[str, str]) -> dict[str, float]:
    """Return the times of a job that have come, in unix seconds."""
    return {k: int(record[k]) / 1000 for k in ("created", "started", "ended") if record.get(k, "").isdigit()}


def waits(jobs: Jobs, job: str) -> dict[str, Any] | None:
    """Return message and hint of what an open job waits for just now; None where it waits for nothing."""
    note = jobs.ledger.value(rk.waits(jobs.tenant, job))
    if note:
        found: dict[str, Any] = json.loads(note)
        return found
    # Where Redis itself takes no writes, no worker can leave a note.
    fault = memory_fault(jobs.ledger.redis, where_of(jobs.ledger.redis))
    return {"message": fault, "hint": ""} if fault else None
