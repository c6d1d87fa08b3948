"""One split: a community in, its parts out. A pure function of members, internal edges and settings."""

from __future__ import annotations

import hashlib
import random
import threading

import igraph
import numpy as np

from communitree_shared.options import ClusterOptions
from communitree_shared.tables import WEIGHT_SCALE
from communitree_workers.cluster.graph import Digests
from communitree_workers.tables.columns import Ints

#: igraph has one random generator in a process: two splits at a time would draw from each other's.
_GENERATOR = threading.Lock()

#: Above this many edges igraph gets an array: slower to read than tuples, but without 100 bytes an edge.
_TUPLES_BELOW = 200_000


def seed_of(digests: Digests, options: ClusterOptions) -> int:
    """Return the generator's seed: a hash of the chosen seed and of the members, in order."""
    mark = hashlib.blake2b(str(options.seed).encode(), digest_size=8)
    mark.update(np.ascontiguousarray(digests, "<u8").tobytes())
    return int.from_bytes(mark.digest(), "big")


def split(digests: Digests, low: Ints, high: Ints, weight: Ints, options: ClusterOptions) -> Ints:
    """Return the part of each member, in igraph's numbering (callers sort the parts).

    Leiden on weighted modularity (Traag, Waltman, van Eck 2019). Two iterations of igraph's reach the quality of
    leidenalg's in an eighth of its time; without a bound it does not end in practice at a million members.
    """
    if len(low) == 0:
        return np.arange(len(digests), dtype=np.int64)
    ends = np.stack([low, high], axis=1)
    edges = ends if len(low) > _TUPLES_BELOW else list(zip(low.tolist(), high.tolist(), strict=True))
    graph = igraph.Graph(n=len(digests), edges=edges)
    del ends, edges
    with _GENERATOR:
        igraph.set_random_number_generator(random.Random(seed_of(digests, options)))
        try:
            parts = graph.community_leiden(
                objective_function="modularity",
                weights=(weight / WEIGHT_SCALE).tolist(),
                resolution=options.resolution,
                n_iterations=options.iterations,
            )
        finally:
            igraph.set_random_number_generator(random)
    return np.asarray(parts.membership, np.int64)


def ordered_parts(owner: Ints, part: Ints) -> tuple[Ints, Ints, Ints]:
    """Number the parts of many communities at once: by owner, then size descending, then smallest member.

    Args:
        owner: the community of each member, ascending; the members of one community ascending too.
        part: the part of each member; the same number may be used by several owners.

    Returns:
        For each member the number of its part (from 0, over all owners); for each part its owner and its size.
    """
    width = int(part.max()) + 1 if len(part) else 1
    _, first, inverse, sizes = np.unique(
        owner * width + part, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes, owner[first]))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[inverse], owner[first][order], sizes[order].astype(np.int64)
