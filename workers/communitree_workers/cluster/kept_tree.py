"""A tree that others built, as arrays: who is in it, under whom, and what had to be mended.

Communities are rows in ascending order of their numbers; members are pairs (community row, entity row).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import NO_PARENT, RELATIONSHIPS
from communitree_workers.tables.columns import Ints, contained, distinct, flatten, positions, unique_pairs
from communitree_workers.tables.io import Tables

#: `table` of a remainder: no row of the communities table.
NONE = -1


@dataclass
class KeptTree:
    """`table`: the row of the communities table (-1: a remainder); `parent`: a row of this tree or -1."""

    number: Ints
    level: Ints
    parent: Ints
    table: Ints
    community: Ints
    entity: Ints
    mended: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.number)

    def leaves(self) -> np.ndarray:
        """Return a flag for each community: it has no children."""
        leaf = np.ones(len(self), bool)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf


def keep(tables: Tables, communities: pa.Table, ends: tuple[Ints, Ints]) -> KeptTree:
    """Return the communities as a sound tree: parents hold their children's members, children all of their parent's.

    Numbers stay. A parent that is missing, unknown, not coarser than its child or without a member in common is
    taken from the members. Where children miss members of their parent, a remainder child holds them.

    `ends`: the entity rows of each relationship's source and target, -1 where there is none.
    """
    order = np.argsort(communities["community"].to_numpy(), kind="stable")
    communities = communities.take(pa.array(order))
    number = communities["community"].to_numpy().astype(np.int64)
    level = communities["level"].to_numpy().astype(np.int64)
    mended: dict[str, int] = {}
    community, entity = _members(tables, communities, ends, mended)
    entities = max(tables["entities"].num_rows, 1)
    given = pc.fill_null(communities["parent"].combine_chunks(), NO_PARENT - 1).to_numpy().astype(np.int64)
    parent = _parents(number, level, given, community, entity, entities, mended)
    tree = KeptTree(number, level, parent, order, community, entity, mended)
    _relevel(tree)
    _contain(tree, entities)
    _drop_empty(tree)
    _add_remainders(tree, entities)
    return tree


def _members(
    tables: Tables, communities: pa.Table, ends: tuple[Ints, Ints], mended: dict[str, int]
) -> tuple[Ints, Ints]:
    """Return the member pairs; a community that names unknown entities, or none, has its relationships' ends too."""
    row, ids = flatten(communities["entity_ids"])
    entity = positions(ids, tables["entities"]["id"])
    known = entity >= 0
    mended["dangling"] = int((~known).sum())
    count = communities.num_rows
    doubtful = np.bincount(row[known], minlength=count) == 0
    doubtful[row[~known]] = True
    row, entity = row[known], entity[known]
    if doubtful.any():
        owner, ids = flatten(communities["relationship_ids"])
        edge = positions(ids, tables[RELATIONSHIPS]["id"])
        good = (edge >= 0) & doubtful[owner]
        listed = [end[edge[good]] for end in ends]
        mended["rebuilt"] = len(np.unique(owner[good]))
        row = np.concatenate([row, owner[good], owner[good]])
        entity = np.concatenate([entity, *listed])
        row, entity = row[entity >= 0], entity[entity >= 0]
    return _with_unnamed(tables, communities, ends, row, entity, mended)


def _with_unnamed(
    tables: Tables, communities: pa.Table, ends: tuple[Ints, Ints], row: Ints, entity: Ints, mended: dict[str, int]
) -> tuple[Ints, Ints]:
    """Add the entities that no community names to those whose relationships they are an end of.

    GraphRAG clusters the titles of edge ends, also those that have no row in its entities table: the communities hold
    their relationships, not them. Where two communities of a level list such relationships (0.x lists those that leave
    a community too) nothing says which is meant, and the entity stays outside.
    """
    count = max(tables["entities"].num_rows, 1)
    outside = np.bincount(entity, minlength=count) == 0
    if not outside.any():
        return unique_pairs(row, entity)
    owner, ids = flatten(communities["relationship_ids"])
    edge = positions(ids, tables[RELATIONSHIPS]["id"])
    owner, edge = owner[edge >= 0], edge[edge >= 0]
    end = np.concatenate([ends[0][edge], ends[1][edge]])
    owner = np.concatenate([owner, owner])
    mine = (end >= 0) & outside[end]
    community, found = unique_pairs(owner[mine], end[mine])
    level = communities["level"].to_numpy().astype(np.int64)
    place = level[community] * count + found
    _, at, often = np.unique(place, return_inverse=True, return_counts=True)
    sure = often[at] == 1
    mended["placed"] = len(np.unique(found[sure]))
    return unique_pairs(np.concatenate([row, community[sure]]), np.concatenate([entity, found[sure]]))


