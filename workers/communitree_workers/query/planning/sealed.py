"""What a plan leaves for the reduce: what is read, the batches it was cut into, and the models that work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from communitree_shared.contract.results import Coverage, Selection
from communitree_workers.query.batches.batch import CutBatch
from communitree_workers.query.selection.choice import Selected


@dataclass(frozen=True)
class SealedPlan:
    """A plan that does not change any more. `models`: name of the model of each stage."""

    selected: Selected
    batches: Sequence[CutBatch]
    models: Mapping[str, str]

    def unit(self, number: int) -> str:
        """Return the id of the map unit that reads a batch."""
        return f"b{number}-{self.batches[number].key[:16]}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        found = self.selected
        selected = {
            "ids": found.ids, "selection": found.selection.model_dump(), "coverage": found.coverage.model_dump(),
            "kind": found.kind, "warnings": found.warnings,
        }  # fmt: skip
        return {"selected": selected, "batches": [asdict(b) for b in self.batches], "models": dict(self.models)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SealedPlan:
        """Return the plan of `to_json`."""
        found = data["selected"]
        selected = Selected(
            found["ids"], Selection.model_validate(found["selection"]), Coverage.model_validate(found["coverage"]),
            kind=found["kind"], warnings=found["warnings"],
        )  # fmt: skip
        return cls(selected, [CutBatch(**batch) for batch in data["batches"]], data["models"])
