"""`coverage`: the fewest tokens whose reports *read* a share of the corpus.

Reading counts the mass in a report's own evidence (`direct`): roots hold everything but have read little of it.
Small trees are solved exactly, by fronts of (tokens, mass) from the leaves up, cut by a Lagrangian bound; large ones by
the Lagrangian itself: bisect the price of a token, then leave out what the slack allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from communitree_shared.errors import UsageError
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection.choice import Choice, Price, Selected, describe, level_spans
from communitree_workers.query.view.corpus_view import CorpusView, IntArray
from communitree_workers.query.view.costs import costs
from communitree_workers.query.wording.phrases import say

#: Trees up to this size are solved exactly.
EXACT = 500
#: Fronts larger than this (products, before pruning) are given up for the Lagrangian's answer.
_LARGEST_PRODUCT = 4_000_000
_STEPS = 40

Floats = NDArray[np.float64]


def choose(question: Question, price: Price | None = None) -> Selected:
    """Select the communities that read a share (0–1) of the corpus for the fewest tokens.

    Raises:
        UsageError: no share is given.
    """
    view, share = question.view, question.selection.coverage
    if share is None:
        raise UsageError("The selection `coverage` needs a share.", hint="For example --coverage 0.8.")
    cost, _ = costs(view, question.batch)
    target = int(np.ceil(share * view.total_mass - 1e-9))
    able = np.where(view.readable, view.direct, 0)
    nodes, reached = fewest_tokens(view, cost, able, target)
    account = {"coverage": share, "read": round(reached / max(1, view.total_mass), 6)}
    key = "why.coverage" if reached >= target else "why.coverage_short"
    return describe(question, Choice(nodes, say(key, question.language, share=share), account))


def fewest_tokens(view: CorpusView, cost: IntArray, direct: IntArray, target: int) -> tuple[IntArray, int]:
    """Return communities, none above another, whose `direct` is at least `target`, and their sum.

    If no such set exists, the set with the largest sum.
    """
    best = lagrange(view, cost, direct, target)
    if int(direct[best].sum()) >= target and 0 < len(cost) <= EXACT and target > 0:
        exact = _exact(view, cost, direct, target, int(cost[best].sum()))
        if exact is not None:
            best = exact
    return np.sort(best), int(direct[best].sum())


def _values(view: CorpusView, cost: IntArray, direct: IntArray, price: float) -> tuple[Floats, Floats, Floats]:
    """Return each subtree's best Σ (direct − price·cost) over its antichains, each node's own, and its children's."""
    own = direct - price * cost
    below = np.zeros(len(cost))
    best = np.zeros(len(cost))
    for start, end in reversed(level_spans(view)):
        best[start:end] = np.maximum(np.maximum(own[start:end], below[start:end]), 0.0)
        up = view.parent[start:end]
        has = up >= 0
        np.add.at(below, up[has], best[start:end][has])
    return best, own, below


def _chosen(view: CorpusView, own: Floats, below: Floats) -> IntArray:
    take = (own > 0) & (own >= below)
    blocked = np.zeros(len(own), dtype=bool)
    for start, end in level_spans(view):
        up = view.parent[start:end]
        blocked[start:end] = (up >= 0) & (blocked[up] | take[up])
    return np.flatnonzero(take & ~blocked)


def lagrange(view: CorpusView, cost: IntArray, direct: IntArray, target: int) -> IntArray:
    """Return a near-optimal set: within a few percent on small trees, a few in ten thousand on large ones."""
    low, high = 0.0, float((direct / np.maximum(cost, 1)).max(initial=0.0)) * 2 + 1
    feasible = _at(view, cost, direct, 0.0)
    if int(direct[feasible].sum()) < target:
        return feasible
    for _ in range(_STEPS):
        middle = (low + high) / 2
        tried = _at(view, cost, direct, middle)
        if int(direct[tried].sum()) >= target:
            low, feasible = middle, tried
        else:
            high = middle
    return _without_slack(feasible, cost, direct, target)


def _at(view: CorpusView, cost: IntArray, direct: IntArray, price: float) -> IntArray:
    _, own, below = _values(view, cost, direct, price)
    return _chosen(view, own, below)


def _without_slack(nodes: IntArray, cost: IntArray, direct: IntArray, target: int) -> IntArray:
    """Leave out, the most expensive for its mass first, what is not needed."""
    slack = int(direct[nodes].sum()) - target
    keep = set(nodes.tolist())
    for node in sorted(nodes.tolist(), key=lambda v: (-int(cost[v]) / max(1, int(direct[v])), v)):
        if int(direct[node]) <= slack:
            slack -= int(direct[node])
            keep.remove(node)
    return np.array(sorted(keep), dtype=np.int64)