def _parents(
    number: Ints, level: Ints, given: Ints, community: Ints, entity: Ints, entities: int, mended: dict[str, int]
) -> Ints:
    count = len(number)
    at = np.searchsorted(number, given).clip(max=max(count - 1, 0))
    found = np.where((given >= 0) & (number[at] == given), at, -1) if count else given
    size = np.bincount(community, minlength=count)
    own = found[community]
    shared = np.zeros(count, np.int64)
    packed = community * entities + entity
    has = own >= 0
    inside = has & contained(own * entities + entity, packed)
    np.add.at(shared, community[inside], 1)
    wrong = (found >= 0) & ((level[found] >= level) | ((shared == 0) & (size > 0) & (size[found] > 0)))
    unsure = wrong | ((found < 0) & (level > 0) & (given != NO_PARENT))
    mended["parents"] = int((unsure & (given != NO_PARENT - 1)).sum())
    found[unsure] = -1
    for depth in np.unique(level[unsure]):
        mine = unsure[community] & (level[community] == depth)
        above = level[community] == depth - 1
        best = _most_shared(community[mine], entity[mine], community[above], entity[above])
        found[best[0]] = best[1]
    return found


def _most_shared(child: Ints, entity: Ints, parent: Ints, held: Ints) -> tuple[Ints, Ints]:
    """Return for each child the parent that holds most of its members; of equals the first."""
    order = np.argsort(held, kind="stable")
    parent, held = parent[order], held[order]
    first, last = np.searchsorted(held, entity), np.searchsorted(held, entity, side="right")
    pairs = expand(first, last)
    asking, answer = np.repeat(child, last - first), parent[pairs]
    if not len(asking):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    width = int(answer.max()) + 1
    keys, often = np.unique(asking * width + answer, return_counts=True)
    best = np.lexsort((keys, -often, keys // width))
    who, at = np.unique(keys[best] // width, return_index=True)
    return who, keys[best][at] % width


def expand(first: Ints, last: Ints) -> Ints:
    """Return first[0] … last[0]-1, first[1] … last[1]-1, and so on."""
    sizes = last - first
    return np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()), dtype=np.int64)


def _relevel(tree: KeptTree) -> None:
    """Make a child one level finer than its parent, and a root the coarsest: selections by level count on it."""
    depth = np.zeros(len(tree), np.int64)
    # A parent is always coarser by the levels given, so this order meets parents first.
    for level in np.unique(tree.level):
        rows = np.flatnonzero((tree.level == level) & (tree.parent >= 0))
        depth[rows] = depth[tree.parent[rows]] + 1
    tree.mended["levels"] = int((depth != tree.level).sum())
    tree.level = depth


def _contain(tree: KeptTree, entities: int) -> None:
    """Give every parent its children's members, from the finest level up."""
    before = len(tree.community)
    for level in np.unique(tree.level)[::-1]:
        above = tree.parent[tree.community]
        mine = (tree.level[tree.community] == level) & (above >= 0)
        tree.community, tree.entity = unique_pairs(
            np.concatenate([tree.community, above[mine]]), np.concatenate([tree.entity, tree.entity[mine]])
        )
    tree.mended["lifted"] = len(tree.community) - before


def _drop_empty(tree: KeptTree) -> None:
    """Leave out communities without members: by now nothing below them has any."""
    held = np.bincount(tree.community, minlength=len(tree)) > 0
    tree.mended["empty"] = int((~held).sum())
    if held.all():
        return
    now = np.cumsum(held) - 1
    tree.number, tree.level, tree.table = tree.number[held], tree.level[held], tree.table[held]
    parent = tree.parent[held]
    tree.parent = np.where(parent >= 0, now[parent], -1)
    tree.community = now[tree.community]


def _add_remainders(tree: KeptTree, entities: int) -> None:
    """Hold what children miss of their parent in one more child, numbered after all others."""
    inner = ~tree.leaves()
    above = tree.parent[tree.community]
    covered = distinct(above[above >= 0] * entities + tree.entity[above >= 0])
    mine = inner[tree.community]
    missing = mine.copy()
    missing[mine] = ~contained(tree.community[mine] * entities + tree.entity[mine], covered)
    parents, child = np.unique(tree.community[missing], return_inverse=True)
    tree.mended["remainders"] = len(parents)
    if not len(parents):
        return
    start = len(tree)
    fresh = np.arange(len(parents), dtype=np.int64)
    tree.community = np.concatenate([tree.community, start + child])
    tree.entity = np.concatenate([tree.entity, tree.entity[missing]])
    tree.number = np.concatenate([tree.number, int(tree.number.max()) + 1 + fresh])
    tree.level = np.concatenate([tree.level, tree.level[parents] + 1])
    tree.parent = np.concatenate([tree.parent, parents])
    tree.table = np.concatenate([tree.table, np.full(len(parents), NONE)])
