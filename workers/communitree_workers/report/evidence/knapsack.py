"""The exact 0/1 knapsack that decides which children keep their rows and which are stood in for by their report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def best_subset(weights: Sequence[int], values: Sequence[int], capacity: int) -> list[int]:
    """Return the indices, ascending, of the items of the largest total value whose weights fit the capacity.

    Of equal values the smaller weight wins. Weights are positive, values not negative. Dynamic programming over the
    capacity: items × min(capacity, sum of weights) steps, vectorised.
    """
    fitting = [i for i, weight in enumerate(weights) if weight <= capacity]
    total = sum(weights[i] for i in fitting)
    if total <= capacity:
        return fitting
    # Value first, then least weight, in one number: the weights together are below `scale`.
    scale = total + 1
    best = np.zeros(capacity + 1, dtype=np.int64)
    took = np.zeros((len(fitting), capacity // 8 + 1), dtype=np.uint8)
    for at, i in enumerate(fitting):
        weight = weights[i]
        gain = best[: capacity + 1 - weight] + (values[i] * scale - weight)
        better = np.zeros(capacity + 1, dtype=bool)
        better[weight:] = gain > best[weight:]
        best[weight:] = np.maximum(best[weight:], gain)
        took[at] = np.packbits(better)
    chosen = []
    room = capacity
    for at in range(len(fitting) - 1, -1, -1):
        if took[at, room >> 3] >> (7 - (room & 7)) & 1:
            chosen.append(fitting[at])
            room -= weights[fitting[at]]
    return chosen[::-1]
