"""Where small roots go: to the root they share most text with, else under one residual root, by document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from communitree_shared.contract.options import ClusterOptions
from communitree_workers.cluster.graph import distinct_pairs, ranges
from communitree_workers.cluster.pieces import (
    CLUSTER,
    DOCUMENTS,
    MOST_CHILDREN,
    RESIDUAL,
    Piece,
    bundled,
    grown,
    leaf,
    under,
    with_children,
)
from communitree_workers.cluster.prepared import Prepared
from communitree_workers.cluster.tree import Subtree
from communitree_workers.tables.columns import Ints

#: A small root of so many members is a community of its own wherever it goes; smaller ones are put together.
_OF_ITS_OWN = 3


@dataclass(frozen=True)
class Placed:
    """The roots of the tree, and how many small ones were put where."""

    roots: list[Piece]
    attached: int
    left: int


def place(prepared: Prepared, roots: list[Ints], trees: Sequence[Subtree | None], options: ClusterOptions) -> Placed:
    """Build the final roots.

    A root is *small* if it has at most `max_cluster_size` members and all of them had no edge or were in a small
    component. Small roots are attached to the other root whose members share most mass with them, by text units; what
    shares none is left to the residual root, with the `document` entities. In a corpus that has nothing but small
    roots, those of three members or more are its themes, as long as they are few.
    """
    limit = options.max_cluster_size
    small = np.array([len(r) <= limit and bool(prepared.small[r].all()) for r in roots], bool)
    if small.all():
        own = np.array([len(r) >= _OF_ITS_OWN for r in roots], bool)
        if 0 < own.sum() <= MOST_CHILDREN:
            small = ~own
    large = np.flatnonzero(~small)
    homes = _homes(prepared, roots, small)
    joined: dict[int, list[Ints]] = {}
    left: list[Ints] = []
    for root in np.flatnonzero(small).tolist():
        if homes[root] >= 0:
            joined.setdefault(int(homes[root]), []).append(roots[root])
        else:
            left.append(roots[root])
    pieces = []
    for root in large.tolist():
        more = [piece for group in _by_document(prepared, joined.get(root, []), limit) for piece in group]
        pieces.append(with_children(grown(roots[root], trees[root]), bundled(more)))
    left += list(np.arange(prepared.clustered, len(prepared.ids), dtype=np.int64).reshape(-1, 1))
    if left:
        groups = _by_document(prepared, left, limit)
        parts = (
            groups[0] if len(groups) == 1 else [under(bundled(g), DOCUMENTS) if len(g) > 1 else g[0] for g in groups]
        )
        pieces.append(under(bundled(parts), RESIDUAL))
    return Placed(pieces, sum(map(len, joined.values())), len(left))


def _homes(prepared: Prepared, roots: list[Ints], small: np.ndarray) -> Ints:
    """Return for each small root the large one that shares most mass with it (of equals the first); -1: none."""
    home = np.full(len(roots), -1, np.int64)
    m = prepared.mentions
    if not small.any() or small.all() or len(m.member) == 0:
        return home
    root_of = np.full(m.members, -1, np.int64)
    root_of[np.concatenate(roots)] = np.repeat(np.arange(len(roots)), [len(r) for r in roots])
    root = root_of[m.member]
    mine = (root >= 0) & small[root]
    asking, unit = distinct_pairs(root[mine], m.unit[mine], m.units)
    asked = np.zeros(m.units, bool)
    asked[unit] = True
    theirs = (root >= 0) & ~small[root] & asked[m.unit]
    # per text unit and large root: how much of the text unit is that root's
    packed = m.unit[theirs] * len(roots) + root[theirs]
    packed, often = np.unique(packed, return_counts=True)
    held_unit, held_root, held = packed // len(roots), packed % len(roots), often * m.share[packed // len(roots)]
    first = np.searchsorted(held_unit, unit)
    last = np.searchsorted(held_unit, unit, side="right")
    rows = ranges(first.astype(np.int64), last.astype(np.int64))
    keys, inverse = np.unique(np.repeat(asking, last - first) * len(roots) + held_root[rows], return_inverse=True)
    total = np.bincount(inverse, weights=held[rows], minlength=len(keys))
    order = np.lexsort((keys % len(roots), -total, keys // len(roots)))
    who, best = np.unique(keys[order] // len(roots), return_index=True)
    home[who] = keys[order][best] % len(roots)
    return home


def _by_document(prepared: Prepared, roots: list[Ints], limit: int) -> list[list[Piece]]:
    """Return the leaves that small roots make, by document, both in text order; without any text last."""
    m = prepared.mentions
    if not roots:
        return []
    who = np.repeat(np.arange(len(roots)), [len(r) for r in roots])
    members = np.concatenate(roots)
    first = m.first()
    begin, end = first[members], first[members + 1]
    pairs = ranges(begin, end)
    root, unit = np.repeat(who, end - begin), m.unit[pairs]
    document = m.document[unit] + 1  # 0: none
    # the document in which a root has most mass, and its first text unit there
    width = int(m.document.max(initial=-1)) + 2
    keys, inverse = np.unique(root * width + document, return_inverse=True)
    mass = np.bincount(inverse, weights=m.share[unit], minlength=len(keys))
    place = np.full(len(keys), m.units, np.int64)
    np.minimum.at(place, inverse, unit)
    order = np.lexsort((keys, -mass, keys // width))
    found, best = np.unique(keys[order] // width, return_index=True)
    home, position = np.full(len(roots), width, np.int64), np.full(len(roots), m.units, np.int64)
    home[found], position[found] = keys[order][best] % width, place[order][best]
    smallest = np.array([r[0] for r in roots], np.int64)
    order = np.lexsort((smallest, position, home))
    groups = np.split(order, np.flatnonzero(np.diff(home[order])) + 1)
    return [_packed([roots[i] for i in group.tolist()], prepared.clustered, limit) for group in groups]


def _packed(roots: list[Ints], clustered: int, limit: int) -> list[Piece]:
    """Make leaves: neighbours of one or two members go together, up to `limit`; a `document` entity stays alone."""
    parts: list[list[Ints]] = []
    kinds: list[int] = []
    open_, room = -1, 0
    for members in roots:
        single = len(members) < _OF_ITS_OWN
        alone = not single or int(members[0]) >= clustered
        if not alone and open_ >= 0 and len(members) <= room:
            parts[open_].append(members)
            room -= len(members)
            continue
        parts.append([members])
        kinds.append(DOCUMENTS if single else CLUSTER)
        if not alone:
            open_, room = len(parts) - 1, limit - len(members)
    return [leaf(np.sort(np.concatenate(part)), kind) for part, kind in zip(parts, kinds, strict=True)]
