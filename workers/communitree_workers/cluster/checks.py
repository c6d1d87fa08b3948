"""The tree's invariants, checked before an index is published: whole columns at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import (
    COMMUNITIES,
    COVARIATES,
    ENTITIES,
    NO_PARENT,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_workers.cluster.graph import distinct
from communitree_workers.tables.columns import Ints, flatten, lengths, one_chunk, positions
from communitree_workers.tables.io import Tables
from communitree_workers.tables.mass import relationship_ends

Flags = npt.NDArray[np.bool_]


@dataclass
class _Faults:
    found: list[str] = field(default_factory=list)

    def add(self, bad: Flags, what: str, names: pa.Array | Ints) -> None:
        """Note a broken rule with how often, and the first to break it."""
        count = int(bad.sum())
        if count:
            at = int(np.argmax(bad))
            first = names[at].as_py() if isinstance(names, pa.Array) else int(names[at])
            self.found.append(f"{what}: {count}, the first is {first}.")


def check_tree(tables: Tables, *, whole: bool = True, overlapping: bool = False) -> list[str]:
    """Return what is wrong with the tree of a corpus; nothing if it is sound.

    Every entity is in at most one community a level; children partition their parent; parent and children name each
    other; every id in the table exists; a relationship is listed only where both its ends are; `size`, `is_leaf`,
    `weight` and `mass` are what they say; the roots hold all entities and text units.

    Args:
        tables: the corpus, `communities` among them.
        whole: whether the roots have to hold everything: not so for a kept tree with stated gaps, or with `use_lcc`.
        overlapping: whether entities may be in several communities of a level, as in an index that was updated
            incrementally: then neither this nor what follows from it is checked.
    """
    faults = _Faults()
    communities = tables[COMMUNITIES]
    number = _ints(communities["community"])
    level = _ints(communities["level"])
    row_of = _rows(number, faults)
    if len(row_of) != len(number):
        return faults.found
    parent = _links(communities, number, level, row_of, faults)
    owner, entity = _members(tables, "entity_ids", ENTITIES, number, faults)
    _partition(owner, entity, parent, number, faults)
    _columns(tables, owner, entity, parent, number, faults)
    if not overlapping:
        label = _one_place(tables, owner, entity, level, number, faults)
        _relationships(tables, level, label, number, faults)
    unit_owner, unit = _members(tables, "text_unit_ids", TEXT_UNITS, number, faults)
    _members(tables, "covariate_ids", COVARIATES, number, faults)
    if whole:
        roots = level == 0
        for name, who, what in ((ENTITIES, owner, entity), (TEXT_UNITS, unit_owner, unit)):
            if name in tables:
                held = np.bincount(what[roots[who]], minlength=tables[name].num_rows) > 0
                faults.add(~held, f"{name} that no root holds", one_chunk(tables[name]["id"]))
    return faults.found


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.fill_null(one_chunk(column), 0), np.int64)


def _rows(number: Ints, faults: _Faults) -> Ints:
    """Return the rows in order of community; fewer than there are where numbers repeat."""
    found, first, often = np.unique(number, return_index=True, return_counts=True)
    faults.add(often > 1, "communities with the same number", found)
    return first.astype(np.int64)


def _links(communities: pa.Table, number: Ints, level: Ints, row_of: Ints, faults: _Faults) -> Ints:
    """Check parents, children and levels; return the row of each one's parent, -1 for none."""
    named = _ints(communities["parent"])
    parent = _find(named, number, row_of)
    faults.add((parent < 0) & (named != NO_PARENT), "communities whose parent does not exist", number)
    faults.add((named == NO_PARENT) != (level == 0), "roots that are not on level 0, or others that are", number)
    lower = (parent >= 0) & (level != np.where(parent >= 0, level[parent], 0) + 1)
    faults.add(lower, "communities that are not one level below their parent", number)
    row, inside = flatten(communities["children"])
    child = _find(np.asarray(inside, np.int64), number, row_of)
    faults.add(child < 0, "communities with a child that does not exist", number[row])
    row, child = row[child >= 0], child[child >= 0]
    faults.add(parent[child] != row, "communities with a child that names another parent", number[row])
    listed = np.bincount(child, minlength=len(number))
    faults.add(listed > 1, "children listed twice", number)
    faults.add((parent >= 0) & (listed == 0), "communities that their parent does not list", number)
    return parent


