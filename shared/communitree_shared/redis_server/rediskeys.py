"""Redis keys: the only place (with the Lua prelude beside the ledger, which mirrors it) that spells them.

Every key starts with `communitree:`; a job's keys carry tenant and job, live as long as the job is open and
get a TTL when it ends. The queues (`communitree.<stage>`) and what the message transport
keeps (`communitree:unacked*`, `communitree:binding*`) are spelled in `broker/layout.py`.
"""

from __future__ import annotations

PREFIX = "communitree:"

#: Sorted sets over all jobs: members are `tenant|job` or `tenant|job|stage|…`, scores are milliseconds.
OPEN_JOBS = PREFIX + "open"  # score: when submitted
DEADLINES = PREFIX + "deadlines"  # score: when the job's waiting stages expire
LEASES = PREFIX + "leases"  # member tenant|job|stage|unit, score: when the lease runs out
OWNERS = PREFIX + "owners"  # hash: the same member → token of the worker that holds the lease
SENT = PREFIX + "sent"  # member tenant|job|stage|message, score: when last published
OUTBOX = PREFIX + "outbox"  # member tenant|job|stage|message, score: since when it waits to be published
WATERMARK = PREFIX + "watermark"  # hash: queue → newest publish stamp that was started
WAITING = PREFIX + "waiting"  # hash: tenant (`*`: all) → units that have not ended, for admission
LANES = PREFIX + "lanes"  # hash: queue → counter that gives bulk work its share
UNWRITTEN = PREFIX + "unwritten"  # member tenant|job: ended, which the object store does not know yet; score: when
MODELS = PREFIX + "models"  # the models that answer questions, as the worker says that began last (JSON)
BUCKET = PREFIX + "bucket"  # the name of the bucket in which the objects of all jobs lie (see pairing.py)
EPOCH = PREFIX + "epoch"  # rises with every reconciler tick: a lower or missing value shows lost writes
RECONCILER = PREFIX + "reconciler"  # the lease of the one reconciler
REPUBLISHED = PREFIX + "republished"  # hash: member → how often the reconciler published it again
STREAMS = PREFIX + "streams"  # set: keys of the results and dead letters of all tenants, which the reconciler trims
INTAKE = PREFIX + "intake"  # the lease of the one intake
CANCELLED = PREFIX + "cancelled"  # pub/sub channel: `tenant|job`

#: What stands after the key of a stage.
STAGE_PARTS = ("", ":done", ":pending", ":messages", ":queues", ":units", ":left", ":active")

#: Stands for a tenant where a message's tenant is not known (no tenant is named so).
FOREIGN = "_broker"


def job(tenant: str, job_id: str) -> str:
    """Return the key of a job's record (hash)."""
    return f"{PREFIX}job:{tenant}:{job_id}"


def jobs(tenant: str) -> str:
    """Return the key of a tenant's jobs (sorted set, score: when submitted)."""
    return f"{PREFIX}jobs:{tenant}"


def stages(tenant: str, job_id: str) -> str:
    """Return the key of the names of a job's stages (set)."""
    return f"{PREFIX}stages:{tenant}:{job_id}"


def stage(tenant: str, job_id: str, name: str) -> str:
    """Return the key of a stage's record (hash); `:done`, `:pending`, `:units`, `:active` … stand after it."""
    return f"{PREFIX}stage:{tenant}:{job_id}:{name}"


def request(tenant: str, job_id: str) -> str:
    """Return the key of an open job's request, where it is small (JSON; the object store has it in any case)."""
    return f"{PREFIX}request:{tenant}:{job_id}"


def result(tenant: str, job_id: str) -> str:
    """Return the key of the result of a job that ended a moment ago, where it is small (JSON; for who waits for it)."""
    return f"{PREFIX}result:{tenant}:{job_id}"


def ended(tenant: str, job_id: str) -> str:
    """Return the key of the stream in which a job's end stands for a minute: who wants nothing else waits for it."""
    return f"{PREFIX}ended:{tenant}:{job_id}"


