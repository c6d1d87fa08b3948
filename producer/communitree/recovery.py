"""What did not end well, taken up again: jobs, and units that were given up."""

from __future__ import annotations

from typing import Any

from communitree_shared.contract.messages import DocumentList, LeftOut
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.errors import CorpusNotFound, JobNotFound, UsageError
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.objects.keys import safe_id
from communitree_shared.redis_server import rediskeys as rk

#: So many letters are taken up in one go.
MOST = 10_000

#: States in which nothing is left to do.
_WELL = {"published", "answered", "no_data", "done"}


def resume(jobs: Jobs, job: str) -> str:
    """Take up a job that failed, was cancelled or lost; return the id of the job that does it.

    Raises:
        JobNotFound: no such job. UsageError: it has ended well.
    """
    state = jobs.record(job).get("state", "")
    if state in {"queued", "running"}:
        return job
    if state in _WELL:
        raise UsageError(f"Job {job} is {state}: there is nothing left to do.")
    request = jobs.store.get_json(jobs.keys.job(safe_id(job, "job"), "request.json"))
    if request["kind"] == "corpus":
        options = IndexOptions.stored(request.get("given", request["options"]))
        left_out = [LeftOut.model_validate(entry) for entry in request.get("left_out", [])]
        apart = request.get("document_list")
        documents = DocumentList.model_validate(apart) if apart else request["documents"]
        return jobs.submit_index(request["corpus"], documents, options, left_out=left_out).job
    query = QueryOptions.stored(request["options"])
    return jobs.submit_query(request["corpus"], request["question"], query).job


def dead_letters(jobs: Jobs, limit: int) -> list[dict[str, Any]]:
    """Return the newest units that were given up after too many attempts: job, stage, unit, attempts, why.

    Among them stands what tells of older ones that were dropped: `type` `lost`, `count`, `until`.
    """
    entries: Any = jobs.ledger.redis.xrevrange(rk.dead_letters(jobs.tenant), count=limit)
    return [{"id": entry, **{k: v for k, v in fields.items() if k != "body"}} for entry, fields in entries]


def redrive(jobs: Jobs) -> list[str]:
    """Resume the jobs of all dead letters; return them. Letters of a job that is refused just now are kept."""
    letters = [letter for letter in dead_letters(jobs, MOST) if "job" in letter]
    resumed, kept = [], set()
    for job in sorted({str(letter["job"]) for letter in letters}):
        try:
            resumed.append(resume(jobs, job))
        except (CorpusNotFound, JobNotFound):
            pass  # there is nothing left to resume
        except UsageError:
            if jobs.record(job).get("state") not in _WELL:
                kept.add(job)
    if done := [letter["id"] for letter in letters if str(letter["job"]) not in kept]:
        jobs.ledger.redis.xdel(rk.dead_letters(jobs.tenant), *done)
    return resumed
