"""Whether the model did its part of a version: what did not is no shell to put over a good version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from communitree_shared.contract.results import Failures

#: Causes that another try does not mend, or that the caller asked for: they are no sign of a bad endpoint.
NOT_COUNTED = frozenset(("content_refused", "budget"))
#: So few failures are never too large a share.
_FEW = 3


@dataclass(frozen=True)
class StageEnd:
    """How a stage of a version ended for the model.

    Attributes:
        stage: `extract`, `describe` or `report`.
        units: all that the model was to make for the version, those that were found again included.
        succeeded: units that ended well in this job.
        missing: units that the version has a fallback for.
        failures: of this job, by cause.
    """

    stage: str
    units: int
    succeeded: int
    missing: int
    failures: Sequence[Failures] = ()

    @property
    def failed(self) -> int:
        """Units that failed for a cause that counts."""
        return sum(group.count for group in self.failures if group.cause not in NOT_COUNTED)

    @property
    def share(self) -> float:
        """The share (0–1) of its units that the version has fallbacks for."""
        return self.missing / self.units if self.units else 0.0

    def fell_short(self, max_failed: float) -> bool:
        """Say whether the model did not succeed: in no call at all, or with too large a share (0–1) of failures."""
        if not self.failed:
            return False
        return not self.succeeded or (self.failed >= _FEW and self.failed > max_failed * self.units)

    def line(self) -> str:
        """Return what failed, and the most frequent cause that counts."""
        why = next((group.message for group in self.failures if group.cause not in NOT_COUNTED), "")
        return f"{self.stage}: {self.failed:,} of {self.units:,} failed, most of them so: {why}"


def worse(stages: Sequence[StageEnd], max_failed: float, before: Mapping[str, Any] | None) -> list[StageEnd]:
    """Return the stages that fell short, and of which the published version has a smaller share of fallbacks.

    Args:
        stages: of the new version.
        max_failed: the share (0–1) of a stage's units that may fail.
        before: the published version's manifest; None for nothing.
    """
    if before is None:
        return []
    shares = shares_of(before)
    return [stage for stage in stages if stage.fell_short(max_failed) and shares.get(stage.stage, 0.0) < stage.share]


def shares_of(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Return a version's share of fallbacks by stage; those of an older release are guessed from its counts."""
    if "fallbacks" in manifest:
        return {str(stage): float(share) for stage, share in manifest["fallbacks"].items()}
    result = manifest.get("result", {})
    if result.get("status") != "partial":
        return {}
    counts, reports = result.get("counts", {}), result.get("reports", {})
    failed = manifest.get("extract", {}).get("failed", 0)
    return {
        "extract": failed / max(1, counts.get("text_units", 0)),
        "report": reports.get("extractive", 0) / max(1, counts.get("reports", 0)),
    }
