"""What is told of a job while it runs and afterwards: the contracts of `jobs` and `job`, each with `--json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _View(BaseModel):
    model_config = ConfigDict(extra="ignore")


class JobRow(_View):
    """A job in a list. Times in unix seconds; None: not yet."""

    job_id: str
    kind: Literal["corpus", "query"]
    status: str
    corpus: str = ""
    created: float | None = None
    started: float | None = None
    ended: float | None = None


class JobView(_View):
    """The state of a job and what has happened to it. `waits`: message and hint, where a server is away just now."""

    job_id: str
    kind: Literal["corpus", "query"]
    status: str
    corpus: str = ""
    progress: dict[str, Any] = {}
    waits: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    events: list[dict[str, Any]] = []