def _find(values: Ints, number: Ints, row_of: Ints) -> Ints:
    if len(number) == 0:
        return np.full(len(values), -1, np.int64)
    at = np.minimum(np.searchsorted(number[row_of], values), len(number) - 1)
    row = row_of[at]
    return np.where(number[row] == values, row, -1)


def _members(tables: Tables, column: str, name: str, number: Ints, faults: _Faults) -> tuple[Ints, Ints]:
    """Return (community row, row in `name`) of a list column, without ids that do not exist."""
    owner, ids = flatten(tables[COMMUNITIES][column])
    found = positions(ids, tables[name]["id"]) if name in tables else np.full(len(owner), -1, np.int64)
    faults.add(found < 0, f"communities with {column} that do not exist", number[owner])
    return owner[found >= 0], found[found >= 0]


def _one_place(
    tables: Tables, owner: Ints, entity: Ints, level: Ints, number: Ints, faults: _Faults
) -> dict[int, Ints]:
    """Check that an entity is once on a level; return for each level the community row of each entity, -1 for none."""
    label: dict[int, Ints] = {}
    ids = one_chunk(tables[ENTITIES]["id"])
    for here in distinct(level).tolist():
        mine = level[owner] == here
        often = np.bincount(entity[mine], minlength=len(ids))
        faults.add(often > 1, f"entities that are twice on level {here}", ids)
        label[here] = np.full(len(ids), -1, np.int64)
        label[here][entity[mine]] = owner[mine]
    return label


def _partition(owner: Ints, entity: Ints, parent: Ints, number: Ints, faults: _Faults) -> None:
    """Check that the members of a parent are those of its children, and no others."""
    width = int(entity.max(initial=0)) + 1
    inner = np.zeros(len(parent), bool)
    inner[parent[parent >= 0]] = True
    own = distinct((owner * width + entity)[inner[owner]])
    below = parent[owner] >= 0
    theirs = distinct(parent[owner[below]] * width + entity[below])
    for missing, text in (
        (np.setdiff1d(own, theirs, assume_unique=True), "members of a parent that no child has"),
        (np.setdiff1d(theirs, own, assume_unique=True), "members of a child that its parent does not have"),
    ):
        faults.add(np.ones(len(missing), bool), text, number[missing // width])


def _columns(tables: Tables, owner: Ints, entity: Ints, parent: Ints, number: Ints, faults: _Faults) -> None:
    """Check the columns that follow from others."""
    communities, count = tables[COMMUNITIES], len(number)
    have = set(communities.column_names)
    inner = np.bincount(parent[parent >= 0], minlength=count) > 0
    expected: dict[str, npt.NDArray[np.generic]] = {
        "size": lengths(communities["entity_ids"]),
        "is_leaf": ~inner,
        "weight": lengths(communities["text_unit_ids"]),
    }
    if "mass" in tables[ENTITIES].column_names:
        mass = _ints(tables[ENTITIES]["mass"])
        total = np.zeros(count, np.int64)
        np.add.at(total, owner, mass[entity])
        expected["mass"] = total
    for name, values in expected.items():
        if name in have:
            stated = one_chunk(communities[name]).to_numpy(zero_copy_only=False)
            faults.add(stated != values, f"communities with a wrong {name}", number)


def _relationships(tables: Tables, level: Ints, label: dict[int, Ints], number: Ints, faults: _Faults) -> None:
    """Check that both ends of a listed relationship are members."""
    owner, row = _members(tables, "relationship_ids", RELATIONSHIPS, number, faults)
    if len(owner) == 0:
        return
    source, target = relationship_ends(tables)
    for here, place in label.items():
        mine = level[owner] == here
        at, edge = owner[mine], row[mine]
        outside = (source[edge] < 0) | (target[edge] < 0)
        outside |= (place[source[edge]] != at) | (place[target[edge]] != at)
        faults.add(
            outside, f"communities on level {here} with a relationship whose ends are not both in it", number[at]
        )
