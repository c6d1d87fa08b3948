"""Corpora: what there is, what stands in the way of a job, and the removal of one."""

from __future__ import annotations

from collections.abc import Collection

from communitree.deleting import forget
from communitree_shared.errors import CorpusBusy, CorpusNotFound
from communitree_shared.ledger.corpora import corpora, indexing
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.objects.keys import corpus_name

__all__ = ["corpora", "delete", "indexing", "not_there", "refuse_busy", "replaced"]


def replaced(jobs: Jobs, corpus: str, sha256s: Collection[str]) -> int:
    """Return how many files of the published version are not among these; what a graph was made of is not looked at."""
    version = (jobs.store.find_json(jobs.keys.current(corpus)) or {}).get("version")
    needs = (jobs.store.find_json(jobs.keys.needs(corpus, version)) if version else None) or {}
    return len(set(needs.get("documents", ())) - set(sha256s))


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
