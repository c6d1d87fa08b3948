"""After Redis was lost, rolled back or replaced: the ledger is told again of the jobs that the object store knows.

A corpus job finds its finished units in the object store and repeats no paid call. A query asks its batches again,
except those whose results are still cached.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redis.exceptions import RedisError

from communitree_shared.broker.publisher import Publisher
from communitree_shared.errors import CorpusBusy, InfrastructureError
from communitree_shared.ledger.client import Ledger, Limits
from communitree_shared.ledger.ends import without_result
from communitree_shared.ledger.entry import entry, parse_request
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings

log = logging.getLogger(__name__)

#: So many jobs are looked at side by side.
AT_ONCE = 16

#: What was open has been admitted already, whatever the limits say now.
ADMITTED = Limits(*[2**31] * 4)


def rebuild(settings: Settings, store: Store, ledger: Ledger, publisher: Publisher) -> list[str]:
    """Tell the ledger of every open job it does not know, and end those whose result is there; return them.

    Jobs are read side by side: thousands may be open.
    """
    changed = []
    prefix = settings.s3_prefix.strip("/")
    for tenant in store.folders(f"{prefix}/" if prefix else ""):
        keys = Keys(tenant, settings.s3_prefix)
        folder = keys.open_job("x")[:-1]
        marked = {key[len(folder) :] for key in store.keys(folder)}
        members: Any = ledger.redis.zrange(rk.OPEN_JOBS, 0, -1)
        known = {m.split("|")[1] for m in members if m.split("|")[0] == tenant}

        def mended(job: str, keys: Keys = keys) -> bool:
            return _mended(settings, store, ledger, publisher, keys, job)

        jobs = sorted(marked | known)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for job, done in zip(jobs, pool.map(mended, jobs), strict=True):
                changed += [f"{tenant}|{job}"] if done else []
    if changed:
        log.warning("Redis had lost writes: %d jobs were taken up again from the object store", len(changed))
    return changed


def _mended(settings: Settings, store: Store, ledger: Ledger, publisher: Publisher, keys: Keys, job: str) -> bool:
    """Mend one job; one that cannot be read must not keep the others, nor the reconciler, from going on."""
    try:
        return _mend(settings, store, ledger, publisher, keys, job)
    except (InfrastructureError, RedisError):
        raise
    except Exception:
        log.exception("job %s of %s cannot be taken up again", job, keys.tenant)
        return False


def _mend(settings: Settings, store: Store, ledger: Ledger, publisher: Publisher, keys: Keys, job: str) -> bool:
    record = ledger.record(keys.tenant, job)
    state = record.get("state", "")
    result = store.find_json(keys.job(job, "result.json"))
    if result is not None:
        store.delete(keys.open_job(job))
        if state not in {"queued", "running"}:
            return False
        summary = {"result": keys.job(job, "result.json")}
        ended = str(result.get("status") or ("failed" if result.get("error") else "done"))  # a look's has none
        _, outgoing = ledger.finish(keys.tenant, job, ended, summary, settings.job_ttl)
        publisher.publish(outgoing)
        return True
    if record:
        if state not in {"queued", "running"}:
            store.delete(keys.open_job(job))  # it ended without a result: cancelled
        return False
    request = store.find_json(keys.job(job, "request.json"))
    marker = store.find_json(keys.open_job(job))
    if request is None or marker is None:
        store.delete(keys.open_job(job))
        return False
    told = entry(keys.tenant, parse_request(request), float(marker["submitted"]), marker.get("correlation_id", ""))

    def submit(in_flight: str) -> tuple[str, str]:
        status, detail, outgoing = ledger.submit(
            keys.tenant, job, told.record, told.first, lock=told.lock, in_flight=in_flight, limits=ADMITTED,
            deadline_ms=told.deadline_ms, request=told.request,
        )  # fmt: skip
        publisher.publish(outgoing)
        return status, detail

    status, detail = submit(told.in_flight)
    if status == "shared":  # another job asks the same by now; this one's callers wait for it by its own name
        status, detail = submit("")
    if status == "busy":
        error = CorpusBusy(
            f"Redis lost this job, and job {detail} has begun to index the corpus {request['corpus']!r} since.",
            hint=f"Follow it with `communitree job {detail} --follow`.",
        )
        result = without_result(job, "failed", error.message, {}, request).model_dump() | {"error": error.as_json()}
        store.put_new(keys.job(job, "result.json"), json.dumps(result).encode())
        store.delete(keys.open_job(job))
    return status == "ok"
