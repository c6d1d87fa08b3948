"""Pieces of the tree: communities as nested ranges of one ordering of members, put together without moving them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from communitree_workers.cluster.tree import Subtree
from communitree_workers.tables.columns import Ints

#: Kinds of communities, by code.
KINDS = ("cluster", "residual", "documents")
CLUSTER, RESIDUAL, DOCUMENTS = range(3)

#: A parent that is only put together (not split) has at most this many children.
MOST_CHILDREN = 20


@dataclass(frozen=True)
class Piece:
    """A community and all below it; community 0 is the top, parents come before children.

    Attributes:
        members: in an order in which every community is one range.
        start, stop: the range of each community.
        parent: the community each lies in; -1 for a top.
        level, kind: of each community; `kind` is a place in `KINDS`.
    """

    members: Ints
    start: Ints
    stop: Ints
    parent: Ints
    level: Ints
    kind: Ints


def leaf(members: Ints, kind: int = CLUSTER) -> Piece:
    """Return a community without children."""
    zero = np.zeros(1, np.int64)
    return Piece(members, zero, np.full(1, len(members), np.int64), zero - 1, zero, zero + kind)


def grown(members: Ints, tree: Subtree | None) -> Piece:
    """Return a level-0 community with its subtree; None: a leaf."""
    if tree is None:
        return leaf(members)
    return Piece(members[tree.order], tree.start, tree.stop, tree.parent, tree.level, np.zeros_like(tree.start))


def stacked(pieces: list[Piece]) -> Piece:
    """Return the pieces side by side, without a top of their own."""
    if not pieces:
        none = np.empty(0, np.int64)
        return Piece(none, none, none, none, none, none)
    shift = np.cumsum([0] + [len(p.members) for p in pieces[:-1]])
    number = np.cumsum([0] + [len(p.start) for p in pieces[:-1]])
    return Piece(
        members=np.concatenate([p.members for p in pieces]),
        start=np.concatenate([p.start + s for p, s in zip(pieces, shift, strict=True)]),
        stop=np.concatenate([p.stop + s for p, s in zip(pieces, shift, strict=True)]),
        parent=np.concatenate([np.where(p.parent < 0, -1, p.parent + n) for p, n in zip(pieces, number, strict=True)]),
        level=np.concatenate([p.level for p in pieces]),
        kind=np.concatenate([p.kind for p in pieces]),
    )


def under(pieces: list[Piece], kind: int) -> Piece:
    """Return one community of all the pieces, its children. A single piece takes the kind instead of a parent."""
    if len(pieces) == 1:
        only = pieces[0]
        return Piece(only.members, only.start, only.stop, only.parent, only.level, _with_first(only.kind, kind))
    inner = stacked(pieces)
    return Piece(
        members=inner.members,
        start=np.concatenate([[0], inner.start]),
        stop=np.concatenate([[len(inner.members)], inner.stop]),
        parent=np.concatenate([[-1], inner.parent + 1]),
        level=np.concatenate([[0], inner.level + 1]),
        kind=np.concatenate([[kind], inner.kind]),
    )


def with_children(top: Piece, more: list[Piece]) -> Piece:
    """Return the community with more children; a leaf first gets its own members as a child."""
    if not more:
        return top
    if len(top.start) == 1:
        return under([top, *more], CLUSTER)
    inner = stacked(more)
    size, number = len(top.members), len(top.start)
    stop = top.stop.copy()
    stop[0] = size + len(inner.members)
    return Piece(
        members=np.concatenate([top.members, inner.members]),
        start=np.concatenate([top.start, inner.start + size]),
        stop=np.concatenate([stop, inner.stop + size]),
        parent=np.concatenate([top.parent, np.where(inner.parent < 0, 0, inner.parent + number)]),
        level=np.concatenate([top.level, inner.level + 1]),
        kind=np.concatenate([top.kind, inner.kind]),
    )


def bundled(pieces: list[Piece]) -> list[Piece]:
    """Return at most `MOST_CHILDREN` pieces: more are put together in runs of even length, level by level."""
    while len(pieces) > MOST_CHILDREN:
        groups = -(-len(pieces) // MOST_CHILDREN)
        cuts = [len(pieces) * i // groups for i in range(groups + 1)]
        pieces = [under(pieces[a:b], DOCUMENTS) for a, b in itertools.pairwise(cuts)]
    return pieces


def _with_first(values: Ints, first: int) -> Ints:
    values = values.copy()
    values[0] = first
    return values
