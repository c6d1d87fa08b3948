"""What a stage's function gets, and what it gives back."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from communitree_shared.contract.messages import CorpusRequest, LookRequest, Message, ModelStage, QueryRequest, Unit
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.contract.results import Usage
from communitree_shared.errors import BadInput, CommunitreeError, CorpusNotFound
from communitree_shared.ledger import Stage, Step
from communitree_shared.objects.keys import Keys
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.model.chat import CallContext
from communitree_workers.runtime.loop import LoopHere
from communitree_workers.runtime.services import Services
from communitree_workers.tables import io

T = TypeVar("T")

#: Bytes above which a table is written through a file, in pieces: ids that rows repeat take a tenth of that here.
_LARGE = 8 * 2**20

#: A result of more bytes is not kept in Redis.
_SMALL_RESULT = 65_536


@dataclass
class Outcome:
    """The end of a unit. `data` is kept in the ledger (small), `event` is told to who follows the job."""

    ok: bool = True
    data: dict[str, Any] = field(default_factory=dict)
    event: dict[str, Any] = field(default_factory=dict)


def failed(error: CommunitreeError, usage: Usage, **event: Any) -> Outcome:
    """Return the outcome of a unit that failed for good, with what it has cost.

    Raises:
        CommunitreeError: the error itself, where the unit is to be tried again or its job has ended.
    """
    if error.retryable or error.code == "cancelled":
        raise error
    data = {"cause": error.code, "message": error.message, "hint": error.hint, "usage": usage.model_dump()}
    return Outcome(ok=False, data=data, event=event)


@dataclass
class UnitContext:
    """One unit of one message, with the services of its process."""

    services: Services
    message: Message
    unit: Unit
    attempt: int
    deadline: float | None
    cancelled: Callable[[], bool]

    @property
    def args(self) -> dict[str, Any]:
        """Return the unit's arguments."""
        return self.unit.args

    @property
    def keys(self) -> Keys:
        """Return the object keys of the job's tenant."""
        return self.services.keys(self.message.tenant)

    def call(self, *, usd: float | None = None, tokens: int | None = None, bulk: bool = False) -> CallContext:
        """Return on whose behalf model calls are made, with the job's ceiling of money and tokens."""
        message = self.message
        budget = self.services.budget(message.tenant, message.job, usd, tokens)
        return CallContext(message.tenant, message.job, self.deadline, self.cancelled, budget, bulk)

    # --- the job's request ----------------------------------------------------------------------------------

    def _request(self, make: Callable[[dict[str, Any]], T]) -> T:
        """Return the parsed request, parsed once a process: that of a large corpus lists many documents."""
        key = self.keys.job(self.message.job, "request.json")

        def parsed() -> tuple[T, int]:
            try:
                data = self.services.object(key)
                return make(json.loads(data)), 4 * len(data)
            except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
                what = "is gone" if isinstance(error, KeyError) else f"is damaged ({type(error).__name__})"
                raise BadInput(f"The request of job {self.message.job} {what}: {key}.", hint="Ask again.") from None

        found: T = self.services.value(f"{key}#parsed", parsed)
        return found

    def corpus_request(self) -> tuple[CorpusRequest, IndexOptions]:
        """Return a corpus job's request and its options."""

        def make(value: dict[str, Any]) -> tuple[CorpusRequest, IndexOptions]:
            request = CorpusRequest.model_validate(value)
            return request, IndexOptions.stored(request.options)

        return self._request(make)

    def query_request(self) -> tuple[QueryRequest, QueryOptions]:
        """Return a query job's request and its options."""

        def make(value: dict[str, Any]) -> tuple[QueryRequest, QueryOptions]:
            request = QueryRequest.model_validate(value)
            return request, QueryOptions.stored(request.options)

        return self._request(make)

    def look_request(self) -> LookRequest:
        """Return a look's request."""
        return self._request(LookRequest.model_validate)

    async def load(self, key: str) -> bytes:
        """Return an immutable object without holding up the loop.

        Raises:
            KeyError: there is none.
        """
        known: bytes | None = self.services.objects.peek(key)
        return known if known is not None else await self.to_thread(self.services.object, key)

    async def save(self, key: str, data: bytes) -> None:
        """Write an object without holding up the loop."""
        await self.to_thread(self.services.store.put, key, data)

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking work without holding up the loop; in a process that computes, simply run it."""
        if isinstance(self.services.loop, LoopHere):
            return work(*args)
        return await asyncio.to_thread(work, *args)

    async def in_ledger(self, work: Callable[..., T], *args: Any) -> T:
        """Run a call of the ledger without holding up the loop, and without waiting behind reads of a slow store."""
        loop = self.services.loop
        if isinstance(loop, LoopHere):
            return work(*args)
        here = contextvars.copy_context()  # it acts for the same step
        return await asyncio.get_running_loop().run_in_executor(
            loop.ledger_calls, functools.partial(here.run, work, *args)
        )

    def first_in_job(self, what: str) -> bool:
        """Say whether this unit is the first of its job to do something that only one shall do."""
        return self.services.ledger.first(self.message.tenant, self.message.job, what, self.unit.id)

    def has_model(self, stage: ModelStage) -> bool:
        """Say whether this process has the model for a stage with which the job was planned; if not, in the job, too.

        That is said once: the first unit that finds it out writes it into the job's record.
        """
        mine, planned = self.services.settings.model(stage).model, str(self.args["model"])
        if planned in (mine, EXTRACTIVE):  # the built-in one is in every process
            return True
        if self.first_in_job("models_differ"):
            words = f"{stage}: {planned} ≠ {mine}"
            self.services.ledger.update(self.message.tenant, self.message.job, {"other_models": words})
            self.tell(
                "warning",
                message=f"This worker has another model than the job was planned with ({words}). "
                "Give all workers the same COMMUNITREE_LLM_… settings.",
            )
        return False

    # --- tables of a version --------------------------------------------------------------------------------

    def read(self, corpus: str, version: str, *names: str, made_by: str = "") -> io.Tables:
        """Return tables of a version, or as a step on the way to it left them.

        Raises:
            CorpusNotFound: the version is gone.
        """
        try:
            return {name: self.services.table(self._table(corpus, version, name, made_by)) for name in names}
        except KeyError as missing:
            raise CorpusNotFound(
                f"{missing.args[0]} is gone: the corpus {corpus!r} was deleted or indexed anew meanwhile.",
                hint="`communitree corpora` lists what there is.",
            ) from None

    def write(self, corpus: str, version: str, tables: dict[str, pa.Table], *, made_by: str = "") -> None:
        """Write tables of a version that is not published yet, or of a step on the way to it."""
        for name, table in tables.items():
            key = self._table(corpus, version, name, made_by)
            if table.nbytes <= _LARGE:
                self.services.store.put(key, io.to_bytes(io.conform(name, table)))
                continue
            with io.to_file(name, table) as (file, size):
                self.services.store.put_file(key, file, size)

    def carry(
        self, corpus: str, version: str, name: str, made_by: str, onward: str,
        change: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:  # fmt: skip
        """Pass a table on, from one step to another: as it is, or changed. No other table is held meanwhile."""
        data = self.services.store.get(self._table(corpus, version, name, made_by))
        if change is None:
            self.services.store.put(self._table(corpus, version, name, onward), data)
            return
        table = change(io.from_bytes(data))
        del data
        self.write(corpus, version, {name: table}, made_by=onward)

    def _table(self, corpus: str, version: str, name: str, made_by: str) -> str:
        if made_by:
            return self.keys.build(corpus, version, f"{made_by}/{name}.parquet")
        return self.keys.table(corpus, version, name)

    # --- what follows ---------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Open the step that follows; repeating it changes nothing."""
        ledger = self.services.ledger
        self.services.publisher.publish(ledger.step(self.message.tenant, self.message.job, step))

    def open(self, stage: Stage, messages: Iterable[tuple[str, str, list[str], str]]) -> None:
        """Seal a wide stage with these messages; repeating it changes nothing."""
        ledger = self.services.ledger
        _, outgoing = ledger.open(self.message.tenant, self.message.job, stage, list(messages))
        self.services.publisher.publish(outgoing)

    def messages(self, stage: Stage, units: Iterable[Unit], *, local: bool, per_message: int = 1) -> list[Any]:
        """Return the messages that carry these units."""
        return stage.messages(self.message.tenant, self.message.job, units, local=local, per_message=per_message)

    def finish(
        self, state: str, summary: dict[str, str], reason: str = "", ttl: float | None = None, result: bytes = b""
    ) -> bool:
        """End the job; returns whether it was this call that ended it.

        `result`: its result object, which is stored already; who waits for it gets a small one from the ledger.
        """
        services, message = self.services, self.message
        keep, marker = services.settings.job_ttl if ttl is None else ttl, self.keys.open_job(message.job)
        stored = "result" in summary
        if stored:  # The end can be read from the object store. Afterwards nobody would come back for the marker.
            services.store.delete(marker)
        told = result.decode() if len(result) <= _SMALL_RESULT else ""
        status, outgoing = services.ledger.finish(message.tenant, message.job, state, summary, keep, reason, told)
        services.publisher.publish(outgoing)
        if not stored:
            services.store.delete(marker)
        return status == "ok"

    def tell(self, kind: str, **fields: Any) -> None:
        """Append an event to the job's stream."""
        self.services.ledger.event(self.message.tenant, self.message.job, kind, **fields)
