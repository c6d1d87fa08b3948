"""Shards of the built-in extractor → a graph: entities chosen, co-occurrence weighed, edges pruned.

Two entities are tied by the sentences that name both, each sentence shared out over its pairs, and weaker by two
neighbouring sentences. A tie counts by how much more often than by chance it is seen (lift), and every entity keeps its
strongest few: so words that stand everywhere do not glue the graph together.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from communitree_workers.corpus.extraction.candidates import VERB
from communitree_workers.corpus.extraction.shards import Shard
from communitree_workers.corpus.extraction.titles import entity_id
from communitree_workers.corpus.merging.descriptions import describe
from communitree_workers.corpus.merging.flat_shards import FlatShards, coded, commonest
from communitree_workers.corpus.merging.graph import Graph, Ints, hex_column, slices, unique_pairs
from communitree_workers.corpus.merging.pairs import weighed_pairs
from communitree_workers.corpus.merging.vocabulary import choose
from communitree_workers.tables.columns import blocks

Floats = NDArray[np.float64]

#: Edges that each entity keeps; an edge stays when one of its ends keeps it.
_STRONGEST = 8
_MOST_ALIASES = 10
#: Text units that are tried for edges at a time.
_PROBES = 2_000_000


def weigh(shards: Iterable[Shard], text_units: pa.Table) -> Graph:
    """Return the graph of all shards; the same for any sharding and order of them.

    Text units of a shard that are not in `text_units` are an error of the caller and are left out.
    """
    read = FlatShards(shards, text_units)
    target, types = choose(read.forms)
    entity = target[read.mention_key]
    live = (entity >= 0) & (read.form_kind[read.mention_form] != VERB)
    sentence, position, entity = read.mention_sentence[live], read.mention_position[live], entity[live]
    kept, entity = np.unique(entity, return_inverse=True)
    entity = entity.astype(np.int64)
    titles, aliases = _titles(read, target, kept)
    keys = read.forms.keys.take(pa.array(kept))
    ids = hex_column(entity_id(key) for part in slices(keys) for key in part.to_pylist())
    at = pc.sort_indices(pa.table({"title": titles, "id": ids}), [("title", "ascending"), ("id", "ascending")])
    order = at.to_numpy().astype(np.int64)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    kept, entity = kept[order], number[entity]
    large = pa.large_string()
    graph = Graph(ids=ids.take(at), titles=titles.take(at).cast(large), aliases=aliases.take(at))
    graph.types = pa.array((types[n] for n in kept.tolist()), large)
    graph.notes = {"candidates": len(target), "candidates_dropped": int((target < 0).sum())}
    del keys, titles, aliases, ids, target, types, live
    read.drop_forms()
    graph.mention_entity, graph.mention_unit = unique_pairs(entity, read.unit[sentence], text_units.num_rows)
    # Where text units overlap, a sentence stands in both: it counts once.
    once = read.first[sentence]
    inside = unique_pairs(sentence[once], entity[once], len(kept))
    a, b, weights = weighed_pairs(*inside, read.unit, len(kept))
    graph.edge_a, graph.edge_b, graph.edge_weight = _pruned(a, b, weights, len(kept))
    graph.edge_unit_edge, graph.edge_unit_unit = _edge_units(graph, len(kept), text_units.num_rows)
    texts = text_units["text"]
    spans = (read.unit, read.start, read.end)
    mentions = (sentence[once], position[once], entity[once])
    graph.descriptions, graph.edge_descriptions = describe(
        len(kept), mentions, graph.edge_a, graph.edge_b, spans, texts
    )
    return graph


def _titles(read: FlatShards, target: Ints, kept: Ints) -> tuple[pa.Array, pa.Array]:
    """Return each entity's commonest spelling, from forms of its own key, and other spellings that fold into it."""
    if read.all_forms is None:
        return pa.array([], pa.string()), pa.array([], pa.list_(pa.string()))
    own = np.full(len(target), -1, dtype=np.int64)
    own[kept] = np.arange(len(kept))
    same = own[read.key_of]
    rows = np.flatnonzero((same >= 0) & (read.form_kind != VERB))
    entity, count = same[rows], read.form_count[rows]
    names, spelled = coded(read.all_forms["title"].take(pa.array(rows)))
    _, title = commonest(names, spelled, entity, count, len(kept))
    # Only what was merged as the same thing is an alias; a longer phrase that fell back on a part of it is not.
    other = (count > 0) & (spelled != title[entity])
    entity, spelled = unique_pairs(entity[other], spelled[other], len(names))
    starts = np.searchsorted(entity, np.arange(len(kept) + 1))
    few = np.arange(len(entity)) - starts[entity] < _MOST_ALIASES
    entity, spelled = entity[few], spelled[few]
    offsets = pa.array(np.searchsorted(entity, np.arange(len(kept) + 1)), pa.int32())
    return names.take(pa.array(title)), pa.ListArray.from_arrays(offsets, names.take(pa.array(spelled)))


def _pruned(a: Ints, b: Ints, weight: Floats, size: int) -> tuple[Ints, Ints, Ints]:
    """Weigh by lift and keep the strongest edges of each entity."""
    if not len(a):
        return a, b, a
    strength = np.bincount(a, weights=weight, minlength=size) + np.bincount(b, weights=weight, minlength=size)
    lift = weight * strength.sum() / (strength[a] * strength[b])
    value = np.round(weight * np.log2(1 + lift)).astype(np.int64)
    edge = np.arange(len(a))
    ends, edges = np.concatenate([a, b]), np.concatenate([edge, edge])
    order = np.lexsort((edges, -value[edges], ends))
    starts = np.flatnonzero(np.diff(ends[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    keep = np.unique(edges[order][(rank < _STRONGEST)])
    keep = keep[(lift[keep] > 1.0) & (value[keep] > 0)]
    return a[keep], b[keep], value[keep]


def _edge_units(graph: Graph, size: int, units: int) -> tuple[Ints, Ints]:
    """Return the text units in which both ends of an edge are named."""
    by_entity = np.lexsort((graph.mention_unit, graph.mention_entity))
    units_of = graph.mention_unit[by_entity]
    starts = np.searchsorted(graph.mention_entity[by_entity], np.arange(size + 1))
    edges, shared = [], []
    known = graph.mention_entity * units + graph.mention_unit
    known.sort()
    fewer = np.where(np.diff(starts)[graph.edge_a] <= np.diff(starts)[graph.edge_b], graph.edge_a, graph.edge_b)
    other = graph.edge_a + graph.edge_b - fewer
    every = np.arange(len(fewer))
    for part in blocks(np.diff(starts)[fewer], _PROBES):
        chosen = every[part]
        lengths = np.diff(starts)[fewer[chosen]]
        edge = np.repeat(chosen, lengths)
        inner = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        unit = units_of[np.repeat(starts[fewer[chosen]], lengths) + inner]
        probe = other[edge] * units + unit
        at = np.searchsorted(known, probe)
        hit = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == probe)
        edges.append(edge[hit])
        shared.append(unit[hit])
    if not edges:
        return graph.edge_a[:0], graph.edge_a[:0]
    return np.concatenate(edges), np.concatenate(shared)
