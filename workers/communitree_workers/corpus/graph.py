"""The graph between extraction and tables: columns of numbers and strings, no object for an entity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def no_ints() -> Ints:
    """Return an empty column."""
    return np.zeros(0, dtype=np.int64)


@dataclass
class Graph:
    """Entities by number, in the order of their keys; edges by number, ends a < b, in the order of (a, b).

    `mention_*`: each (entity, text unit) once; `edge_unit_*`: each (edge, text unit) once. Text units are rows of the
    table `text_units`. `edge_weight` is in units of 1/WEIGHT_SCALE. `claims` are rows of `covariates` with
    `subject`, `object` (entity numbers, -1: none) and `unit`.
    """

    keys: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    aliases: list[list[str]] = field(default_factory=list)
    mention_entity: Ints = field(default_factory=no_ints)
    mention_unit: Ints = field(default_factory=no_ints)
    edge_a: Ints = field(default_factory=no_ints)
    edge_b: Ints = field(default_factory=no_ints)
    edge_weight: Ints = field(default_factory=no_ints)
    edge_descriptions: list[str] = field(default_factory=list)
    edge_unit_edge: Ints = field(default_factory=no_ints)
    edge_unit_unit: Ints = field(default_factory=no_ints)
    claims: list[dict[str, Any]] = field(default_factory=list)
    #: What extraction has to say: failed units, damaged rows, candidates dropped.
    notes: dict[str, Any] = field(default_factory=dict)


def unique_pairs(first: Ints, second: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct pairs, sorted; `size` is above every value of `second`."""
    joined = np.unique(first * np.int64(max(size, 1)) + second)
    return joined // max(size, 1), joined % max(size, 1)
