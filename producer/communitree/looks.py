"""Looks: small jobs that have a worker read the tables, because the client carries no Parquet reader."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from communitree.events import follow
from communitree.outcome import as_error
from communitree_shared.errors import CommunitreeError, InfrastructureError
from communitree_shared.ledger.jobs import Jobs

#: A little longer than the job's own deadline.
_SECONDS = 310.0


@contextlib.contextmanager
def looking(jobs: Jobs, corpus: str, op: str, args: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Have a worker look; yield the job and what it found. The job's objects are removed afterwards.

    Raises:
        CorpusNotFound: no published version. InfrastructureError: no worker did it in time.
        CommunitreeError: of the kind that the worker met.
    """
    job = jobs.submit_look(corpus, op, args).job
    try:
        for _ in follow(jobs, job, timeout=_SECONDS):
            pass
        record, raw = jobs.record(job), jobs.result(job)
        if raw is None or raw.get("error") or raw.get("status") == "failed":
            raise as_error(raw, record, f"The look at {op} of {corpus!r} failed.")
        yield job, raw.get("result", raw)
    except TimeoutError as error:
        jobs.cancel(job)
        raise InfrastructureError(
            f"No worker has looked at {op} of {corpus!r} within {_SECONDS:.0f} s.",
            hint="Is `communitree up` (or `communitree worker cpu`) running?",
        ) from error
    finally:
        with contextlib.suppress(CommunitreeError):
            jobs.store.delete_all(list(jobs.store.keys(jobs.keys.job(job, ""))))


def download(jobs: Jobs, job: str, entry: str | dict[str, Any], folder: Path) -> Path:
    """Write one object of a look's result into a folder, whole or not at all; return the file.

    Args:
        jobs: the tenant's.
        job: the look.
        entry: the file's name (the object is then `jobs/<job>/export/<name>`), or its `name` and `key`.
        folder: where to write.
    """
    name = entry if isinstance(entry, str) else str(entry["name"])
    key = "" if isinstance(entry, str) else str(entry.get("key", ""))
    path = folder / Path(name).name
    aside = path.with_name(f".{path.name}.part")
    aside.write_bytes(jobs.store.get(key or jobs.keys.job(job, f"export/{name}")))
    aside.replace(path)
    return path
