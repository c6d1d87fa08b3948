"""What is told of a job while it runs and afterwards: the contracts of `jobs` and `job`, each with `--json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from communitree_shared.contract.results import Failures, Usage


class JobRow(BaseModel):
    """A job in a list. Times in unix seconds; None: not yet. `question`: its first 200 characters."""

    model_config = ConfigDict(extra="ignore")

    job_id: str
    kind: Literal["corpus", "query"]
    status: str
    corpus: str = ""
    question: str = ""
    created: float | None = None
    started: float | None = None
    ended: float | None = None


class JobView(JobRow):
    """The state of a job and what has happened to it. `waits`: message and hint, where a server is away just now.

    `models`: those of each stage that a question was planned with. `question`: whole, once the job has ended. `llm`:
    what an ended job took; None: it has no result, or is a plan.
    `failures`: units that failed so far, by stage and cause.
    """

    llm: Usage | None = None
    models: dict[str, str] = {}
    progress: dict[str, Any] = {}
    waits: dict[str, Any] | None = None
    failures: list[Failures] = []
    error: dict[str, Any] | None = None
    events: list[dict[str, Any]] = []
