"""Looks: small jobs that have a worker read the tables, because the client carries no Parquet reader."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from communitree.events import JobLost, ending
from communitree.outcome import as_error
from communitree_shared.errors import CommunitreeError, InfrastructureError, UsageError
from communitree_shared.ledger.jobs import Jobs

#: A little longer than the job's own deadline.
_SECONDS = 310.0

#: A look that Redis does not know for so long is asked for again.
_LOST_AFTER = 3.0


@contextlib.contextmanager
def looking(jobs: Jobs, corpus: str, op: str, args: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Have a worker look; yield the job and what it found. The job's objects are removed afterwards.

    Raises:
        CorpusNotFound: no published version. InfrastructureError: no worker did it in time.
        CommunitreeError: of the kind that the worker met.
    """
    until, job = time.monotonic() + _SECONDS, ""
    try:
        job = _ended(jobs, corpus, op, args, until)
        record, raw = jobs.record(job), jobs.result(job)
        if raw is None or raw.get("error") or raw.get("status") == "failed":
            raise as_error(raw, record, f"The look at {op} of {corpus!r} failed.")
        yield job, raw.get("result", raw)
    except TimeoutError as error:
        raise InfrastructureError(
            f"No worker has looked at {op} of {corpus!r} within {_SECONDS:.0f} s.",
            hint="Is `communitree up` (or `communitree worker cpu`) running?",
        ) from error
    finally:
        if job:
            _forget(jobs, job)


def _ended(jobs: Jobs, corpus: str, op: str, args: dict[str, Any], until: float) -> str:
    """Have a worker look, again where Redis loses the job (a look leaves no marker and is cheap); return the job.

    Raises:
        TimeoutError: no worker did it in time.
    """
    while True:
        job = jobs.submit_look(corpus, op, args).job
        try:
            for _ in ending(jobs, job, timeout=until - time.monotonic(), lost_after=_LOST_AFTER):
                pass
        except JobLost:
            _forget(jobs, job)
        except TimeoutError:
            jobs.cancel(job)
            _forget(jobs, job)
            raise
        else:
            return job


def _forget(jobs: Jobs, job: str) -> None:
    with contextlib.suppress(CommunitreeError):
        jobs.store.delete_all(list(jobs.store.keys(jobs.keys.job(job, ""))))


def export(jobs: Jobs, corpus: str, folder: Path, *, own_columns: bool) -> list[Path]:
    """Write a corpus's tables into a folder, each whole or not at all; return the files.

    Raises:
        UsageError: the folder cannot be written. Others as `looking`.
    """
    jobs.current(corpus)  # no folder is made for what is not there
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with looking(jobs, corpus, "export", {"own_columns": own_columns}) as (job, found):
            return [_download(jobs, job, entry, folder) for entry in found["files"]]
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}.") from error


def _download(jobs: Jobs, job: str, entry: str | dict[str, Any], folder: Path) -> Path:
    """Write one file: `entry` is its name (the object is then `jobs/<job>/export/<name>`), or its `name` and `key`."""
    name = entry if isinstance(entry, str) else str(entry["name"])
    key = "" if isinstance(entry, str) else str(entry.get("key", ""))
    path = folder / Path(name).name
    aside = path.with_name(f".{path.name}.part")
    aside.write_bytes(jobs.store.get(key or jobs.keys.job(job, f"export/{name}")))
    aside.replace(path)
    return path
