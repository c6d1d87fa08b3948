"""What the ledger is told of a job: a function of its request, so that a lost ledger can be told again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from communitree_shared.contract.messages import CorpusRequest, LookRequest, QueryRequest
from communitree_shared.contract.options import QueryOptions
from communitree_shared.ledger.stages import Step
from communitree_shared.objects.keys import encode_name
from communitree_shared.redis_server import rediskeys as rk

Request = CorpusRequest | QueryRequest | LookRequest

#: Of a query's time, what is kept for the reduce: a fifth, but at most this many seconds.
RESERVE = 30.0

#: Seconds after which a look is given up.
LOOK_SECONDS = 300.0


@dataclass(frozen=True)
class Entry:
    """A job's record and first step, the keys it holds while it runs, and when its waiting units expire (ms).

    `request`: as JSON, so that workers need not ask the object store for it; "" where it is large.
    """

    record: dict[str, str]
    first: Step
    lock: str = ""
    in_flight: str = ""
    deadline_ms: int = 0
    request: str = ""


#: Options that change when an answer is there, not what it says.
_OF_THE_CALLER = frozenset(("deadline_seconds", "bulk", "cache", "concurrency"))

#: A question's first characters stand in its job's record, so that a list of jobs reads nothing else.
SHOWN = 200

#: A request of more characters is not kept in Redis: workers read it from the object store.
SMALL = 16_384


def dumped(request: Request) -> str:
    """Return a request as JSON, keys sorted."""
    return json.dumps(request.model_dump(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def entry(tenant: str, request: Request, submitted: float, correlation_id: str = "", models: str = "") -> Entry:
    """Return what the ledger is told of a request that was submitted at `submitted` (unix seconds).

    `models`: those that workers had then (`models_text`), for a question.
    """
    record = {
        "kind": request.kind, "corpus": request.corpus, "version": request.version, "correlation_id": correlation_id,
        "on_failure": finish_spec(tenant, request.job),
    }  # fmt: skip
    if isinstance(request, CorpusRequest):
        planned = request.options.get("plan_only", False)  # publishes nothing, so it may run beside an index
        lock = "" if planned else rk.corpus_lock(tenant, encode_name(request.corpus))
        return Entry(record, Step("ingest", "communitree.corpus.ingest.v1"), lock=lock)
    kept = dumped(request)
    kept = kept if len(kept) <= SMALL else ""
    if isinstance(request, LookRequest):
        until = submitted + LOOK_SECONDS
        record |= {"deadline": f"{until:.3f}", "op": request.op, **({"told": "1"} if request.told else {})}
        return Entry(record, Step("look", "communitree.look.v1"), deadline_ms=int(until * 1000), request=kept)
    options = QueryOptions.stored(request.options)
    until = submitted + options.deadline_seconds
    for_map = until - min(RESERVE, options.deadline_seconds / 5)
    digest = question_digest(request, models)
    record |= {
        "deadline": f"{until:.3f}", "map_deadline": f"{for_map:.3f}", "digest": digest,
        "lane": "b" if options.bulk else "i", "question": request.question[:SHOWN],
    }  # fmt: skip
    flight = rk.in_flight(tenant, digest) if options.cache and not options.again else ""
    return Entry(
        record, Step("plan", "communitree.query.plan.v1"), in_flight=flight, deadline_ms=int(for_map * 1000),
        request=kept,
    )  # fmt: skip


def models_text(models: Mapping[str, str]) -> str:
    """Return the models of the stages that a question passes, as part of what makes two questions equal."""
    return json.dumps({stage: models.get(stage, "") for stage in ("map", "rate", "reduce")}, ensure_ascii=False)


def question_digest(request: QueryRequest, models: str = "") -> str:
    """Return what makes two questions equal: corpus, version, text, options and the models (`models_text`) that answer
    it, but not how they are worked on.
    """
    options = {k: v for k, v in request.options.items() if k not in _OF_THE_CALLER}
    text = json.dumps(
        [request.corpus, request.version, request.question, options, models], sort_keys=True, ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def finish_spec(tenant: str, job: str) -> str:
    """Return the step that ends a job when one of its critical steps failed."""
    return json.dumps(Step("finish", "communitree.job.finish.v1", critical=False).spec(tenant, job))


def parse_request(data: dict[str, object]) -> Request:
    """Return a stored request as the class of its kind."""
    kinds: dict[object, type[CorpusRequest] | type[QueryRequest] | type[LookRequest]] = {
        "corpus": CorpusRequest, "query": QueryRequest, "look": LookRequest,
    }  # fmt: skip
    return kinds[data.get("kind")].model_validate(data)
