"""Which rows, child reports and aggregated rows go into one community's prompt.

The rules are those of three cases, the first that applies:

1. all rows fit: all rows;
2. children's reports stand in for their members' rows. A child whose rows cost no more than its report is never
   replaced; which of the others keep their rows is an exact knapsack (most rows kept). What room is left is filled with
   the best of the replaced rows;
3. rows between children and all the reports alone are too much: one counted row for each pair of children, title and
   summary of every child by mass, a quarter of the room for rows between children, then children in full by mass (their
   rows or their report, whichever is cheaper), then the best of all remaining rows.

A community without reports below it takes rows by importance, every kind the share of the room that its rows have of
the whole. Nothing stops at the first row that does not fit: it is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from communitree_workers.report.evidence.knapsack import best_subset
from communitree_workers.report.records import KINDS

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: Share of the room for counted pair rows, and for titles and summaries, where full reports must wait (case 3).
_PAIR_SHARE = 4
_TITLE_SHARE = 2
#: No counted row is shorter: with less room left the others need not be rendered.
_SHORTEST_PAIR = 4
#: Share of the room for single rows between children (case 3).
_BETWEEN_SHARE = 4


@dataclass(frozen=True)
class Child:
    """One child in a packing: tokens of its report's row and of its title row, None without a report."""

    number: int
    mass: int
    report: int | None
    title: int | None


@dataclass(frozen=True)
class Pair:
    """A counted row for the relationships between two children: their places, its tokens, the rows it counts."""

    a: int
    b: int
    cost: int
    rows: Ints


@dataclass
class Problem:
    """What there is to pack. For each kind: tokens of each row, and the place of the child that holds it (-1: none).

    `room` is the tokens there are for everything; `heads` the tokens of each section's heading. `pairs` is asked only
    in case 3 and only as far as there is room, since counted rows are rendered for this community alone.
    """

    room: int
    heads: Mapping[str, int]
    costs: Mapping[str, Ints]
    owners: Mapping[str, Ints]
    children: Sequence[Child] = ()
    pairs: Callable[[], Iterable[Pair]] = tuple

    def __post_init__(self) -> None:
        self.kinds = [kind for kind in KINDS if len(self.costs[kind])]


@dataclass
class Packed:
    """The choice: a mask of rows for each kind, places of children in full, places by title, pairs; room left."""

    rows: dict[str, Mask]
    reports: list[int] = field(default_factory=list)
    titles: list[int] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    left: int = 0


def pack(problem: Problem) -> Packed:
    """Return what goes into the prompt: at most `room` tokens, headings included; nothing where room is short."""
    kinds = problem.kinds
    room = problem.room - sum(problem.heads[kind] for kind in kinds)
    total = sum(int(problem.costs[kind].sum()) for kind in kinds)
    if total <= room:
        return Packed({kind: np.ones(len(problem.costs[kind]), bool) for kind in KINDS}, left=room - total)
    if any(child.report is not None for child in problem.children):
        return _substitute(problem, room - problem.heads["reports"])
    packed = Packed(_none(problem), left=room)
    _fill(problem, packed, {kind: ~mask for kind, mask in packed.rows.items()})
    return packed


def _substitute(problem: Problem, room: int) -> Packed:
    n = len(problem.children)
    raw = np.zeros(n, dtype=np.int64)
    held = np.zeros(n, dtype=np.int64)
    between = 0
    for kind in problem.kinds:
        owner, cost = problem.owners[kind], problem.costs[kind]
        mine = owner >= 0
        raw += np.bincount(owner[mine], weights=cost[mine], minlength=n).astype(np.int64)
        held += np.bincount(owner[mine], minlength=n)
        between += int(cost[~mine].sum())
    report = [child.report for child in problem.children]
    least = {i: tokens for i, tokens in enumerate(report) if tokens is not None and tokens < raw[i]}
    replaceable = list(least)
    fixed = between + sum(int(raw[i]) for i in range(n) if i not in least)
    capacity = room - fixed - sum(least.values())
    if capacity < 0:
        return _aggregate(problem, room, raw, least)
    gain = [int(raw[i]) - least[i] for i in replaceable]
    kept = best_subset(gain, [int(held[i]) for i in replaceable], capacity)
    away = set(replaceable) - {replaceable[k] for k in kept}
    packed = Packed(_none(problem), reports=_by_mass(problem, away), left=capacity - sum(gain[k] for k in kept))
    gone = {kind: np.isin(problem.owners[kind], list(away)) for kind in problem.kinds}
    for kind in problem.kinds:
        packed.rows[kind] = ~gone[kind]
    _fill(problem, packed, gone)
    return packed


