"""Hierarchical Leiden: level-0 communities, and the whole subtree under one of them.

A community larger than `max_cluster_size` is split one level down, until nothing more splits. The subtree under a
level-0 community is a pure function of its members, the edges between them and the settings: it may be grown in
another process, or not grown again where nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from communitree_shared.contract.options import ClusterOptions
from communitree_workers.cluster.crumbs import without_crumbs
from communitree_workers.cluster.graph import Graph, grouping, offsets, packed, ranges, unpacked
from communitree_workers.cluster.prepared import Prepared
from communitree_workers.cluster.split import ordered_parts, split
from communitree_workers.tables.columns import Ints


@dataclass(frozen=True)
class Subtree:
    """Communities as nested ranges of one ordering of the members; community 0 is the top.

    Attributes:
        order: positions in the top community's members; a community is a range of it, ascending within leaves.
        start, stop: the range of each community.
        parent: the community each lies in, -1 for the top. A parent comes before its children.
        level: 0 for the top.
    """

    order: Ints
    start: Ints
    stop: Ints
    parent: Ints
    level: Ints

    def to_bytes(self) -> bytes:
        """Return the subtree as an `npz` file without pickled objects."""
        return packed(order=self.order, start=self.start, stop=self.stop, parent=self.parent, level=self.level)

    @classmethod
    def from_bytes(cls, data: bytes) -> Subtree:
        """Return the subtree of `to_bytes`."""
        arrays = {name: np.asarray(values, np.int64) for name, values in unpacked(data).items()}
        return cls(**arrays)


def split_roots(prepared: Prepared, options: ClusterOptions) -> list[Ints]:
    """Return the level-0 communities as ascending members, largest first, then by smallest member.

    `document` entities have no edges and no part in this; `assemble` places them.
    """
    graph = prepared.graph
    count = prepared.clustered
    part = np.arange(count, dtype=np.int64)
    linked = np.zeros(count, bool)
    linked[graph.low] = True
    linked[graph.high] = True
    members = np.flatnonzero(linked)
    if len(members):
        part[members] = count + split(graph.part(members), options)
    number, _, sizes = ordered_parts(np.zeros(count, np.int64), part)
    order = np.argsort(number, kind="stable").astype(np.int64)
    return np.split(order, np.cumsum(sizes)[:-1]) if count else []


def subtree(source: Prepared | Graph, members: Ints | None, options: ClusterOptions) -> Subtree:
    """Return the whole subtree under one level-0 community.

    Args:
        source: the prepared graph, or only the part that `Prepared.slice(members)` cut out of it.
        members: the community's members, ascending; None for all of a slice.
        options: sizes, seed, resolution and iterations.
    """
    graph = source.graph if isinstance(source, Prepared) else source
    if members is not None and len(members) <= options.max_cluster_size:
        none = np.zeros(1, np.int64)
        return Subtree(np.arange(len(members)), none, none + len(members), none - 1, none)
    if members is not None:
        graph = graph.part(members)
    return _grow(graph, options)


def subtrees(prepared: Prepared, roots: list[Ints], options: ClusterOptions) -> list[Subtree | None]:
    """Return the subtree of each root, None where a root is small enough to be a leaf."""
    return [subtree(prepared, root, options) if len(root) > options.max_cluster_size else None for root in roots]


def _grow(graph: Graph, options: ClusterOptions) -> Subtree:
    """Split level by level: the edges of a whole level are regrouped at once, only Leiden runs one by one."""
    count = len(graph)
    order = np.arange(count, dtype=np.int64)
    starts, stops = [np.zeros(1, np.int64)], [np.full(1, count, np.int64)]
    parents, levels = [np.full(1, -1, np.int64)], [np.zeros(1, np.int64)]
    made, level = 1, 0
    low, high, weight = graph.low, graph.high, graph.weight
    while True:
        start, stop = starts[-1], stops[-1]
        large = stop - start > options.max_cluster_size
        if not large.any():
            break
        numbers = np.flatnonzero(large) + made - len(start)
        start, stop = start[large], stop[large]
        places = ranges(start, stop)
        owner = np.repeat(np.arange(len(start), dtype=np.int64), stop - start)
        label, place = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        label[order[places]] = owner
        place[order[places]] = places - start[owner]
        inside = (label[low] == label[high]) & (label[low] >= 0)
        low, high, weight = low[inside], high[inside], weight[inside]
        grouped = grouping(label[low], len(start))
        low, high, weight = low[grouped], high[grouped], weight[grouped]
        bounds = offsets(label[low], len(start))
        parts = []
        for i in range(len(start)):
            inner = slice(bounds[i], bounds[i + 1])
            ends = (place[low[inner]], place[high[inner]], weight[inner])
            found = split(Graph(graph.digests[order[start[i] : stop[i]]], *ends), options)
            parts.append(without_crumbs(found, *ends, options.max_cluster_size))
        part = np.concatenate(parts)
        number, owner, sizes = ordered_parts(owner, part)
        order[places] = order[places][np.argsort(number, kind="stable")]
        # a community that does not come apart stays an oversize leaf
        real = np.bincount(owner, minlength=len(start))[owner] > 1
        begin = start[owner] + _offsets(owner, sizes)
        if not real.any():
            break
        level += 1
        starts.append(begin[real])
        stops.append((begin + sizes)[real])
        parents.append(numbers[owner[real]])
        levels.append(np.full(int(real.sum()), level, np.int64))
        made += int(real.sum())
    return Subtree(*(np.concatenate(c) for c in ([order], starts, stops, parents, levels)))


def _offsets(owner: Ints, sizes: Ints) -> Ints:
    """Return where each part begins within its owner."""
    before = np.cumsum(sizes) - sizes
    first = np.searchsorted(owner, owner)
    return before - before[first]
