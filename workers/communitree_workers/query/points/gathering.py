"""From map results to the list of points: one scale, zero and unreadable ones out, duplicates merged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from communitree_shared.contract.results import Point
from communitree_workers.query.map.outcome import BatchOutcome
from communitree_workers.query.points.scale import shifts
from communitree_workers.query.wording.phrases import say
from communitree_workers.text.words import terms


@dataclass
class Gathered:
    """All points in the order of batches, and the positions of those to be used, the most important first.

    `zero`, `duplicate`, `dropped`: how many points are not used, by reason.
    """

    points: list[Point]
    order: list[int] = field(default_factory=list)
    zero: int = 0
    duplicate: int = 0
    dropped: int = 0


def gather_points(
    outcomes: Sequence[BatchOutcome], ranks: Mapping[int, float] | None = None, language: str = "en"
) -> Gathered:
    """Collect the points of all batches.

    Args:
        outcomes: one for each batch, in the batches' order.
        ranks: rank of each report, to order points of equal score.
        language: of the reasons.
    """
    off = shifts([o.result.overview if o.result and o.status == "answered" else None for o in outcomes])
    gathered = Gathered([])
    for number, outcome in enumerate(outcomes):
        for made in outcome.result.points if outcome.result and outcome.status == "answered" else ():
            point = Point(
                text=made.text,
                score=made.score or 0.0,
                batch=number,
                reports=list(made.reports),
                unverified=list(made.unverified),
                overview_only=made.overview_only,
            )
            gathered.points.append(point)
            if made.score is None:
                point.why_not = say("not.unparsable", language)
                gathered.dropped += 1
            elif made.score == 0:
                point.why_not = say("not.zero", language)
                gathered.zero += 1
            elif not made.text.strip() or not made.reports:
                why = "not.empty" if not made.text.strip() else "not.unread" if made.unverified else "not.no_report"
                point.why_not = say(why, language)
                gathered.dropped += 1
            else:
                point.adjusted = round(made.score - off[number], 3)
                gathered.order.append(len(gathered.points) - 1)
    sort_points(gathered, ranks or {})
    _merge(gathered, language)
    return gathered


def sort_points(gathered: Gathered, ranks: Mapping[int, float]) -> None:
    """Order the points to be used by adjusted score, rank of their best report, batch, place in the batch."""

    def key(i: int) -> tuple[float, float, int, int]:
        point = gathered.points[i]
        rank = max((ranks.get(id, 0.0) for id in point.reports), default=0.0)
        return (-(point.adjusted or 0.0), -rank, point.batch, i)

    gathered.order.sort(key=key)


_NEGATIONS = re.compile(
    r"\b(?:not|no|never|none|without|neither|nor|cannot|may|might|could|should|would|must|shall|\w+n['’]t)\b"
    r"|[不没無无未非勿莫别]|可能|也许|或许|应当|应该|据说|必须",
    re.IGNORECASE,
)


def _merge(gathered: Gathered, language: str) -> None:
    """Take out points that say nothing a better one does not say; their citations go to that one.

    "Says nothing new": the words stand in the better point, in the same order, with the same negations and modal
    verbs. So two facts that differ in one name or number are never taken for one.
    """
    kept: list[int] = []
    words: list[list[str]] = []
    holders: dict[str, int] = {}  # word → the kept points that have it, a bit each
    for i in gathered.order:
        point = gathered.points[i]
        mine = terms(point.text)
        twin = next(
            (k for k in _candidates(mine, holders)
             if _inside(mine, words[k]) and _mood(point.text) == _mood(gathered.points[kept[k]].text)),
            None,
        )  # fmt: skip
        if twin is None:
            bit = 1 << len(kept)
            kept.append(i)
            words.append(mine)
            for word in set(mine):
                holders[word] = holders.get(word, 0) | bit
            continue
        better = gathered.points[kept[twin]]
        better.reports = list(dict.fromkeys([*better.reports, *point.reports]))
        better.unverified = list(dict.fromkeys([*better.unverified, *point.unverified]))
        better.overview_only = better.overview_only and point.overview_only
        point.why_not = say("not.duplicate", language)
        gathered.duplicate += 1
    gathered.order = kept


def _mood(text: str) -> list[str]:
    return sorted(m.lower() for m in _NEGATIONS.findall(text))


def _candidates(words: list[str], holders: Mapping[str, int]) -> Iterator[int]:
    """Yield the places of kept points that have all of these words, in order."""
    found = -1 if words else 0
    for word in set(words):
        found &= holders.get(word, 0)
        if not found:
            return
    while found:
        lowest = found & -found
        yield lowest.bit_length() - 1
        found ^= lowest


def _inside(part: list[str], whole: list[str]) -> bool:
    """Say whether `part` is a subsequence of `whole`."""
    rest = iter(whole)
    return all(word in rest for word in part)
