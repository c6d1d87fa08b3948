"""What reading a batch gave: points with scores and ids, and what became of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class MapPoint:
    """One statement. `score` None: it could not be read. `unverified`: cited ids that were not in the batch."""

    text: str
    score: float | None
    reports: list[int] = field(default_factory=list)
    unverified: list[int] = field(default_factory=list)
    overview_only: bool = False


@dataclass
class MapResult:
    """What a reply holds. `overview`: scores of the anchor rows. `repaired`: shapes and scores that had to be mended.

    `words`: of the reply's points, to compare with the limit.
    """

    points: list[MapPoint] = field(default_factory=list)
    overview: dict[int, float] = field(default_factory=dict)
    repaired: int = 0
    words: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing in it helps to answer the question."""
        return not any(point.score for point in self.points)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        points = [
            {"text": p.text, "score": p.score, "reports": p.reports, "unverified": p.unverified,
             "overview_only": p.overview_only}
            for p in self.points
        ]  # fmt: skip
        overview = [[id, score] for id, score in sorted(self.overview.items())]
        return {"points": points, "overview": overview, "repaired": self.repaired, "words": self.words}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MapResult:
        """Return the result of `to_json`."""
        return cls(
            [MapPoint(**point) for point in data["points"]],
            {int(id): float(score) for id, score in data["overview"]},
            int(data["repaired"]),
            int(data["words"]),
        )


def joined(one: MapResult, two: MapResult) -> MapResult:
    """Return what both halves of a batch hold, the first half's points first; anchor scores of both are averaged."""
    overview = dict(one.overview)
    for id, score in two.overview.items():
        overview[id] = (overview[id] + score) / 2 if id in overview else score
    return MapResult(
        [*one.points, *two.points], overview, one.repaired + two.repaired, max(one.words, two.words)
    )  # fmt: skip


@dataclass
class BatchOutcome:
    """What became of a batch. `ids`: its reports. `cause`: why it failed. `halves`: how often it was split.

    `unread`: reports of a batch that answered which could not be read, or not whole, and why.
    """

    status: Literal["answered", "failed"]
    ids: list[int]
    result: MapResult | None = None
    cause: str = ""
    retried: int = 0
    halves: int = 0
    cached: bool = False
    at_limit: bool = False
    unread: dict[int, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        plain = {**self.__dict__, "result": self.result.to_json() if self.result else None}
        unread = list(plain.pop("unread").items())
        return {**plain, "unread": unread} if unread else plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BatchOutcome:
        """Return the outcome of `to_json`."""
        result = data.get("result")
        unread = {int(id): str(cause) for id, cause in data.get("unread", ())}
        return cls(**{**data, "result": MapResult.from_json(result) if result else None, "unread": unread})
