"""`delete`: all of a corpus, in the object store and in Redis."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from communitree.collecting import open_jobs
from communitree_shared.errors import InfrastructureError
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.keeping import entries
from communitree_shared.objects.keys import encode_name
from communitree_shared.redis_server import rediskeys as rk

_AT_ONCE = 16


def forget(jobs: Jobs, corpus: str) -> int:
    """Remove the jobs of a corpus (questions, answers, looks), with what is cached of them; return how many objects.

    Those that are open are cancelled first: they have nothing left to read.
    """
    for job, record in open_jobs(jobs).items():
        if record.get("corpus") == corpus:
            reason = f"the corpus {corpus!r} was deleted"
            _, outgoing = jobs.ledger.finish(jobs.tenant, job, "cancelled", {}, jobs.settings.job_ttl, reason)
            with contextlib.suppress(InfrastructureError):  # then the reconciler publishes them
                jobs.publisher.publish(outgoing)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        removed = sum(pool.map(lambda job: _job(jobs, job, corpus), jobs.store.folders(jobs.keys.jobs())))
    client = jobs.ledger.redis
    members: Any = client.zrange(rk.jobs(jobs.tenant), 0, -1)
    for job in members:
        if jobs.ledger.record(jobs.tenant, str(job)).get("corpus") == corpus:
            _keys(jobs, str(job))
    encoded = encode_name(corpus)
    client.hdel(rk.answer_hits(jobs.tenant), encoded)
    for prefix in (rk.cached(jobs.tenant, encoded), rk.rating(jobs.tenant, encoded, "")):
        for key in list(client.scan_iter(f"{prefix}*", count=1000)):
            client.unlink(key)
    stream = rk.results(jobs.tenant)
    told = [entry for entry, fields in entries(client, stream) if fields.get("corpus") == corpus]
    for start in range(0, len(told), 1000):
        client.xdel(stream, *told[start : start + 1000])
    return removed


def _job(jobs: Jobs, job: str, corpus: str) -> int:
    request = jobs.store.find_json(jobs.keys.job(job, "request.json"))
    if request is None or request.get("corpus") != corpus:
        return 0
    keys = list(jobs.store.keys(jobs.keys.job(job, "")))
    jobs.store.delete_all([*keys, jobs.keys.open_job(job)])
    _keys(jobs, job)
    return len(keys)


def _keys(jobs: Jobs, job: str) -> None:
    """Remove what Redis holds of a job."""
    client, tenant = jobs.ledger.redis, jobs.tenant
    record = jobs.ledger.record(tenant, job)
    names = [
        rk.job(tenant, job), rk.stages(tenant, job), rk.attempts(tenant, job), rk.events(tenant, job),
        rk.waits(tenant, job), rk.callers(tenant, job), rk.plan(tenant, job),
        rk.request(tenant, job), rk.result(tenant, job), rk.ended(tenant, job),
    ]  # fmt: skip
    names += [
        rk.stage(tenant, job, stage) + part for stage in jobs.ledger.stage_names(tenant, job) for part in rk.STAGE_PARTS
    ]
    if digest := record.get("digest"):
        names.append(rk.answer(tenant, digest))
    client.unlink(*names)
    client.zrem(rk.jobs(tenant), job)
