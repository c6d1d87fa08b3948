"""The error tree. Every error names the thing, the place and the remedy.

CommunitreeError
├── UsageError            the caller's request cannot be carried out as it stands      (exit 2, HTTP 400)
│   ├── CorpusNotFound
│   ├── JobNotFound
│   ├── ResultGone        the job ended well, and its result was removed since
│   ├── CorpusBusy        another job is indexing this corpus                           (retryable)
│   ├── AdmissionRefused  too many open jobs; says when to try again                    (retryable)
│   └── BadInput          a document, table or message: names file, column, row
├── StackNotRunning       no embedded stack and no servers in the settings              (exit 4)
├── InfrastructureError   Redis or S3 away                                              (retryable)
│   ├── ServerRefuses     credentials, rights, bucket, space, clock: someone must act   (retryable)
│   │   └── OtherBucket   not the bucket of the jobs in this Redis                      (exit 5)
│   └── DataLost          the embedded stack's data is gone                             (exit 5)
├── ModelError            a model endpoint's answer, in the provider's words
│   ├── ContextTooLong    the prompt is longer than the model takes; callers split
│   │   └── PromptCut     the server took it and read less than was sent
│   ├── OutputCut         the reply ended before its end: at a limit, inside its JSON, or in its thinking
│   ├── ContentRefused    a filter, or the model itself, refuses this content
│   ├── BudgetReached     the job's money or token ceiling
│   └── DeadlinePassed
├── Cancelled
├── IntegrityError        a table or stored object breaks an invariant
└── NewerMessage          a message of a version this worker does not know; park it
"""

from __future__ import annotations

from typing import Any, ClassVar


class CommunitreeError(Exception):
    """Base of all errors that communitree raises on purpose."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.retry_after = retry_after

    def as_json(self) -> dict[str, Any]:
        """Return `{"code", "message", "hint"}`, and `retry_after` in seconds where there is one."""
        body: dict[str, Any] = {"code": self.code, "message": self.message, "hint": self.hint}
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        return body


class UsageError(CommunitreeError):
    """The request cannot be carried out as it stands."""

    code = "usage"
    exit_code = 2


class CorpusNotFound(UsageError):
    """No published version of this corpus."""

    code = "corpus_not_found"


class JobNotFound(UsageError):
    """No such job for this tenant."""

    code = "job_not_found"


class ResultGone(UsageError):
    """The job ended well, but its result was removed since, by `gc` or another hand."""

    code = "job_result_gone"


class CorpusBusy(UsageError):
    """Another job is indexing this corpus."""

    code = "corpus_busy"
    retryable = True


class AdmissionRefused(UsageError):
    """Too many jobs are open; try again after `retry_after` seconds."""

    code = "too_many_jobs"
    retryable = True


class BadInput(UsageError):
    """A document, table or message is not what it should be."""

    code = "bad_input"


class StackNotRunning(CommunitreeError):
    """No servers to talk to: no embedded stack runs and none are set."""

    code = "no_stack"


class InfrastructureError(CommunitreeError):
    """Redis or the object store is away, full or misconfigured."""

    code = "infrastructure"
    retryable = True


class ServerRefuses(InfrastructureError):
    """Redis or the object store answers, and refuses: waiting alone does not help, the hint says what does."""

    code = "refused"


class OtherBucket(ServerRefuses):
    """The bucket is not the one in which the jobs of this Redis lie, or has lost its content."""

    code = "other_bucket"
    retryable = False
    exit_code = 5


class DataLost(InfrastructureError):
    """The embedded stack's data was there before, and is gone."""

    code = "data_lost"
    retryable = False
    exit_code = 5


class ModelError(CommunitreeError):
    """A model endpoint refused or failed; the message carries the provider's words.

    `status`: of HTTP, None where no answer came. `unexplained`: this request was refused in words that say no cause, so
    another part of the same content may be taken.
    """

    code = "model"

    def __init__(self, message: str, *, status: int | None = None, unexplained: bool = False, **more: Any) -> None:
        super().__init__(message, **more)
        self.status = status
        self.unexplained = unexplained


class ContextTooLong(ModelError):
    """The prompt is longer than the model takes."""

    code = "context_too_long"


class PromptCut(ContextTooLong):
    """The server took the prompt, and says that it read far fewer tokens than were sent."""

    code = "prompt_cut"


class OutputCut(ModelError):
    """The reply ended before its end: at its limit, inside its JSON, or before anything but thinking came."""

    code = "output_cut"


class ContentRefused(ModelError):
    """A filter of the provider's, or the model in its own words, refuses this content; asking again does not help."""

    code = "content_refused"


class BudgetReached(ModelError):
    """The job's ceiling of money or tokens is reached."""

    code = "budget"


#: What helps where time was too short.
DEADLINE_HINT = "Give it more time (--deadline), or less to read (a smaller --budget-tokens)."


class DeadlinePassed(ModelError):
    """The job's deadline has passed."""

    code = "deadline"


class Cancelled(CommunitreeError):
    """The job was cancelled."""

    code = "cancelled"


class IntegrityError(CommunitreeError):
    """A table or stored object breaks an invariant of the index."""

    code = "integrity"


class NewerMessage(CommunitreeError):
    """A message of a version that this worker does not know."""

    code = "newer_message"
