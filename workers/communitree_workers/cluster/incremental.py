"""Clustering again after a small change: an old partition is kept but where the graph was touched.

A cold run after 1 % of new edges moves members all over; with only the touched members free, nearly none but these
move. igraph cannot hold members fixed, leidenalg can. No task calls this yet: each index builds its tree anew.
"""

from __future__ import annotations

import igraph
import leidenalg
import numpy as np
import numpy.typing as npt

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import WEIGHT_SCALE
from communitree_shared.errors import IntegrityError
from communitree_workers.cluster.graph import Graph
from communitree_workers.cluster.split import ordered_parts, seed_of
from communitree_workers.tables.columns import Ints

Flags = npt.NDArray[np.bool_]


def touched(old: Graph, new: Graph, old_of: Ints) -> Flags:
    """Return the members of the new graph that are new themselves or have an edge that is new, gone or reweighed.

    Args:
        old, new: the graph before and after.
        old_of: for each new member its number in the old graph, -1 where it is new.
    """
    free = old_of < 0
    count = len(new)
    new_of = np.full(len(old), -1, np.int64)
    new_of[old_of[~free]] = np.flatnonzero(~free)
    one, other = new_of[old.low], new_of[old.high]
    free[one[(one >= 0) & (other < 0)]] = True
    free[other[(other >= 0) & (one < 0)]] = True
    kept = (one >= 0) & (other >= 0)
    low, high = np.minimum(one, other)[kept], np.maximum(one, other)[kept]
    before = np.stack([low * count + high, old.weight[kept]], axis=1)
    after = np.stack([new.low * count + new.high, new.weight], axis=1)
    rows, often = np.unique(np.concatenate([before, after]), axis=0, return_counts=True)
    changed = rows[often == 1, 0]
    free[changed // count] = True
    free[changed % count] = True
    return free


def recluster(graph: Graph, membership: Ints, free: Flags, options: ClusterOptions) -> Ints:
    """Return a partition in which only the free members may have moved, parts numbered by (size, smallest member).

    Args:
        graph: the graph now.
        membership: the old part of each member (≥ 0), -1 for members that are new: these must be free.
        free: who may move.
        options: seed, resolution and iterations.

    Raises:
        IntegrityError: the arguments do not fit together, a weight is not above zero, or leidenalg refused the graph.
    """
    count = len(graph)
    _check(graph, membership, free)
    if count == 0:
        return np.empty(0, np.int64)
    start = membership.copy()
    lone = np.flatnonzero(start < 0)
    start[lone] = int(start.max(initial=-1)) + 1 + np.arange(len(lone))
    start = np.unique(start, return_inverse=True)[1].astype(np.int64)
    if len(graph.low):
        net = igraph.Graph(n=count, edges=np.stack([graph.low, graph.high], axis=1))
        try:
            partition = leidenalg.RBConfigurationVertexPartition(
                net,
                initial_membership=start.tolist(),
                weights=(graph.weight / WEIGHT_SCALE).tolist(),
                resolution_parameter=options.resolution,
            )
            optimiser = leidenalg.Optimiser()
            optimiser.set_rng_seed(seed_of(graph.digests, options) % 2**31)
            fixed = (~free).tolist()
            optimiser.optimise_partition(partition, n_iterations=options.iterations, is_membership_fixed=fixed)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # leidenalg raises the bare class for a graph it does not take
            raise IntegrityError(f"leidenalg refused the graph: {error}") from error
        start = np.asarray(partition.membership, np.int64)
    return ordered_parts(np.zeros(count, np.int64), start)[0]


def _check(graph: Graph, membership: Ints, free: Flags) -> None:
    if not len(membership) == len(free) == len(graph):
        raise IntegrityError(
            f"{len(graph)} members, but {len(membership)} old parts and {len(free)} marks of who is free."
        )
    if (membership[~free] < 0).any():
        raise IntegrityError("A member that may not move has no part to stay in: mark new members as free.")
    if (graph.weight <= 0).any():
        raise IntegrityError("An edge weight is not above zero.", hint="Floor weights with `canonical.fixed_weights`.")