def _aggregate(problem: Problem, room: int, raw: Ints, least: Mapping[int, int]) -> Packed:
    packed = Packed(_none(problem), left=room - problem.heads["pairs"] - problem.heads["titles"])
    room = packed.left
    if room <= 0:
        packed.left = 0
        return packed
    allowance = room // _PAIR_SHARE
    for pair in problem.pairs():
        if allowance < _SHORTEST_PAIR:
            break
        if pair.cost <= allowance:
            allowance -= pair.cost
            packed.left -= pair.cost
            packed.pairs.append(pair)
    order = _by_mass(problem, range(len(problem.children)))
    allowance = min(packed.left, room // _TITLE_SHARE)
    named = {}
    for i in order:
        title = problem.children[i].title
        if title is not None and title <= allowance:
            allowance -= title
            named[i] = title
    packed.left -= sum(named.values())
    _fill(problem, packed, {kind: problem.owners[kind] < 0 for kind in problem.kinds}, limit=room // _BETWEEN_SHARE)
    for i in order:
        full = least.get(i, int(raw[i]))
        upgrade = full - named.get(i, 0)
        if upgrade > packed.left or not (full or i in named):
            continue
        packed.left -= upgrade
        named.pop(i, None)
        if i in least:
            packed.reports.append(i)
            continue
        for kind in problem.kinds:
            packed.rows[kind] |= problem.owners[kind] == i
    packed.titles = [i for i in order if i in named]
    _fill(problem, packed, {kind: ~mask for kind, mask in packed.rows.items()})
    return packed


def _fill(problem: Problem, packed: Packed, wanted: Mapping[str, Mask], limit: int | None = None) -> None:
    """Take the wanted rows that still fit, most important first; each kind its share, then what is left to any."""
    room = packed.left if limit is None else min(packed.left, limit)
    if room <= 0:
        return
    total = {kind: int(problem.costs[kind][wanted[kind]].sum()) for kind in problem.kinds}
    whole = sum(total.values())
    shares = [(kind, room * total[kind] // whole) for kind in problem.kinds if total[kind]]
    spent = 0
    for kind, share in [*shares, *((kind, room) for kind, _ in shares)]:
        free = wanted[kind] & ~packed.rows[kind]
        places = np.flatnonzero(free)
        taken = _greedy(problem.costs[kind][places], min(share, room - spent))
        packed.rows[kind][places[taken]] = True
        spent += int(problem.costs[kind][places[taken]].sum())
    packed.left -= spent


def _greedy(costs: Ints, room: int) -> list[int]:
    """Return the places taken when each row that fits is taken, in order."""
    first = int(np.searchsorted(np.cumsum(costs), room, side="right"))
    taken = list(range(first))
    room -= int(costs[:first].sum())
    small = first + np.flatnonzero(costs[first:] <= room)  # nearly all of what follows is too long already
    rest = costs[small]
    cheapest = np.minimum.accumulate(rest[::-1])[::-1]
    for at, cost, least in zip(small.tolist(), rest.tolist(), cheapest.tolist(), strict=True):
        if least > room:
            break
        if cost <= room:
            taken.append(at)
            room -= cost
    return taken


def _none(problem: Problem) -> dict[str, Mask]:
    return {kind: np.zeros(len(problem.costs[kind]), dtype=bool) for kind in KINDS}


def _by_mass(problem: Problem, places: Sequence[int] | set[int] | range) -> list[int]:
    return sorted(places, key=lambda i: (-problem.children[i].mass, i))
