"""Results and errors as they lie in the object store → the classes a caller gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from communitree_shared.contract.index_plan import IndexPlan
from communitree_shared.contract.results import Answer, IndexResult
from communitree_shared.errors import CommunitreeError, ResultGone
from communitree_shared.ledger.ends import Outcomes, error_of, without_result


def as_error(raw: Mapping[str, Any] | None, record: Mapping[str, str], what: str) -> CommunitreeError:
    """Return the error that a result or a job's record carries, as the class of its code."""
    body = (raw or {}).get("error") or error_of(record)
    kind = next((c for c in _all(CommunitreeError) if c.code == body.get("code")), CommunitreeError)
    return kind(str(body.get("message") or what), hint=str(body.get("hint") or ""))


def as_result(
    job: str,
    record: Mapping[str, str],
    raw: Mapping[str, Any] | None,
    request: Mapping[str, Any],
    stages: Mapping[str, tuple[int, Outcomes]] = MappingProxyType({}),
) -> Answer | IndexResult | IndexPlan:
    """Return a job's result; one that ended without writing any gets an empty one with its cause as a warning.

    `stages`: as `without_result` takes them.

    Raises:
        ResultGone: the job has written one, and it was removed since.
    """
    kind = request.get("kind") or record.get("kind")
    state = record.get("state", "failed")
    if raw is not None:
        if raw.get("status") == "done":
            return IndexPlan.model_validate(raw)
        result: Answer | IndexResult
        result = Answer.model_validate(raw) if kind == "query" else IndexResult.model_validate(raw)
        hint = (raw.get("error") or {}).get("hint")
        if hint and isinstance(result, IndexResult):
            result.warnings.append(str(hint))
        return result
    if state not in {"failed", "cancelled"}:
        raise ResultGone(
            f"The result of job {job} was removed (by `communitree gc`): the job ended as {state}.",
            hint="Ask the question again." if kind == "query" else "`communitree corpora` lists what is published.",
        )
    error = as_error(None, record, f"the job ended as {state} without a result")
    result = without_result(job, state, error.message, record, request, stages)
    return result.model_copy(update={"error": error.as_json()}) if state == "failed" else result


def plan_of(record: Mapping[str, str], raw: Mapping[str, Any] | None) -> IndexPlan:
    """Return the result of a plan of an index.

    Raises:
        CommunitreeError: the job failed or was cancelled; of the kind that it met.
    """
    if raw is None or record.get("state") != "done":
        raise as_error(raw, record, f"The plan ended as {record.get('state', 'unknown')}.")
    return IndexPlan.model_validate(raw)


def _all(kind: type[CommunitreeError]) -> Iterator[type[CommunitreeError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _all(child)
