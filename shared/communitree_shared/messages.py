"""What travels through the queues: one JSON object a message, versioned in its task's name.

A message carries ids, object keys and small numbers, never text. `schemas()` gives the JSON Schemas that
`docs/messages.md` publishes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from communitree_shared.errors import BadInput, NewerMessage

VERSION = 1

#: Queue prefix in the broker. `<stage>.local` twins are served by the workers for CPU work.
QUEUE_PREFIX = "communitree."

#: Queues whose work waits for a model endpoint, and those whose work computes.
MODEL_QUEUES = ("extract", "report", "rate", "map", "reduce")
LOCAL_QUEUES = tuple(f"{name}.local" for name in MODEL_QUEUES)
CPU_QUEUES = ("corpus", "cluster", "query", *LOCAL_QUEUES)
QUEUES = (*MODEL_QUEUES, *CPU_QUEUES)

#: task → the queue it goes to (its `.local` twin where the built-in model does the work)
TASKS: dict[str, str] = {
    "communitree.corpus.ingest.v1": "corpus",
    "communitree.corpus.extract.v1": "extract",
    "communitree.corpus.merge.v1": "corpus",
    "communitree.corpus.describe.v1": "extract",
    "communitree.corpus.described.v1": "corpus",
    "communitree.corpus.cluster.v1": "cluster",
    "communitree.corpus.subtree.v1": "cluster",
    "communitree.corpus.assemble.v1": "cluster",
    "communitree.corpus.rows.v1": "corpus",
    "communitree.corpus.level.v1": "corpus",
    "communitree.corpus.report.v1": "report",
    "communitree.corpus.publish.v1": "corpus",
    "communitree.corpus.plan.v1": "corpus",
    "communitree.query.plan.v1": "query",
    "communitree.query.rewrite.v1": "reduce",
    "communitree.query.rate.v1": "rate",
    "communitree.query.walk.v1": "query",
    "communitree.query.map.v1": "map",
    "communitree.query.reduce.v1": "reduce",
    "communitree.job.finish.v1": "corpus",
    "communitree.look.v1": "query",
}


#: What tenants, jobs, stages, messages and units are named with: nothing that parts a ledger's key, none that is empty.
NAME = r"^[A-Za-z0-9._-]+$"


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Unit(_Body):
    """One piece of idempotent work. `id` is a hash of its input, or its name where a stage has one unit."""

    id: str = Field(min_length=1, max_length=128, pattern=NAME)
    args: dict[str, Any] = {}


class Message(_Body):
    """One message: units of one stage that are worked on side by side and arrive one by one."""

    v: int = Field(VERSION, ge=1)
    task: str
    tenant: str = Field(max_length=64, pattern=NAME)
    job: str = Field(max_length=128, pattern=NAME)
    stage: str = Field(max_length=64, pattern=NAME)
    id: str = Field(max_length=128, pattern=NAME)
    units: list[Unit] = Field(min_length=1, max_length=256)
    deadline: float | None = Field(
        None, allow_inf_nan=False, description="unix seconds after which its units count as failed"
    )

    def dumps(self) -> str:
        """Return the message as JSON, keys sorted."""
        return json.dumps(self.model_dump(exclude_none=True), sort_keys=True, ensure_ascii=False)


def parse_message(body: Any) -> Message:
    """Return a message that came from a queue.

    Raises:
        NewerMessage: of a version or task that this worker does not know.
        BadInput: not a message.
    """
    version = body.get("v") if isinstance(body, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise NewerMessage(f"message version {version}, this worker knows {VERSION}")
    try:
        message = Message.model_validate(body)
    except ValidationError as error:
        where = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise BadInput(f"Not a message of communitree: {where}.") from None
    if message.task not in TASKS:
        raise NewerMessage(f"task {message.task} is unknown to this worker")
    return message


def queue_of(task: str, *, local: bool = False) -> str:
    """Return the broker's queue for a task."""
    name = TASKS[task]
    return QUEUE_PREFIX + (f"{name}.local" if local and name in MODEL_QUEUES else name)


def message_id(stage: str, units: list[Unit]) -> str:
    """Return a message's id: a hash of its stage and units, so that a repeated step makes the same messages."""
    digest = hashlib.sha256("\n".join([stage, *(u.id for u in units)]).encode())
    return digest.hexdigest()[:20]


class LeftOut(_Body):
    """Files that were not uploaded, for one reason: all are counted, the first ones named."""

    reason: str
    count: int = Field(ge=1)
    names: list[str] = Field([], max_length=100)
    by_rule: bool = Field(False, description="nothing is wrong with them: a note, no warning (hidden files)")

    def line(self, shown: int) -> str:
        """Return it as one sentence with so many names."""
        names = self.names[:shown]
        more = f" and {self.count - len(names):,} more" if self.count > len(names) else ""
        return f"not read, {self.reason}: {', '.join(names)}{more}"


class CorpusRequest(_Body):
    """A corpus job as asked for: `jobs/<job>/request.json`."""

    kind: str = "corpus"
    job: str
    corpus: str
    version: str
    documents: list[dict[str, Any]] = Field([], description="name, sha256, size of each uploaded file")
    left_out: list[LeftOut] = Field([], description="what the caller's side did not upload, by reason")
    options: dict[str, Any] = Field({}, description="IndexOptions: those of the corpus, and over them those given")
    given: dict[str, Any] = Field({}, description="the options that the caller gave by name")
    settings: dict[str, Any] = Field({}, description="what the new version keeps for later jobs")


class QueryRequest(_Body):
    """A query job as asked for: `jobs/<job>/request.json`."""

    kind: str = "query"
    job: str
    corpus: str
    version: str = Field(description="the version that was published when the question was asked")
    question: str
    options: dict[str, Any] = {}


class LookRequest(_Body):
    """A look at tables: `tree`, `report`, `source`, `export`, `plan` …"""

    kind: str = "look"
    job: str
    corpus: str
    version: str
    op: str
    args: dict[str, Any] = {}


class StreamRequest(_Body, extra="forbid"):
    """What a producer in any language adds to `communitree:requests:<tenant>`, as JSON in the field `request`.

    The tenant is the stream's, never the payload's. A corpus request lists documents that lie in the bucket already.
    """

    v: int = Field(VERSION, le=VERSION)
    kind: Literal["query", "corpus", "cancel"]
    corpus: str = Field("", max_length=200)
    question: str = Field("", max_length=20_000)
    job: str = Field("", max_length=128, description="of `cancel`")
    documents: list[StreamDocument] = Field([], max_length=100_000)
    options: dict[str, Any] = Field({}, description="QueryOptions or IndexOptions")
    correlation_id: str = Field("", max_length=200, description="comes back with every outcome")
    idempotency_key: str = Field("", max_length=200, pattern=r"^[A-Za-z0-9._:-]*$")


class StreamDocument(_Body, extra="forbid"):
    """A document that was put to `<tenant>/corpora/<corpus>/documents/<sha256>`."""

    name: str = Field(min_length=1, max_length=1000)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of each published shape."""
    shapes: dict[str, type[BaseModel]] = {
        "message": Message, "corpus-request": CorpusRequest, "query-request": QueryRequest, "look-request": LookRequest,
        "stream-request": StreamRequest,
    }  # fmt: skip
    return {name: shape.model_json_schema() for name, shape in shapes.items()}
