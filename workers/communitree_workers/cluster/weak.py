"""Weak edges: entities without relationships, and those of small components, tied in by the text they share.

They are laid before clustering and serve clustering only. Where an entity shares no text unit with anything outside
its component, it is tied to the heaviest entity of the nearest text unit of its document.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from communitree_shared.contract.tables import MASS_SCALE
from communitree_workers.cluster.graph import offsets, ranges
from communitree_workers.tables.columns import Ints

#: Weak edges of one entity.
TIES = 5

#: Of a text unit with more entities than this only the heaviest are offered: a tie through it weighs next to nothing,
#: and all pairs of its entities would be too many.
_OFFERED = 512

#: Rows of one round of the join: bounds its memory.
_ROUND = 1_000_000


@dataclass(frozen=True)
class Mentions:
    """Which member has which text unit, as distinct pairs sorted by member; text units in canonical order.

    Attributes:
        member, unit: the pairs.
        members, units: how many there are of each.
        document: the document of each text unit, -1 for none; its text units stand together.
        share: 1 / entities of each text unit, in units of 1 / MASS_SCALE; 0 where it has none.
        mass: of each member, in units of 1 / MASS_SCALE text units.
    """

    member: Ints
    unit: Ints
    members: int
    units: int
    document: Ints
    share: Ints
    mass: Ints

    @classmethod
    def of(cls, member: Ints, unit: Ints, members: int, document: Ints) -> Mentions:
        """Share every text unit out among its members (the rule of `tables.mass`)."""
        sharers = np.bincount(unit, minlength=len(document))
        share = np.zeros(len(document), np.int64)
        held = sharers > 0
        share[held] = (MASS_SCALE + sharers[held] // 2) // sharers[held]
        if len(member) == 0:
            mass = np.full(members, MASS_SCALE, np.int64)
        else:
            mass = np.bincount(member, weights=share[unit], minlength=members).astype(np.int64)
        return cls(member, unit, members, len(document), document, share, mass)

    def first(self) -> Ints:
        """Return where the pairs of each member begin, and the end."""
        return offsets(self.member, self.members)


def weak_edges(
    mentions: Mentions, component: Ints, small: npt.NDArray[np.bool_], weight: int
) -> tuple[Ints, Ints, Ints]:
    """Return (low, high, weight) of the weak edges, each pair once, in no promised order.

    Args:
        mentions: who stands in which text unit.
        component: of each member, its smallest member.
        small: the members to tie in.
        weight: of a tie through one text unit of an entity's own, in fixed point; a share of it otherwise.
    """
    needy = np.flatnonzero(small)
    if len(needy) == 0 or len(mentions.member) == 0:
        return (np.empty(0, np.int64),) * 3
    by_weight, rank = _by_weight(mentions)
    one, other, shared = _shared(mentions, component, needy, by_weight, rank)
    tied = np.zeros(mentions.members, bool)
    tied[one] = True
    alone = needy[~tied[needy]]
    near, neighbour = _nearest(mentions, component, alone, by_weight)
    strength = np.maximum(np.rint(weight * (shared / MASS_SCALE)).astype(np.int64), 1)
    one, other = np.concatenate([one, near]), np.concatenate([other, neighbour])
    strength = np.concatenate([strength, np.full(len(near), weight, np.int64)])
    keys = np.minimum(one, other) * mentions.members + np.maximum(one, other)
    order = np.lexsort((strength, keys))
    keys, strength = keys[order], strength[order]
    last = np.flatnonzero(np.concatenate([keys[1:] != keys[:-1], [True]])) if len(keys) else np.empty(0, np.int64)
    return keys[last] // mentions.members, keys[last] % mentions.members, strength[last]


@dataclass(frozen=True)
class _ByWeight:
    """The members of each text unit, heaviest first: those of unit u are member[first[u]:first[u + 1]]."""

    member: Ints
    first: Ints


def _by_weight(mentions: Mentions) -> tuple[_ByWeight, Ints]:
    order = np.argsort(-mentions.mass, kind="stable")
    rank = np.empty(mentions.members, np.int64)
    rank[order] = np.arange(mentions.members)
    keys = mentions.unit * mentions.members + rank[mentions.member]
    keys.sort()
    keys %= mentions.members
    return _ByWeight(order[keys], offsets(mentions.unit, mentions.units)), rank


def _shared(m: Mentions, component: Ints, needy: Ints, units: _ByWeight, rank: Ints) -> tuple[Ints, Ints, Ints]:
    """Return each needy member with up to `TIES` members outside its component, and Σ 1/|E(t)| over shared t."""
    first = m.first()
    begin, end = first[needy], first[needy + 1]
    offered = np.minimum(units.first[1:] - units.first[:-1], _OFFERED)
    pairs = ranges(begin, end)
    before = np.concatenate([[0], np.cumsum(offered[m.unit[pairs]])])
    bounds = np.concatenate([[0], np.cumsum(end - begin)])
    rows = before[bounds]
    out: list[tuple[Ints, Ints, Ints]] = []
    at = 0
    while at < len(needy):
        upto = max(int(np.searchsorted(rows, rows[at] + _ROUND, side="right")) - 1, at + 1)
        mine = pairs[bounds[at] : bounds[upto]]
        unit = m.unit[mine]
        one = np.repeat(m.member[mine], offered[unit])
        other = units.member[ranges(units.first[unit], units.first[unit] + offered[unit])]
        share = np.repeat(m.share[unit], offered[unit])
        apart = component[one] != component[other]
        out.append(_strongest(one[apart], other[apart], share[apart], rank))
        at = upto
    one, other, total = (np.concatenate(column) for column in zip(*out, strict=True))
    return one, other, total


def _strongest(one: Ints, other: Ints, share: Ints, rank: Ints) -> tuple[Ints, Ints, Ints]:
    """Add up the shares of each pair and keep the best of each member: largest sum, then heaviest, then first."""
    if len(one) == 0:
        return one, other, share
    keys = one * len(rank) + rank[other]
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0]))
    total = np.add.reduceat(share[order], first)
    one, other = one[order][first], other[order][first]
    best = np.argsort(-total, kind="stable")  # ties keep the order of rank
    best = best[np.argsort(one[best], kind="stable")]
    one, other, total = one[best], other[best], total[best]
    kept = np.arange(len(one)) - np.searchsorted(one, one) < TIES
    return one[kept], other[kept], total[kept]


def _nearest(m: Mentions, component: Ints, alone: Ints, units: _ByWeight) -> tuple[Ints, Ints]:
    """Return each lone member that has text, with the heaviest entity of the nearest text unit of others.

    All entities of a lone member's text units are of its own component, so what is near is the next text unit of
    the document, either way, that has an entity of another. Of two equally near, the earlier is taken.
    """
    held = np.flatnonzero(units.first[1:] > units.first[:-1])
    if len(alone) == 0 or len(held) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    inside = component[units.member]
    least, most = np.minimum.reduceat(inside, units.first[held]), np.maximum.reduceat(inside, units.first[held])
    label = np.where(least == most, least, -1 - np.arange(len(held)))
    document = m.document[held]
    starts = np.concatenate([[True], (label[1:] != label[:-1]) | (document[1:] != document[:-1])])
    run_start = np.flatnonzero(starts)
    first = m.first()
    pairs = ranges(first[alone], first[alone + 1])
    member, place = m.member[pairs], np.searchsorted(held, m.unit[pairs])
    run = np.searchsorted(run_start, place, side="right") - 1
    earlier = run_start[run] - 1
    later = np.concatenate([run_start, [len(held)]])[run + 1]
    best: list[tuple[Ints, Ints, Ints]] = []
    for there in (earlier, later):
        fits = (there >= 0) & (there < len(held))
        fits[fits] = (document[there[fits]] == document[place[fits]]) & (document[place[fits]] >= 0)
        there = there[fits]
        best.append((member[fits], np.abs(held[there] - m.unit[pairs][fits]), there))
    who, distance, there = (np.concatenate(column) for column in zip(*best, strict=True))
    order = np.lexsort((there, distance, who))
    who, there = who[order], there[order]
    one = np.concatenate([[True], who[1:] != who[:-1]]) if len(who) else np.zeros(0, bool)
    who, unit = who[one], held[there[one]]
    other = np.full(len(who), -1, np.int64)
    at = units.first[unit]
    while len(open_ := np.flatnonzero(other < 0)):
        candidate = units.member[at[open_]]
        foreign = component[candidate] != component[who[open_]]
        other[open_[foreign]] = candidate[foreign]
        at[open_] += 1
    return who, other
