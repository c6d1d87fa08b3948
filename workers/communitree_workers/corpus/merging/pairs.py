"""What stands together how often: pairs of entities in sentences, summed exactly and in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from communitree_shared.contract.tables import WEIGHT_SCALE
from communitree_workers.corpus.merging.graph import Ints
from communitree_workers.tables.columns import blocks

Floats = NDArray[np.float64]

#: Entities of a sentence that are paired; of a longer list the rarest.
_MOST_IN_SENTENCE = 12
#: A pair in neighbouring sentences, beside 1 for a pair in one sentence.
_NEIGHBOUR = 0.3
#: An entity with fewer partners inside sentences is tied to those of neighbouring sentences too.
_FEW = 3
#: Pairs worked on at a time.
_CELLS = 2_000_000


def weighed_pairs(sentence: Ints, entity: Ints, unit: Ints, size: int) -> tuple[Ints, Ints, Floats]:
    """Return the pairs (a < b), sorted, and their weights in units of 1/WEIGHT_SCALE.

    `sentence`, `entity`: distinct, sorted; `unit`: text unit of each sentence. A sentence of n entities gives each of
    its pairs 1/(n − 1). Two sentences side by side strengthen pairs that stand in one sentence somewhere, and give
    partners to entities that have few.
    """
    starts, lengths, entity, numbers = _rarest(sentence, entity, size)
    inside = Sums()
    every = np.arange(len(starts))
    for part in blocks(lengths * lengths, _CELLS):
        inside.add(*_crossed(entity, starts, lengths, every[part], 0, size))
    known, _ = inside.result()
    partners = np.bincount(np.concatenate([known // max(size, 1), known % max(size, 1)]), minlength=size)
    few = partners < _FEW
    near = (unit[numbers[:-1]] == unit[numbers[1:]]) & (np.diff(numbers) == 1)
    beside = np.flatnonzero(near)
    for part in blocks(lengths[beside] * lengths[beside + 1], _CELLS):
        keys, weights = _crossed(entity, starts, lengths, beside[part], 1, size)
        at = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
        wanted = few[keys // max(size, 1)] | few[keys % max(size, 1)]
        if len(known):
            wanted |= known[at] == keys
        inside.add(keys[wanted], weights[wanted])
    keys, weights = inside.result()
    return keys // max(size, 1), keys % max(size, 1), weights.astype(np.float64)


class Sums:
    """Integer weights summed by key: sorted runs, merged when they outgrow what is merged already."""

    def __init__(self) -> None:
        self._keys = [np.zeros(0, dtype=np.int64)]
        self._weights = [np.zeros(0, dtype=np.int64)]

    def add(self, keys: Ints, weights: Ints) -> None:
        """Add weights; keys may repeat."""
        keys, weights = _summed(keys, weights)
        self._keys.append(keys)
        self._weights.append(weights)
        if sum(map(len, self._keys[1:])) > len(self._keys[0]):
            self.result()

    def result(self) -> tuple[Ints, Ints]:
        """Return the distinct keys, sorted, and their sums."""
        if len(self._keys) > 1:
            keys, weights = _summed(np.concatenate(self._keys), np.concatenate(self._weights))
            self._keys, self._weights = [keys], [weights]
        return self._keys[0], self._weights[0]


def _summed(keys: Ints, weights: Ints) -> tuple[Ints, Ints]:
    if not len(keys):
        return keys, weights
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], np.add.reduceat(weights, first)


def _rarest(sentence: Ints, entity: Ints, size: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return start and length of each sentence in the list of entities, that list, and the sentences' numbers."""
    frequency = np.bincount(entity, minlength=size)
    order = np.lexsort((entity, frequency[entity], sentence))
    sentence, entity = sentence[order], entity[order]
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    rank = np.arange(len(sentence)) - np.repeat(starts, np.diff(np.append(starts, len(sentence))))
    sentence, entity = sentence[rank < _MOST_IN_SENTENCE], entity[rank < _MOST_IN_SENTENCE]
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    return starts, np.diff(np.append(starts, len(sentence))), entity, sentence[starts]


def _crossed(entity: Ints, starts: Ints, lengths: Ints, left: Ints, shift: int, size: int) -> tuple[Ints, Ints]:
    """Return keys (a·size + b, a < b) and weights of all pairs across sentences that are `shift` apart, or in one."""
    right = left + shift
    n, m = lengths[left], lengths[right]
    cells = n * m
    block = np.repeat(np.arange(len(left)), cells)
    inner = np.arange(cells.sum()) - np.repeat(np.cumsum(cells) - cells, cells)
    one = entity[starts[left][block] + inner // m[block]]
    other = entity[starts[right][block] + inner % m[block]]
    same = not shift
    share = WEIGHT_SCALE / np.maximum(n - 1, 1) if same else _NEIGHBOUR * WEIGHT_SCALE / np.maximum(n, m)
    weight = np.round(share).astype(np.int64)[block]
    wanted = one < other if same else one != other
    return np.minimum(one, other)[wanted] * size + np.maximum(one, other)[wanted], weight[wanted]