def callers(tenant: str, job_id: str) -> str:
    """Return the key of a job's callers (set): who joined (`in|…`) or left (`out|…`); correlation ids (`told|…`)."""
    return f"{PREFIX}callers:{tenant}:{job_id}"


def staging(tenant: str, job_id: str, name: str) -> str:
    """Return the key under which the parts of a large stage wait until it is sealed."""
    return f"{PREFIX}staging:{tenant}:{job_id}:{name}"


def plan(tenant: str, job_id: str) -> str:
    """Return the key of a query's plan (string): what was selected and how it was cut into batches."""
    return f"{PREFIX}plan:{tenant}:{job_id}"


def attempts(tenant: str, job_id: str) -> str:
    """Return the key of the attempts of a job's units (hash `stage|unit` → n)."""
    return f"{PREFIX}attempts:{tenant}:{job_id}"


def events(tenant: str, job_id: str) -> str:
    """Return the key of a job's event stream."""
    return f"{PREFIX}events:{tenant}:{job_id}"


def results(tenant: str) -> str:
    """Return the key of a tenant's stream of ended jobs."""
    return f"{PREFIX}results:{tenant}"


def ready(queue: str, lane: str, tenant: str) -> str:
    """Return the key of a tenant's line for a queue (list); lane `i` is interactive, `b` bulk."""
    return f"{PREFIX}ready:{queue}:{lane}:{tenant}"


def turn(queue: str, lane: str) -> str:
    """Return the key of the tenants that wait for a queue, in turn (list)."""
    return f"{PREFIX}turn:{queue}:{lane}"


def flight(queue: str) -> str:
    """Return the key of the messages of a queue that are in the broker and not started (sorted set)."""
    return f"{PREFIX}flight:{queue}"


def corpus_lock(tenant: str, corpus: str) -> str:
    """Return the key that names the job which is indexing a corpus; the job owns it and removes it at its end."""
    return f"{PREFIX}corpus:{tenant}:{corpus}"


def in_flight(tenant: str, digest: str) -> str:
    """Return the key that names the open job of a question, so that equal questions share it."""
    return f"{PREFIX}inflight:{tenant}:{digest}"


def answer(tenant: str, digest: str) -> str:
    """Return the key of a finished answer (by version, question and options)."""
    return f"{PREFIX}answer:{tenant}:{digest}"


def answer_hits(tenant: str) -> str:
    """Return the key that counts, for each corpus, questions that got a finished answer; `delete` removes its field."""
    return f"{PREFIX}answer-hits:{tenant}"


def rating(tenant: str, corpus: str, digest: str) -> str:
    """Return the key of a community's rating (by report, question, prompt and model); the corpus is encoded."""
    return f"{PREFIX}rating:{tenant}:{corpus}:{digest}"


def cached(tenant: str, corpus: str, digest: str = "") -> str:
    """Return the key of a cached map reply; without a digest what all those of a corpus begin with."""
    return f"{PREFIX}cache:{tenant}:{corpus}:{digest}"


def requests(tenant: str) -> str:
    """Return the key of a tenant's stream of requests: the door for producers in any language."""
    return f"{PREFIX}requests:{tenant}"


def gate(tenant: str) -> str:
    """Return the key that tells producers, before they add a request, whether it would be taken (`open` or why not)."""
    return f"{PREFIX}gate:{tenant}"


def idempotency(tenant: str, key: str) -> str:
    """Return the key that names the job of an idempotency key, and what was asked with it."""
    return f"{PREFIX}idempotency:{tenant}:{key}"


def dead_letters(tenant: str) -> str:
    """Return the key of a tenant's dead letters (stream)."""
    return f"{PREFIX}dead:{tenant}"


def parked(queue: str) -> str:
    """Return the key of messages that wait for a newer worker (list)."""
    return f"{PREFIX}parked:{queue}"


def waits(tenant: str, job_id: str) -> str:
    """Return the key that says which server a job waits for just now (JSON, with a short TTL)."""
    return f"{PREFIX}waits:{tenant}:{job_id}"
