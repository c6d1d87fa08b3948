"""Communities that came with imported tables: kept, mended where they are broken, and measured.

What they hold and what they miss is said in `stats`; nothing is added to the tree but remainder children.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.results import IndexCoverage
from communitree_shared.contract.tables import COMMUNITIES, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.cluster.canonical import entity_order, unit_order
from communitree_workers.cluster.kept_tree import KeptTree, expand, keep
from communitree_workers.tables.columns import Ints, contained, distinct, flatten, positions, to_lists, unique_pairs
from communitree_workers.tables.handover import Listed, TreeLevel, TreeStats
from communitree_workers.tables.io import Tables, conform
from communitree_workers.tables.keys import community_keys
from communitree_workers.tables.mass import mass_of, relationship_ends, text_unit_sets, with_mass

#: Kind of a child that holds what the kept children miss of their parent. `levels` never shows it.
REMAINDER = "remainder"

#: So many names stand in a warning, and so many ids in the statistics.
_SHOWN, _LISTED = 5, 1000

_MENDED = {
    "dangling": "references of communities to unknown entities were dropped",
    "rebuilt": "communities have members from the ends of their relationships",
    "placed": "entities that no community names are ends of relationships of one, and were placed there",
    "parents": "communities had no usable parent and were placed by their members",
    "levels": "communities got the level that their place in the tree gives them",
    "lifted": "members of children were missing from a parent and were added to it",
    "empty": "communities without any known entity were left out",
}


@dataclass
class Adopted:
    """`communities`: conforming and whole; `tables`: the tables that changed (`entities`, mass filled);
    `stats`: for the manifest, as the clusterer's."""

    communities: pa.Table
    tables: Tables
    stats: TreeStats


def adopt(tables: Tables, communities: pa.Table, options: ClusterOptions | None = None) -> Adopted:
    """Return imported communities as a tree of ours, with their numbers and titles.

    Args:
        tables: entities, relationships, text_units, covariates; read only.
        communities: `community`, `level`, `parent` (null: unknown), `entity_ids`, `relationship_ids` and the like.
        options: `max_cluster_size` above which a leaf is flagged oversize.
    """
    ends = relationship_ends(tables)
    sets = text_unit_sets(tables, ends)
    tables = with_mass(tables, mass_of(sets, tables[ENTITIES].num_rows))
    tree = keep(tables, communities, ends)
    _order_members(tree, tables, communities)
    edges = _inside(tree, *ends)
    units = _in_order(*_texts(tree, *sets), unit_order(tables)[0])
    table = _table(tree, communities, tables, edges, units, (options or ClusterOptions()).max_cluster_size)
    return Adopted(table, {ENTITIES: tables[ENTITIES]}, _stats(tree, tables, ends, edges, units))


def _order_members(tree: KeptTree, tables: Tables, communities: pa.Table) -> None:
    """Sort the members as the imported lists have them, those that are new after them in canonical order."""
    order = entity_order(tables)
    count = max(len(order), 1)
    row, ids = flatten(communities["entity_ids"])
    now = np.full(communities.num_rows, -1, np.int64)
    now[tree.table[tree.table >= 0]] = np.flatnonzero(tree.table >= 0)
    entity = positions(ids, tables[ENTITIES]["id"])
    known = np.flatnonzero((entity >= 0) & (now[row] >= 0))
    given, first = np.unique(now[row[known]] * count + entity[known], return_index=True)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) + len(ids)
    place = rank[tree.entity]
    if len(given):
        pairs = tree.community * count + tree.entity
        at = np.searchsorted(given, pairs).clip(max=len(given) - 1)
        place = np.where(given[at] == pairs, known[first[at]], place)
    sort = np.lexsort((place, tree.community))
    tree.community, tree.entity = tree.community[sort], tree.entity[sort]


