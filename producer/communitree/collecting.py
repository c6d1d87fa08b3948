"""`gc`: remove what nothing needs any more. Never what a published version, an open job or a recent one needs.

What is needed is read again right before anything of a corpus is removed: a job may have been submitted, or a version
published, while it was looked for. And nothing goes that is younger than `older_than`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from communitree_shared import clock
from communitree_shared.ledger.jobs import ENDED, Jobs
from communitree_shared.objects.keys import decode_name
from communitree_shared.redis_server import rediskeys as rk


@dataclass
class Found:
    """What would go: keys by kind, and the names of versions and jobs."""

    versions: list[str] = field(default_factory=list)
    jobs: int = 0
    units: int = 0
    documents: int = 0
    batches: int = 0
    objects: int = 0


def collect(jobs: Jobs, *, older_than: float, dry_run: bool) -> dict[str, Any]:
    """Remove versions that are neither published nor in use, what only they needed, and objects of jobs long ended.

    Args:
        jobs: the tenant's.
        older_than: seconds; what was written since then stays.
        dry_run: only count.
    """
    found = Found()
    before = clock.now_of(jobs.ledger.redis) - older_than
    for folder in jobs.store.folders(jobs.keys.corpora()):
        _corpus(jobs, decode_name(folder), before, found, dry_run)
    _jobs(jobs, before, found, dry_run)
    return {
        "versions": sorted(found.versions), "jobs": found.jobs, "units": found.units, "documents": found.documents,
        "batches": found.batches, "objects": found.objects, "dry_run": dry_run,
    }  # fmt: skip


def open_jobs(jobs: Jobs) -> dict[str, dict[str, str]]:
    """Return the records of a tenant's open jobs."""
    members: Any = jobs.ledger.redis.zrange(rk.OPEN_JOBS, 0, -1)
    names = [str(m).split("|", 1)[1] for m in members if str(m).startswith(f"{jobs.tenant}|")]
    return {name: jobs.ledger.record(jobs.tenant, name) for name in names}


def _kept(jobs: Jobs, corpus: str) -> tuple[set[str], bool]:
    """Return the versions of a corpus that are needed now, and whether a job is indexing it."""
    current = (jobs.store.find_json(jobs.keys.current(corpus)) or {}).get("version", "")
    running = [record for record in open_jobs(jobs).values() if record.get("corpus") == corpus]
    versions = {str(current), *(record.get("version", "") for record in running)} - {""}
    return versions, any(record.get("kind") == "corpus" for record in running)


def _corpus(jobs: Jobs, corpus: str, before: float, found: Found, dry_run: bool) -> None:
    store, keys = jobs.store, jobs.keys
    kept, indexing = _kept(jobs, corpus)
    old: dict[str, list[str]] = {}
    for version in store.folders(f"{keys.corpus(corpus)}versions/"):
        dated = list(store.dated(keys.version(corpus, version)))
        if version not in kept and dated and max(at for _, at in dated) < before:
            old[version] = [key for key, _ in dated]
    loose = (
        {"units": [], "documents": [], "batches": [], "lists": []} if indexing else _loose(jobs, corpus, kept, before)
    )
    again, indexing_now = _kept(jobs, corpus)
    if again - kept or (indexing_now and not indexing):
        return  # something has begun meanwhile: this corpus is left to the next time
    doomed = [key for part in old.values() for key in part] + [key for part in loose.values() for key in part]
    found.versions += [f"{corpus}/{version}" for version in old]
    found.units += len(loose["units"])
    found.documents += len(loose["documents"])
    found.batches += len(loose["batches"])
    found.objects += len(doomed)
    if not dry_run:
        # The manifest first: half a version must not look like one.
        store.delete_all(sorted(doomed, key=lambda key: not key.endswith("/manifest.json")))


def _loose(jobs: Jobs, corpus: str, kept: set[str], before: float) -> dict[str, list[str]]:
    """Return the units, documents and batches that no kept version needs."""
    store, keys = jobs.store, jobs.keys
    needs: list[Any] = [store.find_json(keys.needs(corpus, version)) for version in sorted(kept)]
    folder = keys.corpus(corpus)
    loose: dict[str, list[str]] = {"units": [], "documents": [], "batches": []}
    # Only a job that has not published needs the list of its documents; one that is resumed has it still, if young.
    loose["lists"] = [k for k, at in store.dated(keys.document_lists(corpus)) if at < before]
    if all(need is not None for need in needs):  # a version of an older release does not tell: then nothing goes
        units = {keys.unit(corpus, s, u) for need in needs for s, ids in need["units"].items() for u in ids}
        documents = {keys.document(corpus, sha256) for need in needs for sha256 in need["documents"]}
        loose["units"] = [k for k, at in store.dated(f"{folder}units/") if at < before and k not in units]
        loose["documents"] = [k for k, at in store.dated(f"{folder}documents/") if at < before and k not in documents]
    batches: set[str] = set()
    for version in kept:
        for index in store.keys(f"{keys.version(corpus, version)}batches/"):
            batches |= {keys.batch(corpus, entry["key"]) for entry in store.find_json(index) or []}
    loose["batches"] = [k for k, at in store.dated(f"{folder}batches/") if at < before and k not in batches]
    return loose


def _jobs(jobs: Jobs, before: float, found: Found, dry_run: bool) -> None:
    """Remove the objects of jobs that ended, or never began, and were last written before a time."""
    store, keys = jobs.store, jobs.keys
    marked = {key.rsplit("/", 1)[1] for key in store.keys(keys.open_job("x")[:-1])}
    for job in store.folders(keys.jobs()):
        dated = list(store.dated(keys.job(job, "")))
        if not dated or max(at for _, at in dated) >= before:
            continue
        state = jobs.ledger.record(jobs.tenant, job).get("state", "")
        ended = state in ENDED or any(key.endswith("/result.json") for key, _ in dated)
        if not ended and (state or job in marked):
            continue  # it runs, or Redis has lost it and the reconciler takes it up again
        found.jobs += 1
        found.objects += len(dated)
        if not dry_run:
            store.delete_all([*(key for key, _ in dated), keys.open_job(job)])
            jobs.ledger.redis.unlink(rk.result(jobs.tenant, job))  # a small result is kept there for a minute, too
