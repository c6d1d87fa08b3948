"""Results of a model → a graph: rows with one unified title are one entity, rows with the same ends one edge.

Results are read once, one at a time, into runs of rows (see `runs`); each part is then sorted and grouped by itself, so
that a million entities need no more memory than their tables. The order of results changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import WEIGHT_SCALE
from communitree_workers.corpus.disk.runs import HELD, Runs
from communitree_workers.corpus.extraction.titles import unify
from communitree_workers.corpus.merging.graph import CLAIM_WORDS, CLAIMS, Graph, Ints, hex_column, slices, unique_pairs
from communitree_workers.corpus.merging.same_names import Aliases
from communitree_workers.tables.columns import one_chunk

#: An edge end or a claim's subject that is no entity of its own reply.
_UNNAMED_TYPE = ""
_MOST_ALIASES = 10
#: Rows of one kind held as Python objects before they become columns.
_BUFFER = 20_000

_DIGEST = pa.binary(16)
_LIST = pa.list_(pa.string())
_PLACE = [("unit", pa.int32()), ("seq", pa.int32())]
_ENTITIES = pa.schema([*((n, pa.string()) for n in ("key", "title", "type", "description")), *_PLACE])
_EDGES = pa.schema([("a", _DIGEST), ("b", _DIGEST), ("description", pa.string()), ("weight", pa.int64()), *_PLACE])
_CLAIM_ROWS = pa.schema(
    [("subject", _DIGEST), ("object", _DIGEST), ("unit", pa.int64()), *((n, pa.string()) for n in CLAIM_WORDS)]
)


def unite(results: Iterable[dict[str, Any]], text_unit_ids: Sequence[str], held: int = HELD) -> Graph:
    """Return the graph of a model's results (see `extraction.model`).

    A text unit with several results, or one that is not among `text_unit_ids`, keeps the first and loses the others,
    counted. An edge end that no entity row names becomes an entity without description. Loops are left out and counted.
    Titles that are another entity's alias are that entity (see `same_names`). More than `held` rows go through files.
    """
    with contextlib.ExitStack() as stack:
        entities, edges = (stack.enter_context(Runs(schema, held)) for schema in (_ENTITIES, _EDGES))
        aliases = Aliases()
        notes, claims = _scanned(results, text_unit_ids, entities, edges, aliases)
        if same := aliases.same(entities.parts):
            one, other = (stack.enter_context(Runs(schema, held)) for schema in (_ENTITIES, _EDGES))
            _rename(same, entities, one)
            notes["loops"] += _join(same, edges, other)
            entities, edges, claims = one, other, _renamed(claims, same, ("subject", "object"))
        graph, digests = _entities(entities, len(text_unit_ids))
        _edges(graph, edges, digests, len(text_unit_ids))
    columns = {name: claims[name] for name in CLAIM_WORDS} | {"unit": claims["unit"]}
    for end in ("subject", "object"):
        columns[end] = pc.fill_null(pc.index_in(claims[end], value_set=digests, skip_nulls=True), -1).cast(pa.int64())
    graph.claims = pa.table({name: columns[name] for name in CLAIMS.names}, schema=CLAIMS)
    graph.notes = notes
    return graph


def _scanned(
    results: Iterable[dict[str, Any]], text_unit_ids: Sequence[str], entities: Runs, edges: Runs, aliases: Aliases
) -> tuple[dict[str, int], pa.Table]:
    """Put the rows of all results into the runs; return the notes and the claims."""
    number = {identity: n for n, identity in enumerate(text_unit_ids)}
    notes = dict.fromkeys(("lost", "calls", "failed_calls", "unnamed_ends", "loops", "strays", "holes"), 0)
    seen = np.zeros(len(number), dtype=bool)
    found, tied, claimed = _Buffer(_ENTITIES, entities), _Buffer(_EDGES, edges), _Buffer(_CLAIM_ROWS)
    for result in results:
        unit = number.get(result["unit"], -1)
        if unit < 0 or seen[unit]:
            notes["strays"] += 1
            continue
        seen[unit] = True
        for name in ("lost", "calls", "failed_calls"):
            notes[name] += int(result.get(name, 0))
        notes["holes"] += len(result.get("holes", ()))
        _add_result(result, unit, found, tied, claimed, notes)
        for e in result.get("entities", []):
            for alias in e.get("aliases", ()):
                aliases.add(unify(e["title"]), unify(alias))
    found.flush()
    tied.flush()
    return notes, claimed.table()


def _add_result(
    result: dict[str, Any], unit: int, found: _Buffer, tied: _Buffer, claimed: _Buffer, notes: dict[str, int]
) -> None:
    named: set[str] = set()
    listed = result.get("entities", [])
    for n, e in enumerate(listed):
        key, digest = _identity(e["title"])
        found.add(digest, (key, _plain(e["title"]), e["type"], e["description"], unit, n))
        named.add(key)
    ends = [(r["source"], r["target"]) for r in result.get("relationships", [])]
    ends += [(c["subject"], c["object"] or c["subject"]) for c in result.get("claims", [])]
    for title in sorted({title for pair in ends for title in pair}):
        key, digest = _identity(title)
        if key not in named:
            found.add(digest, (key, _plain(title), _UNNAMED_TYPE, "", unit, len(listed)))  # one row of its key
            named.add(key)
            notes["unnamed_ends"] += 1
    for n, r in enumerate(result.get("relationships", [])):
        (key, a), (other, b) = sorted((_identity(r["source"]), _identity(r["target"])))
        if key == other:
            notes["loops"] += 1
            continue
        weight = max(1, round(float(r["strength"]) * WEIGHT_SCALE))
        tied.add(_mixed(a, b), (a, b, r["description"], weight, unit, n))
    for c in result.get("claims", []):
        other_end = _identity(c["object"])[1] if c["object"] else None
        claimed.add(b"", (_identity(c["subject"])[1], other_end, unit, *(c[name] for name in CLAIM_WORDS)))


def _rename(same: Mapping[str, str], entities: Runs, into: Runs) -> None:
    """Put rows of entities into other runs, under the titles of what they are the same as."""
    place = [name.name for name in _ENTITIES].index("key")
    for part in entities.parts():
        keys = [same.get(key, key) for key in part["key"].to_pylist()]
        first = np.frombuffer(b"".join(map(_digest, keys)), dtype=np.uint64)[::2]
        into.add(part.set_column(place, _ENTITIES.field("key"), pa.array(keys, pa.string())), first.copy())


def _join(same: Mapping[str, str], edges: Runs, into: Runs) -> int:
    """Put edges into other runs, between what their ends are the same as; return how many were loops and are left out.

    Ends stay in the order of their titles.
    """
    loops = 0
    for part in edges.parts():
        part = _renamed(part, same, ("a", "b"))
        kept = part.filter(pc.not_equal(part["a"], part["b"]))
        loops += part.num_rows - kept.num_rows
        pairs = zip(kept["a"].to_pylist(), kept["b"].to_pylist(), strict=True)
        mixed = b"".join(_mixed(*sorted(pair)) for pair in pairs)
        into.add(kept, np.frombuffer(mixed, dtype=np.uint64)[::2].copy())
    return loops


def _renamed(table: pa.Table, same: Mapping[str, str], names: Iterable[str]) -> pa.Table:
    """Return a table whose columns of digests name what their titles are the same as."""
    digests = {_digest(key): _digest(other) for key, other in same.items()}
    for name in names:
        values = [digests.get(value, value) for value in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(values, _DIGEST))
    return table


class _Buffer:
    """Rows on their way from Python objects to Arrow columns: into runs, or into one table where there are none."""

    def __init__(self, schema: pa.Schema, runs: Runs | None = None) -> None:
        self._schema, self._runs = schema, runs
        self._rows: list[tuple[Any, ...]] = []
        self._digests: list[bytes] = []
        self._tables: list[pa.Table] = []

    def add(self, digest: bytes, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        self._digests.append(digest)
        if len(self._rows) >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(self._schema)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        if self._runs is None:
            self._tables.append(table)
        else:
            first = np.frombuffer(b"".join(self._digests), dtype=np.uint64)[::2]
            self._runs.add(table, np.ascontiguousarray(first))
        self._rows, self._digests = [], []

    def table(self) -> pa.Table:
        """Return all rows; only without runs."""
        self.flush()
        return pa.concat_tables(self._tables)


@lru_cache(maxsize=100_000)
def _identity(title: str) -> tuple[str, bytes]:
    key = unify(title)
    return key, _digest(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()[:16]


def _mixed(a: bytes, b: bytes) -> bytes:
    """Return a digest for a pair: what is in one half of it need not be spread, only the same each time."""
    return bytes(x ^ y for x, y in zip(a[:8], b[8:], strict=True)) + a[8:]


def _plain(title: str) -> str:
    return " ".join(title.split())


def _entities(runs: Runs, units: int) -> tuple[Graph, pa.Array]:
    """Return the graph without its edges, and the digest of each entity's key."""
    columns: list[list[pa.Array]] = [[] for _ in range(5)]
    mentions: list[tuple[Ints, Ints]] = []
    offset = 0
    for part in runs.parts():
        part = part.sort_by([("key", "ascending"), ("unit", "ascending"), ("seq", "ascending")])
        keys = one_chunk(part["key"]).dictionary_encode()
        group = keys.indices.to_numpy().astype(np.int64)
        digests = pa.array([_digest(key) for key in keys.dictionary.to_pylist()], _DIGEST)
        for column, array in zip(columns, [digests, *_described(part, group, len(digests))], strict=True):
            column.append(array)
        mentions.append((group + offset, part["unit"].to_numpy().astype(np.int64)))
        offset += len(digests)
    by = pa.table({"title": pa.chunked_array(columns[1]), "id": pa.chunked_array(columns[0])})
    order = pc.sort_indices(by, [("title", "ascending"), ("id", "ascending")])
    digests, titles, types, descriptions, aliases = (_taken(column, order) for column in columns)
    ids = hex_column(digest.hex() for part in slices(digests) for digest in part.to_pylist())
    graph = Graph(ids=ids, titles=titles, types=types, descriptions=descriptions, aliases=aliases)
    place = _inverse(order.to_numpy())
    entity = place[np.concatenate([e for e, _ in mentions])]
    graph.mention_entity, graph.mention_unit = unique_pairs(entity, np.concatenate([u for _, u in mentions]), units)
    return graph, digests


