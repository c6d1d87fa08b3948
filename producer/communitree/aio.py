"""The client for asyncio: the same calls, each in a thread of the loop's pool.

One implementation on purpose: a job is followed by a blocking read of one stream, which costs a thread and no more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from communitree.client import Client, Source
from communitree.events import Event, Restart
from communitree.sources import Gathered
from communitree_shared.contract.index_plan import IndexPlan
from communitree_shared.contract.job_views import JobRow, JobView
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.contract.results import Answer, IndexResult, Plan, Tree
from communitree_shared.errors import CommunitreeError
from communitree_shared.ledger.jobs import Submitted
from communitree_shared.settings import Settings

T = TypeVar("T")


class AsyncClient:
    """`async with AsyncClient() as client: answer = await client.ask(...)`. See Client for each call."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._client: Client | None = None

    @property
    def sync(self) -> Client:
        """The blocking client underneath; made at its first use.

        Raises:
            StackNotRunning: no servers are set and no stack runs.
        """
        if self._client is None:
            self._client = Client(self._settings)
        return self._client

    async def __aenter__(self) -> AsyncClient:
        await asyncio.to_thread(lambda: self.sync)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; later calls raise UsageError."""
        if self._client is not None:
            await asyncio.to_thread(self._client.close)

    async def plan_index(
        self, source: Source | Sequence[Source], corpus: str, options: IndexOptions | None = None
    ) -> IndexPlan:
        """Return what an index would make and cost."""
        return await asyncio.to_thread(self.sync.plan_index, source, corpus, options)

    async def planned(self, job: str) -> IndexPlan:
        """Return what a job of `index --plan` found."""
        return await asyncio.to_thread(self.sync.planned, job)

    async def gather(
        self, source: Source | Sequence[Source], options: IndexOptions | None = None, *, follow_links: bool = False
    ) -> Gathered:
        """Return the files of a source, and what was left out and why."""
        return await asyncio.to_thread(self.sync.gather, source, options, follow_links=follow_links)

    async def submit_index(
        self,
        source: Source | Sequence[Source],
        corpus: str,
        options: IndexOptions | None = None,
        *,
        correlation_id: str = "",
        idempotency_key: str = "",
    ) -> str:
        """Upload documents and publish a corpus job; return its id."""
        return await asyncio.to_thread(
            lambda: self.sync.submit_index(
                source, corpus, options, correlation_id=correlation_id, idempotency_key=idempotency_key
            )
        )

    async def changed_settings(self, corpus: str, options: IndexOptions | None = None) -> list[str]:
        """Return a line for each setting in which a job would differ from the corpus's published version."""
        return await asyncio.to_thread(self.sync.changed_settings, corpus, options)

    async def replaced(self, corpus: str, gathered: Gathered) -> int:
        """Return how many files of the published version an index of these would not have."""
        return await asyncio.to_thread(self.sync.replaced, corpus, gathered)

    async def index(
        self, source: Source | Sequence[Source], corpus: str, options: IndexOptions | None = None
    ) -> IndexResult:
        """Index a source and wait for the result."""
        return await self.wait_index(await self.submit_index(source, corpus, options))

    async def submit(
        self,
        corpus: str,
        question: str,
        options: QueryOptions | None = None,
        *,
        correlation_id: str = "",
        idempotency_key: str = "",
    ) -> Submitted:
        """Publish a query job."""
        names = {"correlation_id": correlation_id, "idempotency_key": idempotency_key}
        return await asyncio.to_thread(lambda: self.sync.submit(corpus, question, options, **names))

    async def ask(
        self, corpus: str, question: str, options: QueryOptions | None = None, *, idempotency_key: str = ""
    ) -> Answer:
        """Ask and wait for the answer. When this is cancelled, so is the job (unless others wait for it)."""
        submitting = asyncio.ensure_future(self.submit(corpus, question, options, idempotency_key=idempotency_key))
        try:
            # Its thread cannot be stopped: a job that is being submitted when this is cancelled will be there.
            return await self.wait_answer(await asyncio.shield(submitting))
        except asyncio.CancelledError:
            with contextlib.suppress(CommunitreeError):  # where it was refused there is nothing to cancel
                job = (await asyncio.shield(submitting)).job
                await asyncio.shield(asyncio.to_thread(self.sync.cancel, job))
            raise

    async def stream(
        self, corpus: str, question: str, options: QueryOptions | None = None
    ) -> AsyncIterator[str | Restart | Answer]:
        """Ask; yield the answer's text as it is written, then the Answer; as `Client.stream`."""
        async for piece in _in_thread(lambda: self.sync.stream(corpus, question, options)):
            yield piece

    async def events(self, job: str, after: str = "") -> AsyncIterator[Event]:
        """Yield a job's events until its last."""
        async for event in _in_thread(lambda: self.sync.events(job, after)):
            if event is not None:
                yield event

    async def ending(self, job: str, timeout: float | None = None) -> AsyncIterator[None]:
        """Yield about once a second until a job has ended."""
        async for _ in _in_thread(lambda: self.sync.ending(job, timeout)):
            yield None

    async def wait(self, job: str, timeout: float | None = None) -> Answer | IndexResult | IndexPlan:
        """Wait for a job's end and return its result."""
        async for _ in self.ending(job, timeout):
            pass
        return await self.result(job)

    async def result(self, job: str) -> Answer | IndexResult | IndexPlan:
        """Return the result of a job that has ended."""
        return await asyncio.to_thread(self.sync.result, job)

    async def wait_answer(self, job: str | Submitted, timeout: float | None = None) -> Answer:
        """Wait for a query job."""
        async for _ in self.ending(job if isinstance(job, str) else job.job, timeout):
            pass
        return await asyncio.to_thread(self.sync.wait_answer, job)

    async def wait_index(self, job: str, timeout: float | None = None) -> IndexResult:
        """Wait for a corpus job."""
        async for _ in self.ending(job, timeout):
            pass
        return await asyncio.to_thread(self.sync.wait_index, job)

    async def plan(self, corpus: str, question: str, options: QueryOptions | None = None) -> Plan:
        """Return what this question would read and cost."""
        return await asyncio.to_thread(self.sync.plan, corpus, question, options)

    async def plans(self, corpus: str, question: str, options: QueryOptions | None = None) -> list[Plan]:
        """Return the plans of all selections."""
        return await asyncio.to_thread(self.sync.plans, corpus, question, options)

    async def tree(self, corpus: str) -> Tree:
        """Return the community tree."""
        return await asyncio.to_thread(self.sync.tree, corpus)

    async def report(self, corpus: str, community: int) -> dict[str, Any]:
        """Return a community's report."""
        return await asyncio.to_thread(self.sync.report, corpus, community)

    async def source(self, corpus: str, text_unit: str) -> dict[str, Any]:
        """Return a text unit in its document."""
        return await asyncio.to_thread(self.sync.source, corpus, text_unit)

    async def export(self, corpus: str, folder: Source, *, own_columns: bool = True) -> list[Path]:
        """Write a corpus's tables into a folder."""
        return await asyncio.to_thread(lambda: self.sync.export(corpus, folder, own_columns=own_columns))

    async def corpora(self) -> list[dict[str, Any]]:
        """Return all corpora."""
        return await asyncio.to_thread(self.sync.corpora)

    async def delete(self, corpus: str) -> int:
        """Remove a corpus."""
        return await asyncio.to_thread(self.sync.delete, corpus)

    async def collect(self, *, older_than: float | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Remove what nothing needs and that is old."""
        return await asyncio.to_thread(lambda: self.sync.collect(older_than=older_than, dry_run=dry_run))

    async def jobs(self, limit: int = 100) -> list[JobRow]:
        """Return the newest jobs."""
        return await asyncio.to_thread(self.sync.jobs, limit)

    async def job(self, job: str) -> JobView:
        """Return a job's state, progress and events."""
        return await asyncio.to_thread(self.sync.job, job)

    async def cancel(self, job: str) -> str:
        """Take this caller from a job."""
        return await asyncio.to_thread(self.sync.cancel, job)

    async def resume(self, job: str) -> str:
        """Take up a job that failed, was cancelled or lost."""
        return await asyncio.to_thread(self.sync.resume, job)

    async def dead_letters(self, limit: int = 100) -> list[dict[str, Any]]:
        """Return the newest units that were given up."""
        return await asyncio.to_thread(self.sync.dead_letters, limit)

    async def redrive(self) -> list[str]:
        """Resume the jobs of all dead letters; return the jobs."""
        return await asyncio.to_thread(self.sync.redrive)


async def _in_thread(start: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """Yield from a blocking iterator, each step in a thread: a cancelled consumer leaves one step behind at most."""
    iterator = await asyncio.to_thread(start)
    ended = object()
    while (item := await asyncio.to_thread(next, iterator, ended)) is not ended:
        yield item  # type: ignore[misc]
