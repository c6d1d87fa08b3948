"""From a citing sentence to the sentences of the documents that it rests on: the place, and the words there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from communitree_workers.citing.likeness import Rarity, coverage
from communitree_workers.citing.quantities import agrees
from communitree_workers.citing.traits import Traits, traits
from communitree_workers.text.sentences import sentence_spans

#: So many sentences a citation shows at most, and what share of the best one's likeness the last must have.
MOST, _SHARE = 3, 0.6
#: Below this likeness a sentence is none that a statement rests on.
_LEAST = 0.2
#: The answer's own words count so much more than the finding's.
_OWN = 2.0


@dataclass(frozen=True)
class Unit:
    """A text unit. `offset`: of its text in its document, in characters; None: not known."""

    id: str
    text: str
    document: str = ""
    offset: int | None = None


@dataclass(frozen=True)
class Quotation:
    """A sentence of a text unit: characters `begin` to before `end` of the unit; `offset`: of `begin` in the document.

    `likeness`: from 0 to 1, how much of the citing sentence and of the finding stands in it.
    """

    unit: str
    document: str
    offset: int | None
    begin: int
    end: int
    text: str
    likeness: float


def quotations(sentence: str, finding: str, units: Sequence[Unit], most: int = MOST) -> list[Quotation]:
    """Return the sentences that a citing sentence rests on, the best first; of equal ones the earliest.

    Args:
        sentence: of the answer, without references.
        finding: of the cited report, without references; "" where none is known.
        units: the text units behind it.
        most: so many at most.
    """
    spans = [(unit, a, b) for unit in units for a, b in _spans(unit.text)]
    rarity = Rarity(unit.text[a:b] for unit, a, b in spans)
    asked = [(traits(sentence), _OWN)] + ([(traits(finding), 1.0)] if finding.strip() else [])
    scored = []
    for place, (unit, a, b) in enumerate(spans):
        there = traits(unit.text[a:b])
        likeness = sum(weight * _likeness(what, there, rarity) for what, weight in asked)
        scored.append((likeness / sum(weight for _, weight in asked), -place))
    ranked = sorted(range(len(spans)), key=lambda i: scored[i], reverse=True)
    out: list[Quotation] = []
    for i in ranked[:most]:
        likeness = scored[i][0]
        if likeness < _LEAST or (out and likeness < _SHARE * out[0].likeness):
            break
        unit, a, b = spans[i]
        offset = None if unit.offset is None else unit.offset + a
        out.append(Quotation(unit.id, unit.document, offset, a, b, unit.text[a:b], round(likeness, 3)))
    return out


@lru_cache(maxsize=4096)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sentence_spans(text))


def _likeness(what: Traits, there: Traits, rarity: Rarity) -> float:
    """Return how much of a statement stands in a sentence: numbers and names as much as all its words."""
    share, _ = coverage(what, there, rarity) if what.words else (0.0, False)
    keys = [any(agrees(n.key, other) for other in there.numbers) for n in what.numbers]
    keys += [all(there.has(word) for word in name.words) for name in what.names if name.sure]
    return share if not keys else (share + sum(keys) / len(keys)) / 2
