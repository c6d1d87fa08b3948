"""Figures of a finished tree: coverage, levels, modularity, and what is not held and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from communitree_shared.contract.results import IndexCoverage
from communitree_workers.cluster.prepared import Prepared
from communitree_workers.cluster.residual import Placed
from communitree_workers.tables.columns import Ints
from communitree_workers.tables.handover import TreeLevel, TreeStats

if TYPE_CHECKING:
    from communitree_workers.cluster.assembly import Numbered


def measured(prepared: Prepared, tree: Numbered, communities: pa.Table, placed: Placed) -> TreeStats:
    """Return what the manifest says of the tree; its coverage counts relationships with both ends in one root."""
    m, counts = prepared.mentions, prepared.counts
    size = tree.stop - tree.start
    frontier = np.full(len(prepared.ids), -1, np.int64)
    levels, modularity = {}, {}
    for level in range(tree.depth):
        ids, label = tree.at(level)
        frontier = np.where(label >= 0, label, frontier)
        levels[str(level)] = TreeLevel(
            communities=len(ids),
            leaves=int(tree.leaf[ids].sum()),
            entities=int(size[ids].sum()),
            size_max=int(size[ids].max()),
        )
        modularity[str(level)] = _modularity(prepared, frontier)
        if level == 0:
            ends = (prepared.source >= 0) & (prepared.target >= 0)
            same = label[prepared.source[ends]] == label[prepared.target[ends]]
            held, between = int(same.sum()), int(len(same) - same.sum())
            units = int(np.count_nonzero(np.bincount(m.unit, minlength=m.units)))
    if not tree.depth:
        held = between = units = 0
    else:
        modularity["leaves"] = modularity[str(tree.depth - 1)]
    oversize = tree.leaf & (size > 0) & np.asarray(communities["oversize"].combine_chunks().to_numpy(False), bool)
    return TreeStats(
        coverage=IndexCoverage(
            entities=_share(len(tree.members), counts["entities"]),
            relationships=_share(held, counts["relationships"]),
            text_units=_share(units, counts["text_units"]),
            between_roots=between,
        ),
        levels=levels,
        modularity=modularity,
        warnings=list(prepared.warnings),
        notes=[],
        weak_edges=counts["weak_edges"],
        document_entities=counts["document_entities"],
        oversize_leaves=int(oversize.sum()),
        oversize_max=int(size[oversize].max()) if oversize.any() else 0,
        attached_roots=placed.attached,
        residual_roots=placed.left,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _modularity(prepared: Prepared, label: Ints) -> float:
    real = ~prepared.weak
    graph = prepared.graph
    return modularity(graph.low[real], graph.high[real], graph.weight[real], label)


def modularity(low: Ints, high: Ints, weight: Ints, label: Ints) -> float:
    """Return the weighted modularity (Newman 2004, resolution 1) of a partition; 0 without edges."""
    total = int(weight.sum())
    if total == 0:
        return 0.0
    inside = int(weight[label[low] == label[high]].sum())
    count = int(label.max()) + 1
    degree = np.bincount(label[low], weights=weight, minlength=count)
    degree += np.bincount(label[high], weights=weight, minlength=count)
    return float(inside / total - np.square(degree / (2 * total)).sum())
