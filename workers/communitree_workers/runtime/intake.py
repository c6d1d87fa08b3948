"""The public door: requests from a Redis Stream, validated, and each answered with exactly one outcome.

Producers in any language `XADD communitree:requests:<tenant> * request '{"kind": "query", …}'`. The outcome is an entry
of `communitree:results:<tenant>` with type `accepted` (and the job) or `rejected` (and why). A request that cannot be
taken just now stays in the stream; `communitree:gate:<tenant>` says so before anything is added.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
import uuid
from typing import Any

import redis
from pydantic import ValidationError

from communitree_shared import crash
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract import ask_defaults, looks
from communitree_shared.contract.messages import DocumentList, StreamRequest
from communitree_shared.contract.options import IndexOptions, QueryOptions, fault
from communitree_shared.errors import AdmissionRefused, BadInput, CommunitreeError, InfrastructureError
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.stages import compact
from communitree_shared.objects import document_lists
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from communitree_shared.trouble import Knocks

log = logging.getLogger(__name__)

GROUP = "intake"

#: A request larger than this is rejected unread.
LARGEST = 1_000_000

#: Seconds between looks at streams that were empty.
PAUSE = 0.2

_TENANT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
_BATCH = 100


class Intake:
    """One at a time, by a lease in Redis; every worker process offers to be it."""

    def __init__(self, settings: Settings, store: Store, ledger: Ledger, publisher: Publisher) -> None:
        self.settings, self.store, self.ledger, self.publisher = settings, store, ledger, publisher
        self.name = uuid.uuid4().hex
        self.stop = threading.Event()
        self._known: list[str] = []
        self._look_again = 0.0

    def run(self) -> None:
        """Take requests until stopped. Never raises: what fails is tried again."""
        crash.acting("intake")
        knocks = Knocks("the intake", log)
        while not self.stop.is_set():
            taken = 0
            try:
                if self._elected():
                    taken = sum(self.serve(tenant) for tenant in self._tenants())
                knocks.over()
            except (redis.RedisError, OSError, CommunitreeError) as error:
                self.stop.wait(knocks.met(error, 1))
            except Exception:  # an intake that ends is worse than one that errs: say it and go on
                log.exception("the intake erred; it goes on")
                self.stop.wait(2)
            if not taken:
                self.stop.wait(PAUSE)

    def serve(self, tenant: str) -> int:
        """Take what waits in a tenant's stream; returns how many requests were settled."""
        client = self.ledger.redis
        stream = rk.requests(tenant)
        try:
            client.xgroup_create(stream, GROUP, id="0")
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        jobs = Jobs(self.settings.model_copy(update={"tenant": tenant}), self.store, self.ledger, self.publisher)
        # What another intake took and did not settle comes first.
        claimed: Any = client.xautoclaim(
            stream, GROUP, self.name, min_idle_time=int(self.settings.lease * 1000), count=_BATCH
        )
        entries = list(claimed[1])
        fresh: Any = client.xreadgroup(GROUP, self.name, {stream: ">"}, count=_BATCH)
        entries += fresh[0][1] if fresh else []
        settled, why = 0, ""
        for entry, fields in entries:
            try:
                outcome, others = self._outcome(jobs, str(entry), fields or {})
            except AdmissionRefused as refused:
                why = refused.message
                break  # it stays with us, and is claimed again
            settled += self._settle(tenant, str(entry), outcome, others)
        client.set(rk.gate(tenant), why or "open", ex=30)
        return settled

    def _outcome(self, jobs: Jobs, entry: str, fields: dict[str, str]) -> tuple[dict[str, str], tuple[str, str]]:
        """Return the outcome; and job and state where these are another request's (a known answer, one in flight)."""
        told: dict[str, str] = {"request": entry}
        others = "", ""
        try:
            request = parse(fields)
            told["correlation_id"] = request.correlation_id
            job = self._submit(jobs, entry, request)
            if request.kind != "cancel" and job != job_of(jobs.tenant, entry):
                others = job, jobs.record(job).get("state", "")
            told |= {"type": "accepted", "job": job}
        except (AdmissionRefused, InfrastructureError):
            raise
        except (redis.RedisError, OSError):
            raise
        except CommunitreeError as error:
            told |= {"type": "rejected", "code": error.code, "message": error.message[:1000], "hint": error.hint[:500]}
        except Exception as error:  # whatever it holds, it must not end the intake of all tenants
            log.exception("the request %s of %s could not be taken", entry, jobs.tenant)
            told |= {"type": "rejected", "code": "error", "message": f"{type(error).__name__}: {error}"[:1000]}
        return told, others

    def _submit(self, jobs: Jobs, entry: str, request: StreamRequest) -> str:
        if request.kind == "cancel":
            jobs.cancel(request.job, call=entry)
            return request.job
        common: dict[str, Any] = {
            "correlation_id": request.correlation_id, "idempotency_key": request.idempotency_key,
            "job": job_of(jobs.tenant, entry),
        }  # fmt: skip
        if request.kind == "look":
            args = self._looked_for(jobs, request)
            return jobs.submit_look(request.corpus, request.op, args, told=True, **common).job
        kind = QueryOptions if request.kind == "query" else IndexOptions
        try:
            if request.kind == "query":
                if not request.question.strip():
                    raise BadInput("The question is empty.")
                options = QueryOptions.model_validate(request.options)
                return jobs.submit_query(request.corpus, request.question, options, **common).job
            chosen = IndexOptions.model_validate(request.options)
            return jobs.submit_index(request.corpus, self._documents(jobs, request), chosen, **common).job
        except ValidationError as error:
            path, wrong = fault(kind, error)
            raise BadInput(f"The options are not valid: {'.'.join(path)}: {wrong}.") from None

    def _documents(self, jobs: Jobs, request: StreamRequest) -> list[dict[str, Any]] | DocumentList:
        """Return what a request lists, or the list that it names, read to its end.

        Raises:
            BadInput: it has none, or both; or something in the list is wrong.
        """
        if request.document_list is not None and request.documents:
            raise BadInput("The corpus request has `documents` and `document_list`.", hint="Give one of them.")
        if request.document_list is not None:  # a long one takes seconds: the others must not think that we have died
            return document_lists.check(
                self.store, jobs.keys, request.corpus, request.document_list, beat=self._elected
            )
        if not request.documents:
            raise BadInput("The corpus request lists no documents.", hint="Give `documents` or `document_list`.")
        return [d.model_dump() for d in request.documents]

    @staticmethod
    def _looked_for(jobs: Jobs, request: StreamRequest) -> dict[str, Any]:
        """Return a look's arguments, as a worker takes them. Raises as `looks.arguments`."""
        args = looks.arguments(request.op, request.args)
        if request.op != "plan":
            return args
        which = args.pop("which")
        options = QueryOptions.model_validate(args["options"])
        options = ask_defaults.complete(options, jobs.settings.ask, side_by_side=which == "all")
        return {**args, "options": options.model_copy(update={"plan_only": which}).model_dump()}

    def _settle(self, tenant: str, entry: str, outcome: dict[str, str], others: tuple[str, str]) -> int:
        flat = [str(part) for pair in outcome.items() for part in pair]
        correlation = outcome.get("correlation_id", "")
        return int(self.ledger._run("settle", tenant, entry, compact(flat), *others, correlation))

    def _tenants(self) -> list[str]:
        """Return whose streams there are; looking through all keys takes a twentieth of the time at most."""
        began = time.monotonic()
        if began < self._look_again:
            return self._known
        prefix = rk.requests("")
        found = [
            str(key)[len(prefix) :] for key in self.ledger.redis.scan_iter(prefix + "*", count=1000, _type="stream")
        ]
        self._known = sorted(t for t in found if _TENANT.match(t))
        ended = time.monotonic()
        self._look_again = ended + min(30.0, 20 * (ended - began))
        return self._known

    def _elected(self) -> bool:
        client, life = self.ledger.redis, 10_000
        if client.set(rk.INTAKE, self.name, nx=True, px=life):
            return True
        if client.get(rk.INTAKE) != self.name:
            return False
        client.pexpire(rk.INTAKE, life)
        return True


def parse(fields: dict[str, str]) -> StreamRequest:
    """Return the request of a stream entry.

    Raises:
        BadInput: it is none; the message says what was expected.
    """
    text = fields.get("request")
    if text is None:
        raise BadInput("The entry has no field `request`.", hint="XADD … * request '<JSON>'; see docs/messages.md.")
    if len(text) > LARGEST:
        raise BadInput(f"The request has {len(text):,} characters; {LARGEST:,} are allowed.")
    try:
        return StreamRequest.model_validate_json(text)
    except ValidationError as error:
        path, wrong = fault(StreamRequest, error)
        where = ".".join(path) or "the whole"
        raise BadInput(f"Not a request: {where}: {wrong}.", hint="Its JSON Schema is stream-request.") from None


def job_of(tenant: str, entry: str) -> str:
    """Return the job of a stream entry: the same however often the entry is taken."""
    return f"r-{entry}-{hashlib.sha256(f'{tenant}|{entry}'.encode()).hexdigest()[:12]}"
