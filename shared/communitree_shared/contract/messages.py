"""What travels through the queues: one JSON object a message, versioned in its task's name.

A message carries ids, object keys and small numbers, never text. `schemas()` gives the JSON Schemas that
`docs/messages.md` publishes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from communitree_shared.errors import BadInput, NewerMessage

VERSION = 1

#: Queue prefix in the broker. `<stage>.local` twins are served by the workers for CPU work.
QUEUE_PREFIX = "communitree."

#: Stages that may call a model, each with settings and a queue of its own.
ModelStage = Literal["extract", "report", "rate", "map", "reduce"]
MODEL_STAGES: tuple[ModelStage, ...] = get_args(ModelStage)

#: Queues whose work waits for a model endpoint, and those whose work computes.
MODEL_QUEUES = MODEL_STAGES
LOCAL_QUEUES = tuple(f"{name}.local" for name in MODEL_QUEUES)
CPU_QUEUES = ("corpus", "cluster", "query", *LOCAL_QUEUES)
QUEUES = (*MODEL_QUEUES, *CPU_QUEUES)

#: Each task, in the order of a job's life: the queue it goes to (its `.local` twin where the built-in model does the
#: work), and what it does, for the documentation.
_TASKS = (
    ("communitree.corpus.ingest.v1", "corpus", "read documents or graph tables, cut text units"),
    ("communitree.corpus.extract.v1", "extract", "find entities and relationships in one shard"),
    ("communitree.corpus.merge.v1", "corpus", "unite the shards into one table each"),
    ("communitree.corpus.describe.v1", "extract", "summarise one long description"),
    ("communitree.corpus.described.v1", "corpus", "put the summaries into the tables"),
    ("communitree.corpus.cluster.v1", "cluster", "split the graph into its level-0 communities"),
    ("communitree.corpus.subtree.v1", "cluster", "the tree below one large level-0 community"),
    ("communitree.corpus.assemble.v1", "cluster", "number the communities, write `communities.parquet`"),
    ("communitree.corpus.rows.v1", "corpus", "count the tokens of every row, once"),
    ("communitree.corpus.level.v1", "corpus", "a level's evidence, from rows and the reports below"),
    ("communitree.corpus.report.v1", "report", "write one report"),
    ("communitree.corpus.publish.v1", "corpus", "check the tables, write the manifest, swap `current`"),
    ("communitree.corpus.plan.v1", "corpus", "say what an index would make and cost (`index --plan`)"),
    ("communitree.query.plan.v1", "query", "select the reports, cut batches"),
    ("communitree.query.rewrite.v1", "reduce", "rewrite a question of a conversation to stand alone"),
    ("communitree.query.rate.v1", "rate", "rate candidates of a relevance walk"),
    ("communitree.query.walk.v1", "query", "decide a relevance walk's next step"),
    ("communitree.query.map.v1", "map", "read up to sixteen batches: points"),
    ("communitree.query.reduce.v1", "reduce", "put the points together, check citations, commit the answer"),
    ("communitree.job.finish.v1", "corpus", "end a job whose critical step failed"),
    ("communitree.look.v1", "query", "read a version's tables for `tree`, `report`, `source`, `export`, `--plan`"),
)
TASKS: dict[str, str] = {task: queue for task, queue, _ in _TASKS}
DOES: dict[str, str] = {task: does for task, _, does in _TASKS}


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


class ListObject(_Body, extra="forbid"):
    """A list of documents as an object `<tenant>/corpora/<corpus>/lists/<sha256>`: JSON Lines, a document a line."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0, description="of the list itself, in bytes")


class DocumentList(ListObject):
    """A list of documents that was read to its end."""

    count: int = Field(ge=1, description="documents")
    bytes: int = Field(ge=0, description="of all documents, equal ones counted once")


class CorpusRequest(_Body):
    """A corpus job as asked for: `jobs/<job>/request.json`."""

    kind: str = "corpus"
    job: str
    corpus: str
    version: str
    documents: list[dict[str, Any]] = Field([], description="name, sha256, size of each uploaded file")
    document_list: DocumentList | None = Field(None, description="instead of `documents`, where these are many")
    left_out: list[LeftOut] = Field([], description="what the caller's side did not upload, by reason")
    options: dict[str, Any] = Field({}, description="IndexOptions: those of the corpus, and over them those given")
    given: dict[str, Any] = Field({}, description="the options that the caller gave by name")
    settings: dict[str, Any] = Field({}, description="what the new version keeps for later jobs")

    @property
    def count(self) -> int:
        """Return how many documents there are."""
        return self.document_list.count if self.document_list else len(self.documents)


class QueryRequest(_Body):
    """A query job as asked for: `jobs/<job>/request.json`."""

    kind: str = "query"
    job: str
    corpus: str
    version: str = Field(description="the version that was published when the question was asked")
    question: str
    options: dict[str, Any] = {}


class LookRequest(_Body):
    """A look at tables: `tree`, `report`, `source`, `export`, `plan`; at all corpora: `corpora` (without a corpus)."""

    kind: str = "look"
    job: str
    corpus: str
    version: str
    op: str
    args: dict[str, Any] = {}
    told: bool = Field(False, description="its end is told in the tenant's stream of results, with what it found")


class StreamRequest(_Body, extra="forbid"):
    """What a producer in any language adds to `communitree:requests:<tenant>`, as JSON in the field `request`.

    The tenant is the stream's, never the payload's. A corpus request lists documents that lie in the bucket already,
    or names an object with the list.
    """

    v: int = Field(VERSION, le=VERSION)
    kind: Literal["query", "corpus", "look", "cancel"]
    corpus: str = Field("", max_length=200)
    question: str = Field("", max_length=20_000)
    job: str = Field("", max_length=128, description="of `cancel`")
    documents: list[StreamDocument] = Field([], max_length=100_000)
    document_list: ListObject | None = Field(None, description="instead of `documents`")
    op: Literal["", "tree", "report", "source", "export", "plan", "corpora"] = Field("", description="of `look`")
    args: dict[str, Any] = Field({}, description="of `look`: `LookArguments` of its `op`")
    options: dict[str, Any] = Field({}, description="QueryOptions or IndexOptions")
    correlation_id: str = Field("", max_length=200, description="comes back with every outcome")
    idempotency_key: str = Field("", max_length=200, pattern=r"^[A-Za-z0-9._:-]*$")


class StreamDocument(_Body, extra="forbid"):
    """A document that was put to `<tenant>/corpora/<corpus>/documents/<sha256>`."""

    name: str = Field(min_length=1, max_length=5000)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of each published shape: messages, requests, and the raw entries of streams."""
    from communitree_shared.contract.stream_entries import ENTRIES  # only documentation asks for them

    shapes: dict[str, type[BaseModel]] = {
        "message": Message, "corpus-request": CorpusRequest, "query-request": QueryRequest, "look-request": LookRequest,
        "stream-request": StreamRequest,
    }  # fmt: skip
    return {name: shape.model_json_schema() for name, shape in {**shapes, **ENTRIES}.items()}
