"""The budget cut's precomputation: refinements merged into blocks by weakest links (Horn 1972).

Refining a community into its children gains bits of detail and costs tokens. A child's refinement may buy more per
token than its parent's, yet cannot come first; so a parent takes in every child block that is at least as good as
itself. What is left, sorted by bits per token, can be bought from the front: every prefix is optimal for what it costs.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """Blocks of one tree, the best first.

    `of_node`: block of each inner node's refinement, -1 for a leaf. `gain` (fixed-point bits) and `cost` (tokens) of
    each block, `before`: cost of all finite blocks up to and including each, `parent`: the block that must be taken
    first (-1: none). Blocks before `free` cost nothing or less and are always taken; their `before` is 0.
    """

    of_node: IntArray
    gain: IntArray
    cost: IntArray
    before: IntArray
    parent: IntArray
    free: int

    def ratio(self, block: int) -> float:
        """Return bits per token of a finite block."""
        return int(self.gain[block]) / int(self.cost[block])


def bits(mass: IntArray, total: int) -> IntArray:
    """Return each community's share of F(cut) = Σ m·log2(M/m), rounded to integers; M = `total`."""
    out = np.zeros(len(mass), dtype=np.int64)
    positive = (mass > 0) & (mass < total)
    m = mass[positive].astype(np.float64)
    out[positive] = np.rint(m * np.log2(total / m)).astype(np.int64)
    return out


def build_blocks(parent: IntArray, tokens: IntArray, share: IntArray, keys: list[str]) -> Blocks:
    """Merge refinements into blocks.

    Args:
        parent: parent of each node, -1 for a root; parents stand before their children.
        tokens: what reading each node costs.
        share: each node's part of F (see `bits`).
        keys: a name of each node that does not depend on numbering; breaks ties.
    """
    n = len(parent)
    gain = np.zeros(n, dtype=np.int64)
    cost = np.zeros(n, dtype=np.int64)
    has = parent >= 0
    np.add.at(gain, parent[has], share[has])
    np.add.at(cost, parent[has], tokens[has])
    inner = np.zeros(n, dtype=bool)
    inner[parent[has]] = True
    gain = np.where(inner, np.maximum(gain - share, 0), 0)
    cost = np.where(inner, cost - tokens, 0)

    g, d = gain.tolist(), cost.tolist()
    up = parent.tolist()
    heaps: list[list[tuple[float, str, int]] | None] = [None] * n
    absorbed_by = list(range(n))  # block root → the block root that took it in
    ratio = [0.0] * n
    for node in range(n - 1, -1, -1):
        if not inner[node]:
            continue
        heap = heaps[node] or []
        own = _ratio(g[node], d[node])
        while heap and -heap[0][0] >= own:
            _, _, child = heapq.heappop(heap)
            absorbed_by[child] = node
            g[node] += g[child]
            d[node] += d[child]
            own = _ratio(g[node], d[node])
            heap = _join(heap, heaps[child])
            heaps[child] = None
        ratio[node] = own
        heaps[node] = heap
        if up[node] >= 0:
            heaps[up[node]] = _join(heaps[up[node]] or [], [(-own, keys[node], node)])
    return _sorted_blocks(parent, inner, absorbed_by, ratio, g, d, keys)


def _ratio(gain: int, cost: int) -> float:
    return math.inf if cost <= 0 else gain / cost


def _join(a: list[tuple[float, str, int]], b: list[tuple[float, str, int]] | None) -> list[tuple[float, str, int]]:
    if not b:
        return a
    if len(a) < len(b):
        a, b = b, a
    for item in b:
        heapq.heappush(a, item)
    return a


def _sorted_blocks(
    parent: IntArray,
    inner: NDArray[np.bool_],
    absorbed_by: list[int],
    ratio: list[float],
    g: list[int],
    d: list[int],
    keys: list[str],
) -> Blocks:
    n = len(absorbed_by)
    root = [0] * n
    for node in range(n):  # an absorbing block root stands before the absorbed
        root[node] = node if absorbed_by[node] == node else root[absorbed_by[node]]
    heads = [node for node in range(n) if inner[node] and root[node] == node]
    # Infinite ones before, by depth through the order of nodes, so that a parent's block precedes its child's.
    heads.sort(key=lambda node: (-ratio[node], node if ratio[node] == math.inf else 0, keys[node]))
    rank = {node: i for i, node in enumerate(heads)}
    blocks = [rank[root[node]] if is_inner else -1 for node, is_inner in enumerate(inner.tolist())]
    of_node = np.array(blocks, dtype=np.int64)
    up = parent.tolist()
    block_parent = np.array([blocks[up[h]] if up[h] >= 0 else -1 for h in heads], dtype=np.int64)
    gain = np.array([g[h] for h in heads], dtype=np.int64)
    cost = np.array([d[h] for h in heads], dtype=np.int64)
    free = sum(1 for h in heads if ratio[h] == math.inf)
    before = np.cumsum(np.where(np.arange(len(heads)) < free, 0, cost))
    return Blocks(of_node, gain, cost, before.astype(np.int64), block_parent, free)
