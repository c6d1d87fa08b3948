"""The finest cut within a budget: a core from the front of the block list, then a fill that skips what does not fit."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from communitree_workers.query.view.blocks import Blocks
from communitree_workers.query.view.corpus_view import CorpusView, IntArray


@dataclass(frozen=True)
class Cut:
    """`nodes`: the cut. `spent`: tokens (or reports). `core`: spent by the core alone. `detail`, `bound`: F of the cut,
    and the most that any cut of this budget can have, in fixed-point bits. `missing`: roots that do not fit.
    `least`: where roots are missing, the smallest budget that reads any.
    """

    nodes: IntArray
    spent: int
    core: int
    detail: int
    bound: int
    missing: IntArray
    least: int = 0


def cut(view: CorpusView, blocks: Blocks, cost: IntArray, budget: int, *, stable: bool = False) -> Cut:
    """Return the finest cut that costs at most `budget`.

    Source of the rules: the weakest-link order of `blocks.py`. Tokens and F never fall as the budget grows, and the
    core never gets coarser; the fill may.
    """
    base = nodes_of(view, blocks, blocks.free, None)
    spent = int(cost[base].sum())
    if spent > budget:
        return _roots_that_fit(view, blocks, cost, base, budget, stable=stable)
    total = len(blocks.before)
    core = max(blocks.free, int(np.searchsorted(blocks.before, budget - spent, side="right")))
    core_spent = spent + (int(blocks.before[core - 1]) if core else 0)
    extra = [] if stable else _fill(blocks, core, budget - core_spent)
    nodes = nodes_of(view, blocks, core, extra)
    core_detail = int(view.bits[nodes_of(view, blocks, core, None)].sum()) if extra else int(view.bits[nodes].sum())
    bound = core_detail if core == total else core_detail + math.ceil(blocks.ratio(core) * (budget - core_spent))
    return Cut(nodes, int(cost[nodes].sum()), core_spent, int(view.bits[nodes].sum()), bound, nodes[:0])


def nodes_of(view: CorpusView, blocks: Blocks, core: int, extra: list[int] | None) -> IntArray:
    """Return the cut after the first `core` blocks and the `extra` ones."""
    taken = np.zeros(len(blocks.gain) + 1, dtype=bool)  # the last one is for -1: a leaf has no block
    taken[:core] = True
    if extra:
        taken[extra] = True
    refined = taken[blocks.of_node]
    reached = (view.parent < 0) | refined[view.parent]
    return np.flatnonzero(reached & ~refined)


def _fill(blocks: Blocks, start: int, left: int) -> list[int]:
    """Walk on from the core: take each block whose parent block is taken and which fits."""
    cost = blocks.cost
    candidates = start + np.flatnonzero(cost[start:] <= left)
    candidates = candidates[blocks.parent[candidates] < start]
    taken: list[int] = []
    unlocked: list[int] = []
    while left > 0:
        candidates = candidates[cost[candidates] <= left]
        following = int(candidates[0]) if len(candidates) else -1
        while unlocked and int(cost[unlocked[0]]) > left:
            heapq.heappop(unlocked)
        if unlocked and (following < 0 or unlocked[0] < following):
            block = heapq.heappop(unlocked)
        elif following >= 0:
            block = following
            candidates = candidates[1:]
        else:
            break
        taken.append(block)
        left -= int(cost[block])
        for child in np.flatnonzero(blocks.parent == block).tolist():
            heapq.heappush(unlocked, child)
    return taken


def _roots_that_fit(
    view: CorpusView, blocks: Blocks, cost: IntArray, base: IntArray, budget: int, *, stable: bool
) -> Cut:
    """Roots are blocks too: by mass per token, skipping what does not fit (none with `stable` after the first)."""
    root = roots_of(view)
    number = {r: i for i, r in enumerate(np.flatnonzero(view.parent < 0).tolist())}
    groups: list[list[int]] = [[] for _ in number]
    for node in base.tolist():
        groups[number[int(root[node])]].append(node)
    ranked = sorted(
        (( -int(view.mass[group].sum()) / max(1, int(cost[group].sum())), int(view.community[group[0]]), group)
         for group in groups),
        key=lambda item: (item[0], item[1]),
    )  # fmt: skip
    prices = [int(cost[group].sum()) for _, _, group in ranked]
    least = prices[0] if stable else min(prices)
    left, taken, missing, core = budget, [], [], 0
    stopped = False
    for (_, _, group), price in zip(ranked, prices, strict=True):
        if price <= left and not (stable and stopped):
            taken += group
            left -= price
            core += 0 if stopped else price
        else:
            missing += group
            stopped = True
    nodes = np.array(sorted(taken), dtype=np.int64)
    detail = int(view.bits[nodes].sum())
    return Cut(
        nodes, budget - left, core, detail, int(view.bits[base].sum()), np.array(sorted(missing), dtype=np.int64),
        least,
    )  # fmt: skip


def roots_of(view: CorpusView) -> IntArray:
    """Return the root above (or at) each node."""
    root = np.arange(len(view.parent), dtype=np.int64)
    for node, up in enumerate(view.parent.tolist()):
        if up >= 0:
            root[node] = root[up]
    return root
