"""The communities table: pieces joined, numbered, and given their columns; and what the manifest says of the tree."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import COMMUNITIES, NO_PARENT, RELATIONSHIPS
from communitree_workers.cluster.graph import distinct_pairs, ranges
from communitree_workers.cluster.measure import measured
from communitree_workers.cluster.pieces import KINDS, Piece, stacked
from communitree_workers.cluster.prepared import Prepared
from communitree_workers.cluster.residual import place
from communitree_workers.cluster.tree import Subtree
from communitree_workers.tables.columns import Ints, one_chunk, to_lists
from communitree_workers.tables.handover import TreeStats
from communitree_workers.tables.io import Tables, schema
from communitree_workers.tables.memory import give_back


@dataclass(frozen=True)
class Clustered:
    """The tree, the corpus it belongs to, and figures for the manifest.

    Attributes:
        communities: the `communities` table, rows by community id.
        tables: the corpus with `document` entities, mass and degrees; text units and entities name each other.
        stats: figures of the tree.
    """

    communities: pa.Table
    tables: Tables
    stats: TreeStats


@dataclass(frozen=True)
class Numbered:
    """The whole tree by community id: each community is members[start:stop].

    Attributes:
        members: an ordering in which every community is one range.
        start, stop, parent, level, kind: by community id; `parent` holds ids too.
        leaf: communities without children.
    """

    members: Ints
    start: Ints
    stop: Ints
    parent: Ints
    level: Ints
    kind: Ints
    leaf: np.ndarray

    def at(self, level: int) -> tuple[Ints, Ints]:
        """Return the ids of a level, and for each member the community it is in there, -1 for none."""
        ids = np.flatnonzero(self.level == level).astype(np.int64)
        label = np.full(len(self.members), -1, np.int64)
        where = ranges(self.start[ids], self.stop[ids])
        label[self.members[where]] = np.repeat(ids, self.stop[ids] - self.start[ids])
        return ids, label

    @property
    def depth(self) -> int:
        """Return the number of levels."""
        return int(self.level.max()) + 1 if len(self.level) else 0


def assemble(
    prepared: Prepared, roots: list[Ints], trees: Sequence[Subtree | None], options: ClusterOptions
) -> Clustered:
    """Join level-0 communities and their subtrees to the whole tree.

    Args:
        prepared: the corpus.
        roots: of `split_roots`.
        trees: the subtree of each root; None where it is a leaf.
        options: of the job.
    """
    give_back()
    placed = place(prepared, roots, trees, options)
    tree = number(stacked(placed.roots))
    communities = _table(prepared, tree, options)
    stats = measured(prepared, tree, communities, placed)
    return Clustered(communities, prepared.tables, stats)


def number(piece: Piece) -> Numbered:
    """Number the communities by (level, size descending, smallest member)."""
    size = piece.stop - piece.start
    count = len(size)
    smallest = np.empty(count, np.int64)
    for level in range(int(piece.level.max()) + 1 if count else 0):
        here = np.flatnonzero(piece.level == level)
        members = piece.members[ranges(piece.start[here], piece.stop[here])]
        smallest[here] = np.minimum.reduceat(members, np.cumsum(size[here]) - size[here])
    order = np.lexsort((smallest, -size, piece.level))
    ids = np.empty(count + 1, np.int64)
    ids[order] = np.arange(count)
    ids[-1] = NO_PARENT
    leaf = np.ones(count, bool)
    leaf[piece.parent[piece.parent >= 0]] = False
    return Numbered(
        piece.members,
        piece.start[order],
        piece.stop[order],
        ids[piece.parent[order]],
        piece.level[order],
        piece.kind[order],
        leaf[order],
    )


def _table(prepared: Prepared, tree: Numbered, options: ClusterOptions) -> pa.Table:
    """Give the communities their columns, level by level: the lists of a level are one chunk."""
    m = prepared.mentions
    names: dict[str, list[pa.Array]] = {
        c: [] for c in ("entity_ids", "relationship_ids", "text_unit_ids", "covariate_ids")
    }
    weights, keys = [], []
    relationship_ids = one_chunk(prepared.tables[RELATIONSHIPS]["id"])
    by_id = np.asarray(pc.sort_indices(prepared.ids), np.int64)
    lines = pc.binary_join_element_wise(prepared.ids, "", "\n")
    for level in range(tree.depth):
        give_back()  # of the level above: its lists stay, and so would half as much again
        ids, label = tree.at(level)
        first, count = int(ids[0]), len(ids)
        held = np.flatnonzero(label >= 0)
        names["entity_ids"].append(_lists(label, held, held, prepared.ids, first, count))
        held = by_id[label[by_id] >= 0]
        keys += _keys(label[held] - first, held, lines, count)
        inside = (prepared.source >= 0) & (prepared.target >= 0)
        inside &= label[prepared.source] == label[prepared.target]
        inside &= label[prepared.source] >= 0
        rows = np.flatnonzero(inside)
        names["relationship_ids"].append(
            _lists(label, prepared.source[rows], prepared.relationship_rows[rows], relationship_ids, first, count)
        )
        rows = np.flatnonzero(prepared.subject >= 0)
        rows = rows[label[prepared.subject[rows]] >= 0]
        names["covariate_ids"].append(_lists(label, prepared.subject[rows], rows, prepared.covariate_ids, first, count))
        owner = label[m.member]
        owner, unit = distinct_pairs(owner[owner >= 0] - first, m.unit[owner >= 0], m.units)
        names["text_unit_ids"].append(to_lists(owner, prepared.unit_ids.take(pa.array(unit)), count))
        weights.append(np.bincount(owner, minlength=count))
    total = len(tree.level)
    number = np.arange(total, dtype=np.int64)
    size = tree.stop - tree.start
    mass = np.concatenate([[0], np.cumsum(m.mass[tree.members])])
    nested = np.flatnonzero(tree.parent >= 0)
    nested = nested[np.argsort(tree.parent[nested], kind="stable")]
    columns: dict[str, Any] = {
        "id": [_row_id(key, level) for key, level in zip(keys, tree.level.tolist(), strict=True)],
        "human_readable_id": number,
        "community": number,
        "level": tree.level,
        "parent": tree.parent,
        "children": to_lists(tree.parent[nested], pa.array(nested, pa.int64()), total),
        "title": [f"Community {i}" for i in range(total)],
        **{name: pa.chunked_array(chunks, pa.list_(pa.string())) for name, chunks in names.items()},
        "period": pa.repeat(pa.scalar(""), total),
        "size": size,
        "key": keys,
        "kind": pa.array(KINDS).take(pa.array(tree.kind)),
        "is_leaf": tree.leaf,
        "oversize": tree.leaf & (size > options.max_cluster_size),
        "weight": np.concatenate([np.zeros(0, np.int64), *weights]),
        "mass": mass[tree.stop] - mass[tree.start],
    }
    wanted = schema(COMMUNITIES)
    return pa.table([_column(columns[field.name], field.type) for field in wanted], schema=wanted)


def _column(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.cast(kind)
    return pa.array(values, kind)


def _lists(label: Ints, member: Ints, row: Ints, ids: pa.Array, first: int, count: int) -> pa.ListArray:
    """Return the ids of `row` in lists by the community of `member`; within a list in the order given."""
    owner = label[member] - first
    order = np.argsort(owner, kind="stable")
    return to_lists(owner[order], ids.take(pa.array(row[order])), count)


def _keys(owner: Ints, members: Ints, lines: pa.Array, count: int) -> list[str]:
    """Return what `tables.keys.community_keys` does, without a Python object an id: each has its line end."""
    order = np.argsort(owner, kind="stable")
    text = lines.take(pa.array(members[order]))
    _, offsets, data = text.buffers()
    if data is None:
        return []
    ends = np.frombuffer(offsets, np.int32, len(text) + 1)
    bounds = ends[np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))])].tolist()
    view = memoryview(data)
    return [hashlib.sha256(view[a:b]).hexdigest()[:32] for a, b in itertools.pairwise(bounds)]


def _row_id(key: str, level: int) -> str:
    return hashlib.sha256(f"{key}:{level}".encode()).hexdigest()[:32]
