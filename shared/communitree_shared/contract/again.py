"""What `ask --again JOB` reads: the reports of an earlier answer that no point cites, or that were not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from communitree_shared.contract.strategies import reads_texts
from communitree_shared.errors import UsageError


def silent_of(job: str, answer: Mapping[str, Any] | None, corpus: str, version: str) -> list[int]:
    """Return the silent and the unread reports of a job's answer (as it is stored).

    Raises:
        UsageError: it is gone or of no question, asked another corpus or an older version, read text units instead of
            reports, or no report of it is silent or unread.
    """
    if not answer or "account" not in answer:
        raise UsageError(
            f"There is no answer of job {job} (any more): only a question that was answered can be read again.",
            hint="Ask the question anew.",
        )
    if answer.get("corpus") != corpus:
        raise UsageError(
            f"Job {job} asked the corpus {answer.get('corpus')!r}, not {corpus!r}.", hint="Name the corpus of that job."
        )
    if answer.get("version") != version:
        raise UsageError(
            f"Job {job} read other reports than {corpus!r} has now: it has been indexed since.",
            hint="Ask the question anew.",
        )
    if reads_texts(answer["account"]["selection"]["strategy"]):
        raise UsageError(
            f"Job {job} read text units, not reports: only silent reports can be read again.",
            hint="Ask the question with `--texts` and smaller batches (`--max-context-tokens`).",
        )
    reports = answer["account"]["reports"]
    silent = [int(report) for report in (*reports["silent"], *reports.get("unread", ()))]
    if not silent:
        raise UsageError(f"No report of job {job} is silent or unread: there is nothing to read again.")
    return silent
