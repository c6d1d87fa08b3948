"""After Redis was lost, rolled back or replaced: the ledger is told again of the jobs that the object store knows.

A corpus job finds its finished units in the object store and repeats no paid call. A query asks its batches again,
except those whose results are still cached.
"""

from __future__ import annotations

import logging
from typing import Any

from redis.exceptions import RedisError

from communitree_shared import rediskeys as rk
from communitree_shared.broker import Publisher
from communitree_shared.errors import InfrastructureError
from communitree_shared.keys import Keys
from communitree_shared.ledger.client import Ledger
from communitree_shared.ledger.entry import entry, parse_request
from communitree_shared.settings import Settings
from communitree_shared.store import Store

log = logging.getLogger(__name__)


def rebuild(settings: Settings, store: Store, ledger: Ledger, publisher: Publisher) -> list[str]:
    """Tell the ledger of every open job it does not know, and end those whose result is there; return them."""
    changed = []
    prefix = settings.s3_prefix.strip("/")
    for tenant in store.folders(f"{prefix}/" if prefix else ""):
        keys = Keys(tenant, settings.s3_prefix)
        folder = keys.open_job("x")[:-1]
        marked = {key[len(folder) :] for key in store.keys(folder)}
        members: Any = ledger.redis.zrange(rk.OPEN_JOBS, 0, -1)
        known = {m.split("|")[1] for m in members if m.split("|")[0] == tenant}
        mended = [j for j in sorted(marked | known) if _mended(settings, store, ledger, publisher, keys, j)]
        changed += [f"{tenant}|{job}" for job in mended]
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
        _, outgoing = ledger.finish(keys.tenant, job, str(result["status"]), summary, settings.job_ttl)
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
    status, _, outgoing = ledger.submit(
        keys.tenant, job, told.record, told.first, lock=told.lock, in_flight=told.in_flight,
        deadline_ms=told.deadline_ms,
    )  # fmt: skip
    publisher.publish(outgoing)
    if status in {"busy", "shared"}:  # another job does the same work by now
        store.delete(keys.open_job(job))
    return status == "ok"
