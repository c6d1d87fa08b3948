"""Jobs from the caller's side: submit, look at, cancel. Requests and results are objects; the ledger holds state."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import unicodedata
import uuid
from dataclasses import dataclass
from typing import Any

from communitree_shared import rediskeys as rk
from communitree_shared.broker import Publisher
from communitree_shared.errors import AdmissionRefused, CorpusBusy, CorpusNotFound, InfrastructureError, JobNotFound
from communitree_shared.keys import Keys, corpus_name, encode_name, safe_id
from communitree_shared.ledger.client import Ledger
from communitree_shared.ledger.stages import Step
from communitree_shared.messages import CorpusRequest, LookRequest, QueryRequest
from communitree_shared.options import IndexOptions, QueryOptions
from communitree_shared.settings import Settings
from communitree_shared.store import Store

#: States in which a job has ended.
ENDED = {"answered", "partial", "no_data", "published", "failed", "cancelled", "done"}


@dataclass(frozen=True)
class Submitted:
    """A job that runs (or ran): `shared` when an equal question was in flight, `cached` when its answer was known."""

    job: str
    shared: bool = False
    cached: bool = False


class Jobs:
    """What a client does with jobs, for one tenant."""

    def __init__(self, settings: Settings, store: Store, ledger: Ledger, publisher: Publisher) -> None:
        self.settings = settings
        self.store = store
        self.ledger = ledger
        self.publisher = publisher
        self.tenant = settings.tenant
        self.keys = Keys(settings.tenant, settings.s3_prefix)

    # --- submit ---------------------------------------------------------------------------------------------

    def submit_index(
        self, corpus: str, documents: list[dict[str, Any]], options: IndexOptions, *, correlation_id: str = ""
    ) -> Submitted:
        """Submit a corpus job over uploaded documents (name, sha256, size).

        Raises:
            CorpusBusy: another job is indexing this corpus.
            AdmissionRefused: too many jobs are open.
        """
        corpus = corpus_name(corpus)
        job = _new_job()
        request = CorpusRequest(
            job=job, corpus=corpus, version=f"v-{job}", documents=documents, options=options.model_dump()
        )
        first = Step("ingest", "communitree.corpus.ingest.v1", then=None)
        lock = rk.corpus_lock(self.tenant, encode_name(corpus))
        record = {"kind": "corpus", "corpus": corpus, "version": request.version, "correlation_id": correlation_id}
        return self._submit(job, request, record, first, lock=lock)

    def submit_query(
        self, corpus: str, question: str, options: QueryOptions, *, correlation_id: str = "", version: str = ""
    ) -> Submitted:
        """Submit a query job, or join an equal one that is in flight, or find its answer in the cache.

        Raises:
            CorpusNotFound: no published version.
            AdmissionRefused: too many jobs are open.
        """
        corpus = corpus_name(corpus)
        version = version or self.current(corpus)
        question = unicodedata.normalize("NFC", question).strip()
        job = _new_job()
        request = QueryRequest(job=job, corpus=corpus, version=version, question=question, options=options.model_dump())
        digest = question_digest(request)
        flight = ""
        if options.cache and not options.again:
            known = self.ledger.redis.get(rk.answer(self.tenant, digest))
            if known and self.store.exists(self.keys.job(str(known), "result.json")):
                return Submitted(str(known), cached=True)
            flight = rk.in_flight(self.tenant, digest)
        until = time.time() + options.deadline_seconds
        reserve = min(30.0, options.deadline_seconds / 5)
        record = {
            "kind": "query", "corpus": corpus, "version": version, "deadline": f"{until:.3f}",
            "map_deadline": f"{until - reserve:.3f}", "digest": digest, "correlation_id": correlation_id,
            "on_failure": finish_spec(self.tenant, job),
        }  # fmt: skip
        first = Step("plan", "communitree.query.plan.v1")
        return self._submit(job, request, record, first, in_flight=flight, deadline_ms=int((until - reserve) * 1000))

    def submit_look(self, corpus: str, op: str, args: dict[str, Any], *, version: str = "") -> Submitted:
        """Submit a look at tables.

        Raises:
            CorpusNotFound: no published version.
        """
        corpus = corpus_name(corpus)
        job = _new_job("look")
        request = LookRequest(job=job, corpus=corpus, version=version or self.current(corpus), op=op, args=args)
        until = time.time() + 300
        record = {"kind": "look", "corpus": corpus, "version": request.version, "deadline": f"{until:.3f}"}
        return self._submit(job, request, record, Step("look", "communitree.look.v1"), deadline_ms=int(until * 1000))

    def _submit(
        self,
        job: str,
        request: CorpusRequest | QueryRequest | LookRequest,
        record: dict[str, str],
        first: Step,
        **options: Any,
    ) -> Submitted:
        self.store.put_json(self.keys.job(job, "request.json"), request.model_dump())
        if request.kind == "corpus":
            self.store.put_json(self.keys.open_job(job), {"kind": request.kind, "submitted": time.time()})
        record.setdefault("on_failure", finish_spec(self.tenant, job))
        status, detail, outgoing = self.ledger.submit(
            self.tenant, job, record, first, limit=self.settings.max_open_jobs, **options
        )
        if status in {"busy", "full", "shared"}:
            self.store.delete_all([self.keys.job(job, "request.json"), self.keys.open_job(job)])
        if status == "busy":
            raise CorpusBusy(
                f"The corpus {request.corpus!r} is being indexed by job {detail}.",
                hint=f"Follow it with `communitree job {detail}`, or stop it with `communitree cancel {detail}`.",
                retry_after=30,
            )
        if status == "full":
            raise AdmissionRefused(
                f"{detail} jobs of tenant {self.tenant!r} are open, the limit is {self.settings.max_open_jobs}.",
                hint="Try again later, or raise COMMUNITREE_MAX_OPEN_JOBS.",
                retry_after=5,
            )
        if status == "shared":
            return Submitted(detail, shared=True)
        # Where the broker is away it stays in the outbox, and the reconciler publishes it when it is back.
        with contextlib.suppress(InfrastructureError):
            self.publisher.publish(outgoing)
        return Submitted(job)

    # --- look at --------------------------------------------------------------------------------------------

    def current(self, corpus: str) -> str:
        """Return the published version of a corpus.

        Raises:
            CorpusNotFound: there is none.
        """
        found = self.store.find_json(self.keys.current(corpus))
        if found is None:
            raise CorpusNotFound(
                f"There is no corpus {corpus!r}.",
                hint="`communitree corpora` lists them; `communitree index` makes one.",
            )
        return str(found["version"])

    def record(self, job: str) -> dict[str, str]:
        """Return a job's record.

        Raises:
            JobNotFound: no such job of this tenant.
        """
        record = self.ledger.record(self.tenant, safe_id(job, "job"))
        if not record:
            request = self.store.find_json(self.keys.job(job, "request.json"))
            result = self.store.find_json(self.keys.job(job, "result.json"))
            if request is None:
                raise JobNotFound(f"There is no job {job!r}.", hint="`communitree jobs` lists them.")
            state = str((result or {}).get("status", "lost"))
            return {"kind": request["kind"], "corpus": request["corpus"], "state": state}
        return record

    def result(self, job: str) -> dict[str, Any] | None:
        """Return the result object of an ended job, or None."""
        found: dict[str, Any] | None = self.store.find_json(self.keys.job(safe_id(job, "job"), "result.json"))
        return found

    def cancel(self, job: str) -> str:
        """Take this caller from a job; it stops when none is left. Returns its state afterwards.

        Raises:
            JobNotFound: no such job of this tenant.
        """
        self.record(job)
        left = self.ledger.cancel(self.tenant, job)
        if left == "last":
            self.ledger.finish(self.tenant, job, "cancelled", {}, self.settings.job_ttl, "cancelled by its caller")
            self.store.delete(self.keys.open_job(job))
        return self.record(job).get("state", "")


def question_digest(request: QueryRequest) -> str:
    """Return what makes two questions equal: corpus, version, text and options, but not how long a caller waits."""
    options = {k: v for k, v in request.options.items() if k not in {"deadline_seconds", "bulk", "cache"}}
    text = json.dumps([request.corpus, request.version, request.question, options], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def finish_spec(tenant: str, job: str) -> str:
    """Return the step that ends a job when one of its critical steps failed."""
    return json.dumps(Step("finish", "communitree.job.finish.v1", critical=False).spec(tenant, job))


def _new_job(kind: str = "") -> str:
    """Return a new job id: sorts by time, cannot be guessed."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{kind}{'-' if kind else ''}{stamp}-{uuid.uuid4().hex[:12]}"