def _in_order(owner: Ints, row: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Return the pairs sorted by owner, then by the place that `order` gives the row."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    sort = np.lexsort((rank[row], owner))
    return owner[sort], row[sort]


def _levels(tree: KeptTree) -> list[tuple[Ints, Ints]]:
    """Return the members of each level, as pairs sorted by entity: at most a few communities an entity."""
    out = []
    level = tree.level[tree.community]
    for depth in np.unique(tree.level):
        mine = level == depth
        order = np.argsort(tree.entity[mine], kind="stable")
        out.append((tree.community[mine][order], tree.entity[mine][order]))
    return out


def _inside(tree: KeptTree, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return pairs (community, relationship row): both ends are members."""
    rows = np.flatnonzero((source >= 0) & (target >= 0))
    found = []
    for community, entity in _levels(tree):
        first = np.searchsorted(entity, source[rows])
        last = np.searchsorted(entity, source[rows], side="right")
        holder, edge = community[expand(first, last)], np.repeat(rows, last - first)
        width = int(max(tree.entity.max(initial=0), target.max(initial=0))) + 1
        both = contained(holder * width + target[edge], np.sort(community * width + entity))
        found.append((holder[both], edge[both]))
    return _sorted_pairs(found)


def _texts(tree: KeptTree, owner: Ints, unit: Ints) -> tuple[Ints, Ints]:
    """Return pairs (community, text unit row): the text units of all members, given those of each entity."""
    found = []
    for community, entity in _levels(tree):
        first, last = np.searchsorted(owner, entity), np.searchsorted(owner, entity, side="right")
        found.append(unique_pairs(np.repeat(community, last - first), unit[expand(first, last)]))
    return _sorted_pairs(found)


def _sorted_pairs(found: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return unique_pairs(np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found]))


def _table(
    tree: KeptTree, communities: pa.Table, tables: Tables, edges: tuple[Ints, Ints], units: tuple[Ints, Ints],
    max_cluster_size: int,
) -> pa.Table:  # fmt: skip
    count = len(tree)
    made = tree.table < 0
    given = conform(COMMUNITIES, communities).take(pa.array(tree.table, mask=made))
    entities, number = tables[ENTITIES], pa.array(tree.number)
    members = to_lists(tree.community, _ids(entities, tree.entity), count)
    keys = community_keys(members)
    leaf = tree.leaves()
    size = np.bincount(tree.community, minlength=count)
    mass = np.bincount(tree.community, weights=entities["mass"].to_numpy()[tree.entity], minlength=count)
    child = np.flatnonzero(tree.parent >= 0)
    child = child[np.lexsort((child, tree.parent[child]))]
    label = pc.binary_join_element_wise("Community", number.cast(pa.string()), " ")
    ids = _made_ids(keys.filter(pa.array(made)).to_pylist(), tree.level[made].tolist())
    kind = pc.if_else(pc.equal(pc.fill_null(given["kind"], ""), ""), "cluster", given["kind"])
    columns: dict[str, Any] = {
        "id": _with(given["id"], made, pa.array(ids, pa.string())),
        "human_readable_id": number,
        "community": number,
        "level": pa.array(tree.level),
        "parent": pa.array(np.where(tree.parent >= 0, tree.number[tree.parent], -1)),
        "children": to_lists(tree.parent[child], pa.array(tree.number[child]), count),
        "title": _with(given["title"], made, label.filter(pa.array(made))),
        "entity_ids": members,
        "relationship_ids": to_lists(edges[0], _ids(tables[RELATIONSHIPS], edges[1]), count),
        "text_unit_ids": to_lists(units[0], _ids(tables[TEXT_UNITS], units[1]), count),
        "period": pc.fill_null(given["period"], ""),
        "size": pa.array(size),
        "key": keys,
        "kind": pc.if_else(pa.array(made), REMAINDER, kind),
        "is_leaf": pa.array(leaf),
        "oversize": pa.array(leaf & (size > max_cluster_size)),
        "weight": pa.array(np.bincount(units[0], minlength=count)),
        "mass": pa.array(mass.astype(np.int64)),
        "covariate_ids": _claims(tree, tables),
    }
    return conform(COMMUNITIES, pa.table(columns))


def _made_ids(keys: list[str], levels: list[int]) -> list[str]:
    """Ids of the rows we add: parents that overlap may each miss the same members at the same level."""
    seen: Counter[str] = Counter()
    ids = []
    for key, level in zip(keys, levels, strict=True):
        text = f"{key}:{level}"
        again = seen[text]
        seen[text] += 1
        ids.append(hashlib.sha256((f"{text}:{again}" if again else text).encode()).hexdigest()[:32])
    return ids


def _ids(table: pa.Table, rows: Ints) -> pa.Array:
    return table["id"].combine_chunks().take(pa.array(rows))


def _with(column: pa.ChunkedArray, made: np.ndarray, values: pa.Array) -> pa.Array:
    return pc.replace_with_mask(column.combine_chunks(), pa.array(made), values)


def _claims(tree: KeptTree, tables: Tables) -> pa.Array:
    claims = tables.get(COVARIATES)
    if claims is None or claims.num_rows == 0:
        return to_lists(np.empty(0, np.int64), pa.array([], pa.string()), len(tree))
    subject = positions(claims["entity_id"], tables[ENTITIES]["id"])
    claim = np.argsort(subject, kind="stable")
    subject = subject[claim]
    first, last = np.searchsorted(subject, tree.entity), np.searchsorted(subject, tree.entity, side="right")
    owner, row = unique_pairs(np.repeat(tree.community, last - first), claim[expand(first, last)])
    return to_lists(owner, _ids(claims, row), len(tree))


def _stats(
    tree: KeptTree, tables: Tables, ends: tuple[Ints, Ints], edges: tuple[Ints, Ints], units: tuple[Ints, Ints]
) -> TreeStats:
    root = tree.parent < 0
    total = {name: tables[name].num_rows for name in (ENTITIES, RELATIONSHIPS, TEXT_UNITS)}
    held = np.zeros(total[ENTITIES], bool)
    held[tree.entity[root[tree.community]]] = True
    within = distinct(edges[1][root[edges[0]]])
    read = distinct(units[1][root[units[0]]])
    source, target = ends
    known = (source >= 0) & (target >= 0)
    both = np.zeros(len(source), bool)
    both[known] = held[source[known]] & held[target[known]]
    leaf, size = tree.leaves(), np.bincount(tree.community, minlength=len(tree))
    levels = {}
    for depth in np.unique(tree.level).tolist():
        mine = tree.level == depth
        levels[str(depth)] = TreeLevel(
            communities=int(mine.sum()),
            leaves=int((mine & leaf).sum()),
            entities=len(distinct(tree.entity[mine[tree.community]])),
            size_max=int(size[mine].max()),
        )
    twice = _held_twice(tree)
    warnings = _gaps(held, len(read), tables) + _doubles(twice, tables)
    notes = [f"{tree.mended[name]:,} {words}." for name, words in _MENDED.items() if tree.mended.get(name)]
    if tree.mended["remainders"]:
        notes.append(f"{tree.mended['remainders']:,} remainder communities hold what children miss of their parent.")
    return TreeStats(
        coverage=IndexCoverage(
            entities=_share(int(held.sum()), total[ENTITIES]),
            relationships=_share(len(within), total[RELATIONSHIPS]),
            text_units=_share(len(read), total[TEXT_UNITS]),
            between_roots=int(both.sum()) - len(within),
        ),
        levels=levels,
        modularity={},
        warnings=warnings,
        notes=notes,
        remainders=tree.mended["remainders"],
        not_held=_listed(np.flatnonzero(~held), tables),
        held_twice=_listed(twice, tables),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _held_twice(tree: KeptTree) -> Ints:
    """Return the entities that stand in two communities of one level, as in indexes that grew by updates."""
    twice = [entity[1:][entity[1:] == entity[:-1]] for _, entity in _levels(tree)]
    return np.unique(np.concatenate(twice)) if twice else np.empty(0, np.int64)


def _listed(rows: Ints, tables: Tables) -> Listed:
    return Listed(count=len(rows), ids=_ids(tables[ENTITIES], rows[:_LISTED]).to_pylist())


def _titles(rows: Ints, tables: Tables) -> str:
    names = tables[ENTITIES]["title"].combine_chunks().take(pa.array(rows[:_SHOWN])).to_pylist()
    return ", ".join(names) + (", …" if len(rows) > _SHOWN else "")


def _gaps(held: np.ndarray, read: int, tables: Tables) -> list[str]:
    outside, unread = np.flatnonzero(~held), tables[TEXT_UNITS].num_rows - read
    out = []
    if len(outside):
        out.append(
            f"{len(outside):,} of {len(held):,} entities are in no community of the kept tree: "
            f"{_titles(outside, tables)}. --recluster builds a tree that holds all."
        )
    if unread:
        out.append(
            f"{unread:,} of {tables[TEXT_UNITS].num_rows:,} text units are in no community of the kept tree. "
            "--recluster builds a tree that holds all."
        )
    return out


def _doubles(twice: Ints, tables: Tables) -> list[str]:
    if not len(twice):
        return []
    return [
        f"{len(twice):,} entities are held by two communities of one level, as after an incremental update: "
        f"{_titles(twice, tables)}. --recluster builds one tree."
    ]
