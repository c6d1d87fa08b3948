"""A tenant's corpora, as they lie in the object store and as the ledger knows them."""

from __future__ import annotations

from typing import Any

from communitree_shared.ledger.jobs import ENDED, Jobs
from communitree_shared.objects.keys import decode_name, encode_name
from communitree_shared.redis_server import rediskeys as rk


def corpora(jobs: Jobs) -> list[dict[str, Any]]:
    """Return name, version, job that indexes it now ("" where none), the manifest's counts, of each corpus.

    `answers_from_cache`: questions that got the finished answer of an equal one.
    """
    found, hits = [], jobs.ledger.redis.hgetall(rk.answer_hits(jobs.tenant))
    for folder in jobs.store.folders(jobs.keys.corpora()):
        name = decode_name(folder)
        current = jobs.store.find_json(jobs.keys.current(name)) or {}
        version = str(current.get("version", ""))
        if not version and next(jobs.store.keys(jobs.keys.corpus(name)), None) is None:
            continue  # some servers keep the folders of deleted objects
        manifest = (jobs.store.find_json(jobs.keys.manifest(name, version)) if version else None) or {}
        result = manifest.get("result", {})
        about = {part: result[part] for part in ("status", "counts", "coverage") if part in result}
        published = {"published": current["published"]} if "published" in current else {}
        known = {"answers_from_cache": int(hits.get(encode_name(name), 0))}
        found.append({"name": name, "version": version, **_indexed(jobs, name), **published, **about, **known})
    return sorted(found, key=lambda c: str(c["name"]))


def _indexed(jobs: Jobs, corpus: str) -> dict[str, str]:
    job = indexing(jobs, corpus)
    if not job:
        return {"indexing": ""}
    return {"indexing": job, "indexing_state": jobs.ledger.record(jobs.tenant, job).get("state", "")}


def indexing(jobs: Jobs, corpus: str) -> str:
    """Return the job that indexes a corpus now, "" where there is none."""
    owner = jobs.ledger.redis.get(rk.corpus_lock(jobs.tenant, encode_name(corpus)))
    if not owner or jobs.ledger.record(jobs.tenant, str(owner)).get("state") in {None, *ENDED}:
        return ""
    return str(owner)