def _described(part: pa.Table, group: Ints, size: int) -> list[pa.Array]:
    """Return title, type, description and aliases of each group of a sorted part."""
    keys, titles, types, descriptions = (part[name].to_pylist() for name in ("key", "title", "type", "description"))
    bounds = np.searchsorted(group, np.arange(size + 1)).tolist()
    title: list[str] = []
    what: list[str] = []
    text: list[str] = []
    aliases: list[list[str]] = []
    for start, end in itertools.pairwise(bounds):
        if end == start + 1:
            title.append(titles[start])
            what.append(types[start])
            text.append(descriptions[start])
            aliases.append([])
            continue
        spelled = _by_count(titles[start:end])
        if len(spelled) > 1:  # its own title before those of what is the same
            own = keys[start]
            spelled = [*(t for t in spelled if unify(t) == own), *(t for t in spelled if unify(t) != own)]
        title.append(spelled[0])
        aliases.append(spelled[1 : 1 + _MOST_ALIASES])
        what.append(next(iter(_by_count(t for t in types[start:end] if t)), ""))
        text.append(_united(descriptions[start:end]))
    large = pa.large_string()
    return [pa.array(title, large), pa.array(what, large), pa.array(text, large), pa.array(aliases, _LIST)]


def _edges(graph: Graph, runs: Runs, digests: pa.Array, units: int) -> None:
    numbers: list[tuple[Ints, Ints, Ints]] = []
    texts: list[pa.Array] = []
    places: list[tuple[Ints, Ints]] = []
    offset = 0
    for part in runs.parts():
        one, other = (_numbers(pc.index_in(one_chunk(part[name]), value_set=digests)) for name in ("a", "b"))
        a, b, unit = np.minimum(one, other), np.maximum(one, other), _numbers(part["unit"])
        order = np.lexsort((_numbers(part["seq"]), unit, b, a))
        a, b = a[order], b[order]
        first = np.flatnonzero((np.diff(a, prepend=-1) != 0) | (np.diff(b, prepend=-1) != 0))
        weight = np.add.reduceat(_numbers(part["weight"])[order], first) if len(first) else a
        numbers.append((a[first], b[first], weight))
        described = one_chunk(part["description"]).take(pa.array(order)).to_pylist()
        bounds = [*first.tolist(), len(order)]
        joined = [_united(described[s:e]) for s, e in itertools.pairwise(bounds)]
        texts.append(pa.array(joined, pa.large_string()))
        edge = np.repeat(np.arange(len(first), dtype=np.int64), np.diff(bounds))
        places.append((edge + offset, unit[order]))
        offset += len(first)
    a, b, weight = (np.concatenate(column) for column in zip(*numbers, strict=True))
    numbers.clear()
    order = np.lexsort((b, a))
    graph.edge_a, graph.edge_b, graph.edge_weight = a[order], b[order], weight[order]
    del a, b, weight
    graph.edge_descriptions = _taken(texts, pa.array(order))
    edge, unit = _inverse(order)[np.concatenate([e for e, _ in places])], np.concatenate([u for _, u in places])
    places.clear()
    graph.edge_unit_edge, graph.edge_unit_unit = unique_pairs(edge, unit, units)


def _taken(column: list[pa.Array], order: pa.Array) -> pa.Array:
    """Return the rows of a column in another order; the column is emptied, so that it is not held twice for long."""
    whole = pa.concat_arrays(column)
    column.clear()
    return whole.take(order)


def _inverse(order: Ints) -> Ints:
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def _numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _by_count(values: Iterable[str]) -> list[str]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts, key=lambda value: (-counts[value], value))


def _united(descriptions: list[str]) -> str:
    """Different descriptions one under the other, in the order of the text units; those of one unit by themselves."""
    if len(descriptions) == 1:
        return descriptions[0]
    return "\n".join(dict.fromkeys(d for d in descriptions if d))
