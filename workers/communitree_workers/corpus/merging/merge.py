"""Shards and per-unit results → the tables of a graph, whatever the number and order of the shards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from communitree_shared.contract.options import ExtractOptions
from communitree_shared.contract.tables import TEXT_UNITS
from communitree_shared.errors import IntegrityError
from communitree_workers.corpus.disk.runs import HELD
from communitree_workers.corpus.extraction.shards import Shard
from communitree_workers.corpus.merging.builtin_graph import weigh
from communitree_workers.corpus.merging.graph_tables import assemble
from communitree_workers.corpus.merging.long_descriptions import cut_to_limit
from communitree_workers.corpus.merging.model_graph import unite
from communitree_workers.tables.io import Tables, conform

Item = Shard | bytes | dict[str, Any]


def merge(
    tables: Tables, shards: Iterable[Item], options: ExtractOptions, *, keep_long: bool = False
) -> tuple[Tables, dict[str, Any]]:
    """Return the tables with entities, relationships and covariates, and counts of what was merged.

    `tables` holds text_units (others come back as they are). `shards` are what extraction made, in any number and
    order: shards of the built-in extractor or results of a model (one a text unit), as objects or as the bytes that
    were stored. Text units name what they hold; one that holds nothing is fine. Descriptions above
    `max_description_tokens` stay whole with `keep_long`, for `long_descriptions` to find; else they lose their last
    parts, counted.

    Raises:
        IntegrityError: the shards are of both kinds.
    """
    merged, stats = merge_compact(tables, shards, options, keep_long=keep_long)
    return {name: conform(name, table) for name, table in merged.items()}, stats


def merge_compact(
    tables: Tables, shards: Iterable[Item], options: ExtractOptions, *, keep_long: bool = False, held: int = HELD
) -> tuple[Tables, dict[str, Any]]:
    """Return the same as `merge`, with dictionary columns where rows repeat ids and titles: what is to be written.

    Shards are read once, one at a time; of a model's results at most `held` rows of a kind are in memory.
    """
    units = tables[TEXT_UNITS]
    values = (read_shard(item) if isinstance(item, bytes) else item for item in shards)
    first = next(values, None)
    if isinstance(first, dict):
        graph = unite(_of_kind(dict, first, values), units["id"].to_pylist(), held)
    else:
        graph = weigh(_of_kind(Shard, first, values) if first is not None else (), units)
    cut = 0
    if not keep_long:  # before there are tables: each column is replaced while little else is held
        graph.descriptions, entities_cut = cut_to_limit(graph.descriptions, options)
        graph.edge_descriptions, edges_cut = cut_to_limit(graph.edge_descriptions, options)
        cut = entities_cut + edges_cut
    made, stats = assemble(units, graph)
    return {**tables, **made}, stats if keep_long else {**stats, "descriptions_cut": cut}


def read_shard(data: bytes) -> Shard | dict[str, Any]:
    """Return what stored bytes hold: JSON of a model's result, or a shard of the built-in extractor."""
    if data[:1] == b"{":
        value: dict[str, Any] = orjson.loads(data)
        return value
    return Shard.from_bytes(data)


def _of_kind(kind: type[Any], first: Any, others: Iterator[Any]) -> Iterator[Any]:
    for item in itertools.chain((first,), others):
        if not isinstance(item, kind):
            raise IntegrityError(
                "Shards of the built-in extractor and results of a model cannot be merged into one graph."
            )
        yield item