@dataclass
class _Front:
    """Undominated (cost, mass) of a subtree's antichains, and how each is made: of two fronts, or a node (-1: none)."""

    cost: IntArray
    mass: IntArray
    left: IntArray
    right: IntArray
    node: IntArray
    parts: tuple[_Front, _Front] | None


def _exact(view: CorpusView, cost: IntArray, direct: IntArray, target: int, best: int) -> IntArray | None:
    """Return an optimal set, or None where the fronts get too large. `best`: tokens of a known set that will do."""
    price = _best_price(view, cost, direct, target)
    if price <= 0:
        return None
    value, _, _ = _values(view, cost, direct, price)
    roots = np.flatnonzero(view.parent < 0).tolist()
    total = float(value[roots].sum())
    limit = best * price + 1e-6 * max(1.0, best * price)

    def prune(front: _Front, outside: float) -> _Front:
        """No completion of a state costs less than the bound says; drop those that cannot beat `best`."""
        bound = target - (front.mass - price * front.cost) - outside
        keep = (bound <= limit) & (front.cost <= best)
        return _undominated(front, keep, target)

    fronts: dict[int, _Front] = {}
    outside = np.zeros(len(cost))
    for root in roots:
        outside[root] = total - value[root]
    for node in range(len(cost)):
        up = int(view.parent[node])
        if up >= 0:
            siblings = float(value[view.children(up)].sum()) - value[node]
            outside[node] = outside[up] + siblings
    for node in range(len(cost) - 1, -1, -1):
        children = view.children(node).tolist()
        merged = _sum([fronts.pop(c) for c in children], value[children], float(outside[node]), prune)
        if merged is None:
            return None
        fronts[node] = prune(_with(merged, node, int(cost[node]), int(direct[node])), float(outside[node]))
    whole = _sum([fronts[root] for root in roots], value[roots], 0.0, prune)
    if whole is None:
        return None
    enough = np.flatnonzero(whole.mass >= target)
    if not len(enough):
        return None
    nodes: list[int] = []
    _collect(whole, int(enough[np.argmin(whole.cost[enough])]), nodes)
    return np.array(sorted(nodes), dtype=np.int64)


def _best_price(view: CorpusView, cost: IntArray, direct: IntArray, target: int) -> float:
    """Return the price whose bound is the tightest: where the Lagrangian's set is about the target."""
    low, high = 0.0, float((direct / np.maximum(cost, 1)).max(initial=0.0)) * 2 + 1
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if int(direct[_at(view, cost, direct, middle)].sum()) >= target:
            low = middle
        else:
            high = middle
    return low


def _nothing() -> _Front:
    zero = np.zeros(1, dtype=np.int64)
    return _Front(zero, zero, zero, zero, zero - 1, None)


def _sum(fronts: list[_Front], values: Floats, outside: float, prune: object) -> _Front | None:
    if not fronts:
        return _nothing()
    left = float(values.sum())
    merged = fronts[0]
    left -= float(values[0])
    for front, value in zip(fronts[1:], values[1:].tolist(), strict=True):
        left -= value
        if len(merged.cost) * len(front.cost) > _LARGEST_PRODUCT:
            return None
        i, j = np.divmod(np.arange(len(merged.cost) * len(front.cost), dtype=np.int64), len(front.cost))
        both = _Front(
            merged.cost[i] + front.cost[j], merged.mass[i] + front.mass[j], i, j, np.full(len(i), -2), (merged, front)
        )
        merged = prune(both, outside + left)  # type: ignore[operator]
    return merged


def _with(front: _Front, node: int, cost: int, mass: int) -> _Front:
    """Add the choice of the node itself, instead of anything below it."""
    again = np.arange(len(front.cost), dtype=np.int64)
    return _Front(
        np.append(front.cost, cost),
        np.append(front.mass, mass),
        np.append(again, 0),
        np.append(np.zeros(len(again), dtype=np.int64), 0),
        np.append(np.full(len(again), -3), node),
        (front, _nothing()),
    )


def _undominated(front: _Front, keep: NDArray[np.bool_], target: int) -> _Front:
    kept = np.flatnonzero(keep)
    mass = np.minimum(front.mass[kept], target)
    order = kept[np.lexsort((-mass, front.cost[kept]))]
    mass = np.minimum(front.mass[order], target)
    before = np.concatenate(([-1], np.maximum.accumulate(mass)[:-1])) if len(order) else mass
    order = order[mass > before]
    return _Front(
        front.cost[order], front.mass[order], front.left[order], front.right[order], front.node[order], front.parts
    )


def _collect(front: _Front, place: int, nodes: list[int]) -> None:
    node = int(front.node[place])
    if node >= 0:
        nodes.append(node)
    elif node < -1 and front.parts is not None:
        _collect(front.parts[0], int(front.left[place]), nodes)
        if node == -2:
            _collect(front.parts[1], int(front.right[place]), nodes)
