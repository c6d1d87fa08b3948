"""Jobs from the caller's side: submit, look at, cancel. Requests and results are objects; the ledger holds state."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import unicodedata
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from communitree_shared import clock
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract import ask_defaults, corpus_settings
from communitree_shared.contract.again import silent_of
from communitree_shared.contract.looks import CORPORA
from communitree_shared.contract.messages import CorpusRequest, DocumentList, LeftOut, LookRequest, QueryRequest
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.contract.own_prompts import check_prompts
from communitree_shared.errors import (
    AdmissionRefused,
    CorpusBusy,
    CorpusNotFound,
    InfrastructureError,
    JobNotFound,
    UsageError,
)
from communitree_shared.ledger.client import Ledger, Limits, Outgoing
from communitree_shared.ledger.ends import CANCELLED_BY_CALLER, Outcomes
from communitree_shared.ledger.entry import Request, dumped, entry, parse_request, question_digest
from communitree_shared.objects import document_lists
from communitree_shared.objects.keys import Keys, corpus_name, encode_name, safe_id
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings

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
        self,
        corpus: str,
        documents: Sequence[dict[str, Any]] | DocumentList,
        options: IndexOptions,
        *,
        left_out: Sequence[LeftOut] = (),
        correlation_id: str = "",
        idempotency_key: str = "",
        job: str = "",
    ) -> Submitted:
        """Submit a corpus job over uploaded documents (name, sha256, size). `job`: its id, where the caller has one.

        Many documents are written as an object, so that the request stays small; a list that is one already is given as
        what `document_lists.check` says of it.
        `left_out`: what was not uploaded; the job's result says so.
        Settings that earlier jobs gave the corpus hold where `options` does not name them (see `corpus_settings`).

        Raises:
            UsageError: the documents are more than may be uploaded.
            CorpusBusy: another job is indexing this corpus.
            AdmissionRefused: too many jobs are open.
        """
        corpus = corpus_name(corpus)
        apart = documents if isinstance(documents, DocumentList) else None
        inline = [] if isinstance(documents, DocumentList) else list(documents)
        size = apart.bytes if apart else sum({str(d.get("sha256")): int(d.get("size", 0)) for d in inline}.values())
        if size > self.settings.max_upload_bytes:
            raise UsageError(
                f"The documents have {size:,} bytes; {self.settings.max_upload_bytes:,} are allowed.",
                hint="Index parts of them as corpora of their own, or raise COMMUNITREE_MAX_UPLOAD_BYTES.",
            )
        if len(inline) > document_lists.APART_ABOVE:
            apart, inline = document_lists.written(self.store, self.keys, corpus, inline), []
        job = job or _new_job()
        chosen, settings = corpus_settings.effective(self.manifest(corpus), options)
        request = CorpusRequest(
            job=job, corpus=corpus, version=f"v-{job}", documents=inline, document_list=apart,
            left_out=list(left_out), options=chosen.model_dump(), given=corpus_settings.given(options),
            settings=settings,
        )  # fmt: skip
        return self._submit(request, correlation_id, idempotency_key)

    def submit_query(
        self,
        corpus: str,
        question: str,
        options: QueryOptions,
        *,
        correlation_id: str = "",
        idempotency_key: str = "",
        version: str = "",
        job: str = "",
    ) -> Submitted:
        """Submit a query job, or join an equal one that is in flight, or find its answer in the cache.

        Options that the caller did not give by name are those of the settings (see `ask_defaults`).

        Raises:
            UsageError: options go not together, a prompt lacks its placeholders, or job `options.again` left nothing to
                read again.
            CorpusNotFound: no published version. JobNotFound: there is no job `options.again`.
            AdmissionRefused: too many jobs are open.
        """
        options = ask_defaults.complete(options, self.settings.ask)
        check_prompts(options.prompts)
        corpus = corpus_name(corpus)
        version = version or self.current(corpus)
        if options.again:
            self.record(options.again)  # of this tenant, or none
            silent_of(options.again, self.result(options.again), corpus, version)
        question = unicodedata.normalize("NFC", question).strip()
        request = QueryRequest(
            job=job or _new_job(), corpus=corpus, version=version, question=question, options=options.model_dump()
        )
        if options.cache and not options.again:
            digest = question_digest(request, self._models(request))
            known = self.ledger.value(rk.answer(self.tenant, digest))
            if known and self.store.exists(self.keys.job(str(known), "result.json")):
                self.ledger.redis.hincrby(rk.answer_hits(self.tenant), encode_name(corpus), 1)
                return Submitted(str(known), cached=True)
        return self._submit(request, correlation_id, idempotency_key)

    def submit_look(
        self,
        corpus: str,
        op: str,
        args: dict[str, Any],
        *,
        correlation_id: str = "",
        idempotency_key: str = "",
        job: str = "",
        told: bool = False,
    ) -> Submitted:
        """Submit a look at tables, or at all corpora. `told`: its end is told in the tenant's stream of results.

        Raises:
            CorpusNotFound: no published version.
            AdmissionRefused: too many jobs are open.
        """
        corpus = "" if op == CORPORA else corpus_name(corpus)
        version = self.current(corpus) if corpus else ""
        request = LookRequest(job=job or _new_job("look"), corpus=corpus, version=version, op=op, args=args, told=told)
        return self._submit(request, correlation_id, idempotency_key)

    def _same(self, request: Request, key: str) -> str:
        """Return the job that an idempotency key stands for: this request's own where it is new.

        Raises:
            UsageError: it was used for something else.
        """
        digest = _digest(request)
        mine = f"{request.job} {digest}"
        job, known = self.ledger.claim(rk.idempotency(self.tenant, key), mine, self.settings.job_ttl).split(" ")
        if known != digest:
            raise UsageError(
                f"The idempotency key {key!r} was used for another request (job {job}).",
                hint="Use a new key for a new request.",
            )
        return job

    def _submit(self, request: Request, correlation_id: str = "", idempotency_key: str = "") -> Submitted:
        if idempotency_key and (same := self._same(request, idempotency_key)) != request.job:
            if self.ledger.record(self.tenant, same):
                return Submitted(same, shared=True)
            # Who used the key first has not told the ledger of its job, and perhaps never will: it is told here.
            named = {"version": f"v-{same}"} if isinstance(request, CorpusRequest) else {}
            request = request.model_copy(update={"job": same, **named})
        job, now = request.job, clock.now_of(self.ledger.redis)
        request = self._kept(request)
        told = entry(self.tenant, request, now, correlation_id, self._models(request))
        status, detail, outgoing = self.ledger.submit(
            self.tenant, job, told.record, told.first, lock=told.lock, in_flight=told.in_flight,
            deadline_ms=told.deadline_ms, limits=self._limits, request=told.request,
        )  # fmt: skip
        taken = status == "ok" or (status == "exists" and self.record(job).get("state") not in ENDED)
        if taken and (not isinstance(request, LookRequest) or request.told):
            # Not before: a job whose caller was told of a failure must not be found and run days later.
            marker = {"kind": request.kind, "submitted": now, "correlation_id": correlation_id}
            self.store.put_json(self.keys.open_job(job), marker)
        if status in {"busy", "full"} and idempotency_key:
            self.ledger.redis.delete(rk.idempotency(self.tenant, idempotency_key))  # it may be tried again
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
                f"The job was not taken: {detail}.",
                hint="Try again later, or raise COMMUNITREE_MAX_OPEN_JOBS or COMMUNITREE_MAX_WAITING_UNITS.",
                retry_after=5,
            )
        if status == "shared":
            if idempotency_key:
                self.ledger.redis.set(
                    rk.idempotency(self.tenant, idempotency_key), f"{detail} {_digest(request)}", xx=True, keepttl=True
                )
            return Submitted(detail, shared=True)
        self._publish(outgoing)
        return Submitted(job)

    def _kept(self, request: Request) -> Request:
        """Write a job's request, once: whoever submits the job again (an intake that takes over) gets the first one."""
        key = self.keys.job(request.job, "request.json")
        if self.store.put_new(key, dumped(request).encode()):
            return request
        return parse_request(self.store.find_json(key) or request.model_dump())

    def _models(self, request: Request) -> str:
        """Return the models that workers have for a question, as they say themselves."""
        return (self.ledger.value(rk.MODELS) or "") if isinstance(request, QueryRequest) else ""

    def _publish(self, outgoing: list[Outgoing]) -> None:
        # Where the broker is away they stay in the outbox, and the reconciler publishes them when it is back.
        with contextlib.suppress(InfrastructureError):
            self.publisher.publish(outgoing)

    @property
    def _limits(self) -> Limits:
        settings = self.settings
        return Limits(
            settings.max_open_jobs, settings.max_open_jobs_total, settings.max_waiting_units,
            settings.max_waiting_units_total,
        )  # fmt: skip

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

    def manifest(self, corpus: str) -> dict[str, Any] | None:
        """Return the manifest of a corpus's published version, or None."""
        found = self.store.find_json(self.keys.current(corpus))
        manifest: dict[str, Any] | None = found and self.store.find_json(
            self.keys.manifest(corpus, str(found["version"]))
        )
        return manifest

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
            state = "lost" if result is None else str(result.get("status", "done"))
            return {"kind": request["kind"], "corpus": request["corpus"], "state": state}
        return record

    def result(self, job: str) -> dict[str, Any] | None:
        """Return the result object of an ended job, or None."""
        key = self.keys.job(safe_id(job, "job"), "result.json")
        kept = self.ledger.value(rk.result(self.tenant, job))
        found: dict[str, Any] | None = self.store.find_json(key) if kept is None else json.loads(kept)
        return found

    def stages_ended(self, job: str) -> dict[str, tuple[int, Outcomes]]:
        """Return how many units each stage of a job has, and the outcomes of those that ended."""
        ledger, mine = self.ledger, self.tenant
        return {
            name: (int(ledger.stage_record(mine, job, name).get("total", 0)), ledger.outcomes(mine, job, name))
            for name in ledger.stage_names(mine, job)
        }

    def cancel(self, job: str, *, call: str = "") -> str:
        """Take this caller from a job; it stops when none is left. Returns its state afterwards.

        `call` names this call: made again under the same name it counts once.

        Raises:
            JobNotFound: no such job of this tenant.
        """
        self.record(job)
        reason = CANCELLED_BY_CALLER
        left, outgoing = self.ledger.cancel(self.tenant, job, call or uuid.uuid4().hex, self.settings.job_ttl, reason)
        if left in {"cancelled", "ended"}:
            self._publish(outgoing)
            self.store.delete(self.keys.open_job(job))
        return self.record(job).get("state", "")


def _digest(request: Request) -> str:
    """Return what makes two requests the same for an idempotency key."""
    # Of a corpus job what its caller gave: the corpus's settings may have changed since, and so may files beside it.
    # What a request does not have is left out, so that keys of requests from before it could have it stay the same.
    derived: set[str] = set()
    if isinstance(request, CorpusRequest):
        derived = {"options", "settings", "left_out", *([] if request.document_list else ["document_list"])}
    asked = request.model_dump(exclude={"job", "version", *derived})
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _new_job(kind: str = "") -> str:
    """Return a new job id: sorts by time, cannot be guessed."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{kind}{'-' if kind else ''}{stamp}-{uuid.uuid4().hex[:12]}"
