"""The community tree of a corpus, in one process or spread over workers: the same tree.

In one process: `build`. Spread: `prepare`, `split_roots`, then for each large root `Prepared.slice(root).to_bytes()`
to a worker that runs `subtree` on it, and `assemble`. After a small change of the graph, `touched` and `recluster`
split it again with most members held; no task does so yet.
"""

from __future__ import annotations

from communitree_shared.contract.options import ClusterOptions
from communitree_workers.cluster.assembly import Clustered, assemble
from communitree_workers.cluster.graph import Graph
from communitree_workers.cluster.incremental import recluster, touched
from communitree_workers.cluster.prepared import Prepared, prepare
from communitree_workers.cluster.tree import Subtree, split_roots, subtree, subtrees
from communitree_workers.tables.io import Tables

__all__ = [
    "Clustered",
    "Graph",
    "Prepared",
    "Subtree",
    "assemble",
    "build",
    "prepare",
    "recluster",
    "split_roots",
    "subtree",
    "touched",
]


def build(tables: Tables, options: ClusterOptions) -> Clustered:
    """Build the community tree in this process.

    Raises:
        IntegrityError: an id stands twice in a table, or is missing.
    """
    prepared = prepare(tables, options)
    roots = split_roots(prepared, options)
    return assemble(prepared, roots, subtrees(prepared, roots, options), options)
