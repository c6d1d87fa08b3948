"""One split: a community in, its parts out. A pure function of members, internal edges and settings."""

from __future__ import annotations

import hashlib
import random
import threading

import igraph
import numpy as np

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import WEIGHT_SCALE
from communitree_workers.cluster.graph import Digests, Graph
from communitree_workers.tables.columns import Ints

#: igraph has one random generator in a process: two splits at a time would draw from each other's.
_GENERATOR = threading.Lock()

#: Above this many edges igraph gets arrays: slower to read than Python's lists, but without 130 bytes an edge.
_LISTS_BELOW = 200_000


def seed_of(digests: Digests, options: ClusterOptions) -> int:
    """Return the generator's seed: a hash of the chosen seed and of the members, in order."""
    mark = hashlib.blake2b(str(options.seed).encode(), digest_size=8)
    mark.update(np.ascontiguousarray(digests, "<u8").tobytes())
    return int.from_bytes(mark.digest(), "big")


def split(graph: Graph, options: ClusterOptions) -> Ints:
    """Return the part of each member, numbered from 0 by igraph, none left out (callers sort the parts).

    Leiden on weighted modularity (Traag, Waltman, van Eck 2019). Two iterations of igraph's reach the quality of
    leidenalg's in an eighth of its time; without a bound it does not end in practice at a million members.
    """
    digests, weights = graph.digests, graph.weight / WEIGHT_SCALE
    if len(weights) == 0:
        return np.arange(len(digests), dtype=np.int64)
    # The core's own class: what igraph.Graph puts around it takes a tenth of a small split.
    net = igraph.GraphBase(len(digests), _edges(graph))
    del graph  # of a large one, a few hundred MB that nobody else may hold
    with _GENERATOR:
        igraph.set_random_number_generator(random.Random(seed_of(digests, options)))
        try:
            membership, _ = net.community_leiden(
                edge_weights=weights.tolist() if len(weights) <= _LISTS_BELOW else weights.data,
                normalize_resolution=True,  # modularity
                resolution=options.resolution,
                n_iterations=options.iterations,
            )
        finally:
            igraph.set_random_number_generator(random)
    return np.array(membership, np.int64)


def _edges(graph: Graph) -> list[tuple[int, int]] | memoryview:
    if len(graph.low) <= _LISTS_BELOW:
        return list(zip(graph.low.tolist(), graph.high.tolist(), strict=True))
    return np.stack([graph.low, graph.high], axis=1).data


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
