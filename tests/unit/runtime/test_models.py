"""A worker whose model is not the one that a job was planned with says so, once, in the job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from communitree_shared.contract.messages import Unit
from communitree_shared.settings import EXTRACTIVE
from communitree_workers.runtime.context import UnitContext


class Record:
    """A job's record and events, as the ledger keeps them."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.told: list[dict[str, Any]] = []

    def first(self, tenant: str, job: str, what: str, unit: str) -> bool:
        return self.fields.setdefault(what, unit) == unit

    def update(self, tenant: str, job: str, fields: dict[str, str]) -> None:
        self.fields |= fields

    def event(self, tenant: str, job: str, kind: str, **fields: Any) -> None:
        self.told.append({"type": kind, **fields})


def context_of(ledger: Record, planned: str, mine: str, unit: str = "b0") -> UnitContext:
    settings = SimpleNamespace(model=lambda stage: SimpleNamespace(model=mine))
    services, message = SimpleNamespace(ledger=ledger, settings=settings), SimpleNamespace(tenant="t", job="j")
    made = Unit(id=unit, args={"model": planned})
    return UnitContext(cast(Any, services), cast(Any, message), made, 1, None, lambda: False)


def test_another_model_is_told_once_in_a_job() -> None:
    ledger = Record()
    assert not context_of(ledger, "large", "small").has_model("map")
    assert not context_of(ledger, "large", "small", "b1").has_model("map")
    (told,) = ledger.told
    assert told["type"] == "warning"
    assert "map: large ≠ small" in told["message"]
    assert ledger.fields["other_models"] == "map: large ≠ small"


def test_the_same_model_and_the_built_in_one_are_no_news() -> None:
    ledger = Record()
    assert context_of(ledger, "large", "large").has_model("map")
    assert context_of(ledger, EXTRACTIVE, "large").has_model("map")
    assert ledger.told == []
