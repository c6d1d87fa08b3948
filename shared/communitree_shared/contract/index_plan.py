"""What `index --plan` says: the contract of a corpus job's plan."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from communitree_shared.contract.results import IndexCounts, LlmAccount


class _Plan(BaseModel):
    model_config = ConfigDict(extra="ignore")


class LevelPlan(_Plan):
    """Reports of one level that an index would write: `calls` by a model, `reused` of those known already."""

    communities: int = 0
    calls: int = 0
    reused: int = 0
    prompt_tokens: int = 0


class IndexPlan(_Plan):
    """What a corpus job would make and cost, before any model is called.

    `graph`: `given` (the tables that were brought), `built-in` (what the built-in extractor finds, as the job would),
    or `stand-in` (the built-in extractor's in the place of a model's: reports will differ in number). `changes`,
    `notes`: as in IndexResult.
    """

    job_id: str
    status: Literal["done"] = "done"
    corpus: str
    graph: Literal["given", "built-in", "stand-in"]
    counts: IndexCounts = IndexCounts()
    levels: dict[str, LevelPlan] = {}
    llm: LlmAccount = LlmAccount()
    seconds: float = 0.0
    changes: list[str] = []
    notes: list[str] = []
    warnings: list[str] = []
