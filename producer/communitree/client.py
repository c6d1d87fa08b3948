"""The client: submit, follow, ask, look, operate. Blocking; `communitree.aio.AsyncClient` is the same for asyncio.

A thin layer: documents go up as bytes, requests as small objects and one ledger entry; everything that needs the
tables (answers, plans, trees, reports) is made by workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from communitree import catalogue, listing, recovery
from communitree.collecting import collect
from communitree.embedded.discover import discover
from communitree.events import Event, Restart, ending, follow, text_of, to_the_end
from communitree.looks import export, looking
from communitree.outcome import as_result, plan_of
from communitree.sources import Gathered, gather
from communitree.upload import upload
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract import ask_defaults, corpus_settings
from communitree_shared.contract.index_plan import IndexPlan
from communitree_shared.contract.job_views import JobRow, JobView
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.contract.results import Answer, IndexResult, Plan, Tree
from communitree_shared.errors import UsageError
from communitree_shared.ledger.client import Ledger
from communitree_shared.ledger.jobs import ENDED, Jobs, Submitted
from communitree_shared.objects.keys import corpus_name
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import close, redis_client
from communitree_shared.settings import Settings

Source = str | os.PathLike[str]

#: A caller waits so long for servers that do not answer; who follows a job has more patience.
_PATIENCE, _FOLLOWING = 15.0, 120.0


class Client:
    """Everything a caller can do, for one tenant.

    Args:
        settings: where the servers are; by default the environment's, else the embedded stack that runs on its `home`.

    Raises:
        StackNotRunning: no servers are set and no stack runs.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = discover(settings or Settings())
        self._redis = redis_client(self.settings)
        self._ledger = Ledger(self._redis, patience=_PATIENCE)
        self._store = Store(self.settings, patience=_PATIENCE)
        self._publisher = Publisher(self.settings, self._ledger)
        self._open: Jobs | None = Jobs(self.settings, self._store, self._ledger, self._publisher)

    @property
    def _jobs(self) -> Jobs:
        # Every call begins with them: closed connections would open again by themselves, and submit half a job.
        if self._open is None:
            raise UsageError("This client was closed.", hint="Make a new one: `with Client() as client:`.")
        return self._open

    def close(self) -> None:
        """Close all connections; later calls raise UsageError."""
        self._open = None
        close(self._redis)
        self._publisher.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- corpora --------------------------------------------------------------------------------------------

    def submit_index(
        self,
        source: Source | Sequence[Source] | Gathered,
        corpus: str,
        options: IndexOptions | None = None,
        *,
        correlation_id: str = "",
        idempotency_key: str = "",
        progress: Callable[[int, int], None] = lambda ended, total: None,
    ) -> str:
        """Upload documents and publish a corpus job; return its id.

        Args:
            source: files, folders, patterns, `-`; or what `gather` returned for them.
            corpus: its name; an existing corpus gets a new version, of these documents alone.
            options: see IndexOptions.
            correlation_id: comes back with the job's entry in the tenant's results stream.
            idempotency_key: a second submission with the same key, corpus, documents and options gives the same job.
            progress: takes (uploaded, to upload).

        Raises:
            UsageError: nothing can be read, or, with `options.read.strict`, a file cannot.
            CorpusBusy: another job is indexing it.
        """
        options = options or IndexOptions()
        jobs, corpus = self._jobs, corpus_name(corpus)
        if not options.plan_only and not idempotency_key:  # the job that is busy may be the one of this key
            catalogue.refuse_busy(jobs, corpus)
        gathered = source if isinstance(source, Gathered) else self.gather(source, options)
        gathered.refuse_losses(options.read.strict)
        self._store.ensure_bucket()
        upload(self._store, jobs.keys, corpus, gathered.documents, progress)
        listed = [document.listed() for document in gathered.documents]
        return jobs.submit_index(
            corpus, listed, options, left_out=gathered.left_out(), correlation_id=correlation_id,
            idempotency_key=idempotency_key,
        ).job  # fmt: skip

    def gather(
        self, source: Source | Sequence[Source], options: IndexOptions | None = None, *, follow_links: bool = False
    ) -> Gathered:
        """Return the files of a source, and what was left out and why, without uploading: see `sources.gather`."""
        most, tables = self.settings.max_upload_bytes, options is not None and options.graph
        return gather(source, tables=tables, max_bytes=most, follow_links=follow_links)

    def changed_settings(self, corpus: str, options: IndexOptions | None = None) -> list[str]:
        """Return a line for each setting in which a job would differ from the corpus's published version."""
        self._jobs.store.ensure_bucket()  # on new servers this may come before the first worker
        manifest = self._jobs.manifest(corpus_name(corpus))
        chosen, _ = corpus_settings.effective(manifest, options or IndexOptions())
        return corpus_settings.changes(manifest, chosen)

    def replaced(self, corpus: str, gathered: Gathered) -> int:
        """Return how many files of the published version an index of these would not have."""
        return catalogue.replaced(self._jobs, corpus_name(corpus), {d.sha256 for d in gathered.documents})

    def index(self, source: Source | Sequence[Source], corpus: str, options: IndexOptions | None = None) -> IndexResult:
        """Index a source and wait for the result: the corpus then has these documents alone (see `changes`)."""
        return self.wait_index(self.submit_index(source, corpus, options))

    def plan_index(
        self, source: Source | Sequence[Source] | Gathered, corpus: str, options: IndexOptions | None = None
    ) -> IndexPlan:
        """Return what an index would make and cost. Documents are uploaded; no model is called, nothing is published.

        Raises:
            UsageError: nothing can be read. CommunitreeError: of the kind that the job met.
        """
        planned = (options or IndexOptions()).model_copy(update={"plan_only": True})
        job = self.submit_index(source, corpus, planned)
        for _ in self.ending(job):
            pass
        return self.planned(job)

    def planned(self, job: str) -> IndexPlan:
        """Return what a job of `index --plan` found.

        Raises:
            JobNotFound: no such job. CommunitreeError: it failed, was cancelled, or has not ended.
        """
        return plan_of(self._jobs.record(job), self._jobs.result(job))

    def corpora(self) -> list[dict[str, Any]]:
        """Return all corpora: name, version, the job that indexes it now, counts."""
        self._jobs.store.ensure_bucket()
        return catalogue.corpora(self._jobs)

    def delete(self, corpus: str) -> int:
        """Remove a corpus; return how many objects it had."""
        return catalogue.delete(self._jobs, corpus)

    def collect(self, *, older_than: float | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Remove versions, units, documents, batches and job objects that nothing needs and that are old (`gc`).

        `older_than`: seconds; younger things stay. By default the time that an ended job's state is kept.
        """
        age = self.settings.job_ttl if older_than is None else older_than
        return collect(self._jobs, older_than=age, dry_run=dry_run)

    # --- questions ------------------------------------------------------------------------------------------

    def submit(
        self,
        corpus: str,
        question: str,
        options: QueryOptions | None = None,
        *,
        correlation_id: str = "",
        idempotency_key: str = "",
    ) -> Submitted:
        """Publish a query job, join an equal one in flight, or find its answer in the cache.

        An empty question with `options.again` is that job's. `idempotency_key`: a second submission with the same key
        and the same question and options gives the same job.

        Raises:
            UsageError: the question is empty, or the key was used for another. CorpusNotFound: no published version.
            AdmissionRefused: too many jobs.
        """
        options = options or QueryOptions()
        question = listing.asked(self._jobs, question, options.again)
        return self._jobs.submit_query(
            corpus, question, options, correlation_id=correlation_id, idempotency_key=idempotency_key
        )

    def ask(
        self, corpus: str, question: str, options: QueryOptions | None = None, *, idempotency_key: str = ""
    ) -> Answer:
        """Ask and wait for the answer with its account. A failed or partial answer is an answer: see `status`."""
        return self.wait_answer(self.submit(corpus, question, options, idempotency_key=idempotency_key))

    def stream(
        self, corpus: str, question: str, options: QueryOptions | None = None
    ) -> Iterator[str | Restart | Answer]:
        """Ask; yield the text as it is written, then the Answer, whose text is what came after the last Restart."""
        submitted = self.submit(corpus, question, options)
        yield from to_the_end(text_of(self.events(submitted.job)), lambda: self.wait_answer(submitted))

    def plan(self, corpus: str, question: str, options: QueryOptions | None = None) -> Plan:
        """Return what this question would read and cost; nothing is spent."""
        return self._plans(corpus, question, options or QueryOptions(), "one")[0]

    def plans(self, corpus: str, question: str, options: QueryOptions | None = None) -> list[Plan]:
        """Return the plans of all selections."""
        return self._plans(corpus, question, options or QueryOptions(), "all")

    def _plans(self, corpus: str, question: str, options: QueryOptions, which: str) -> list[Plan]:
        if options.again and which == "all":
            raise UsageError("--plan all goes not with --again, which reads the silent reports of that job.")
        question = listing.asked(self._jobs, question, options.again)
        options = ask_defaults.complete(options, self.settings.ask, side_by_side=which == "all")
        chosen = options.model_copy(update={"plan_only": which}).model_dump()
        found = self._look(corpus, "plan", {"question": question, "options": chosen})
        plans = found.get("plans", [found]) if isinstance(found, dict) else found
        return [Plan.model_validate(plan) for plan in plans]

    # --- looks ----------------------------------------------------------------------------------------------

    def tree(self, corpus: str) -> Tree:
        """Return the community tree."""
        return Tree.model_validate(self._look(corpus, "tree", {}))

    def report(self, corpus: str, community: int) -> dict[str, Any]:
        """Return a community's report with findings, evidence and what was omitted."""
        return dict(self._look(corpus, "report", {"community": community}))

    def source(self, corpus: str, text_unit: str) -> dict[str, Any]:
        """Return a text unit in its document."""
        return dict(self._look(corpus, "source", {"text_unit": text_unit}))

    def export(self, corpus: str, folder: Source, *, own_columns: bool = True) -> list[Path]:
        """Write a corpus's tables, with GraphRAG's names and columns, into a folder; return the files.

        Raises:
            UsageError: the folder cannot be written.
        """
        return export(self._jobs, corpus, Path(folder).expanduser(), own_columns=own_columns)

    def _look(self, corpus: str, op: str, args: dict[str, Any]) -> Any:
        with looking(self._jobs, corpus, op, args) as (_, found):
            return found

    # --- jobs -----------------------------------------------------------------------------------------------

    def events(self, job: str, after: str = "", timeout: float | None = None) -> Iterator[Event | None]:
        """Yield a job's events until its last; None about once a second while nothing happens."""
        self._patient(job)
        return follow(self._jobs, job, after, timeout)

    def ending(self, job: str, timeout: float | None = None) -> Iterator[None]:
        """Yield about once a second until a job has ended: cheaper than `events`. Raises as `wait`."""
        return iter(()) if self._patient(job).get("state") in ENDED else ending(self._jobs, job, timeout)

    def _patient(self, job: str) -> dict[str, str]:
        self._ledger.patience = self._store.patience = _FOLLOWING
        return self._jobs.record(job)

    def wait(self, job: str, timeout: float | None = None) -> Answer | IndexResult | IndexPlan:
        """Wait for a job's end and return its result.

        Raises:
            JobNotFound: no such job. TimeoutError: not ended within `timeout` seconds (the job goes on).
        """
        for _ in self.ending(job, timeout):
            pass
        return self.result(job)

    def result(self, job: str) -> Answer | IndexResult | IndexPlan:
        """Return the result of a job that has ended.

        Raises:
            JobNotFound: no such job. ResultGone: it was removed since. UsageError: the job has not ended.
        """
        record, raw = self._jobs.record(job), self._jobs.result(job)
        if raw is None and record.get("state") not in ENDED:
            raise UsageError(
                f"Job {job} has not ended: it is {record.get('state', 'unknown')}.",
                hint=f"`communitree job {job} --follow` waits for it.",
            )
        request = {} if raw else self._store.find_json(self._jobs.keys.job(job, "request.json")) or {}
        stages = {} if raw or record.get("kind") != "query" else self._jobs.stages_ended(job)
        return as_result(job, record, raw, request, stages)

    def wait_answer(self, job: str | Submitted, timeout: float | None = None) -> Answer:
        """Wait for a query job. Of what `submit` returned, the answer says whether it was known (`cached`)."""
        submitted = Submitted(job) if isinstance(job, str) else job
        result = self.wait(submitted.job, timeout)
        if not isinstance(result, Answer):
            raise UsageError(f"Job {submitted.job} is no query.")
        return result.model_copy(update={"cached": submitted.cached})

    def wait_index(self, job: str, timeout: float | None = None) -> IndexResult:
        """Wait for a corpus job."""
        result = self.wait(job, timeout)
        if not isinstance(result, IndexResult):
            raise UsageError(f"Job {job} is no corpus job.")
        return result

    def jobs(self, limit: int = 100) -> list[JobRow]:
        """Return the newest corpus and query jobs, the newest first."""
        return listing.newest(self._jobs, limit)

    def job(self, job: str) -> JobView:
        """Return a job's state, the progress of its stages and its events."""
        return listing.view(self._jobs, job)

    def cancel(self, job: str) -> str:
        """Take this caller from a job; it stops when none is left. Returns its state afterwards."""
        return self._jobs.cancel(job)

    def resume(self, job: str) -> str:
        """Take up a job that failed, was cancelled or lost; return the id of the job that does it.

        Nothing that was made is made again: a corpus job finds its units in the object store.

        Raises:
            JobNotFound: no such job. UsageError: it has ended well.
        """
        return recovery.resume(self._jobs, job)

    def dead_letters(self, limit: int = 100) -> list[dict[str, Any]]:
        """Return the newest units that were given up: job, stage, unit, attempts, why; `lost`: older ones went."""
        return recovery.dead_letters(self._jobs, limit)

    def redrive(self) -> list[str]:
        """Resume the jobs of all dead letters and clear these; return the jobs."""
        return recovery.redrive(self._jobs)
