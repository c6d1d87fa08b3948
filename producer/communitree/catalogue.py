"""Corpora as they lie in the object store: list, delete, clear away what nothing refers to any more."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from communitree.deleting import forget
from communitree_shared.errors import CorpusBusy, CorpusNotFound
from communitree_shared.ledger.jobs import ENDED, Jobs
from communitree_shared.objects.keys import corpus_name, decode_name, encode_name
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


def replaced(jobs: Jobs, corpus: str, sha256s: Collection[str]) -> int:
    """Return how many files of the published version are not among these; what a graph was made of is not looked at."""
    version = (jobs.store.find_json(jobs.keys.current(corpus)) or {}).get("version")
    needs = (jobs.store.find_json(jobs.keys.needs(corpus, version)) if version else None) or {}
    return len(set(needs.get("documents", ())) - set(sha256s))


def indexing(jobs: Jobs, corpus: str) -> str:
    """Return the job that indexes a corpus now, "" where there is none."""
    owner = jobs.ledger.redis.get(rk.corpus_lock(jobs.tenant, encode_name(corpus)))
    if not owner or jobs.ledger.record(jobs.tenant, str(owner)).get("state") in {None, *ENDED}:
        return ""
    return str(owner)


def refuse_busy(jobs: Jobs, corpus: str) -> None:
    """Raise CorpusBusy while a job indexes this corpus."""
    if job := indexing(jobs, corpus):
        raise CorpusBusy(
            f"The corpus {corpus!r} is being indexed by job {job}.",
            hint=f"Follow it with `communitree job {job} --follow`, or stop it with `communitree cancel {job}`.",
            retry_after=30,
        )


def not_there(corpus: str) -> CorpusNotFound:
    """Return the error of a corpus that nothing is left of."""
    return CorpusNotFound(f"There is no corpus {corpus!r}.", hint="`communitree corpora` lists them.")


def delete(jobs: Jobs, corpus: str) -> int:
    """Remove a corpus with all its versions, documents, questions and answers; return how many objects it had.

    The published version goes first, so that no new question finds half a corpus.

    Raises:
        CorpusNotFound: there is none.
        CorpusBusy: a job is indexing it.
    """
    corpus = corpus_name(corpus)
    refuse_busy(jobs, corpus)
    keys = list(jobs.store.keys(jobs.keys.corpus(corpus)))
    if not keys:
        raise not_there(corpus)
    jobs.store.delete(jobs.keys.current(corpus))
    jobs.store.delete_all(keys)
    return len(keys) + forget(jobs, corpus)
