"""Mass: how much text stands behind an entity, additive over any set of disjoint communities.

T(e) is the text units of entity e united with those of its relationships: in real tables a third of the
relationships name units that an end of theirs does not. Each text unit is shared out equally among the
entities that have it: m(e) = Σ 1 / |E(t)| over t in T(e).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from communitree_shared.contract.tables import ENTITIES, MASS_SCALE, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.tables.columns import Ints, flatten, positions, unique_pairs
from communitree_workers.tables.io import Tables


def relationship_ends(tables: Tables) -> tuple[Ints, Ints]:
    """Return the entity rows of each relationship's source and target, -1 where an end names no entity.

    An end is taken by its id; where that is empty or names nothing, by its title.
    """
    entities, relationships = tables[ENTITIES], tables[RELATIONSHIPS]
    ends = []
    for id_column, title_column in (("source_id", "source"), ("target_id", "target")):
        rows = np.full(relationships.num_rows, -1, np.int64)
        if id_column in relationships.column_names:
            rows = positions(relationships[id_column], entities["id"])
        if (rows < 0).any():
            rows = np.where(rows < 0, positions(relationships[title_column], entities["title"]), rows)
        ends.append(rows)
    return ends[0], ends[1]


def text_unit_sets(tables: Tables, ends: tuple[Ints, Ints] | None = None) -> tuple[Ints, Ints]:
    """Return T as distinct pairs (entity row, text unit row), sorted. Ids of no text unit are left out.

    `ends`: what `relationship_ends` returns, for a caller that has it already.
    """
    entities, units = tables[ENTITIES], tables.get(TEXT_UNITS)
    if units is None or units.num_rows == 0 or entities.num_rows == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    owner, ids = flatten(entities["text_unit_ids"])
    owners, found = [owner], [positions(ids, units["id"])]
    relationships = tables.get(RELATIONSHIPS)
    if relationships is not None and relationships.num_rows:
        edge, ids = flatten(relationships["text_unit_ids"])
        unit = positions(ids, units["id"])
        for end in ends or relationship_ends(tables):
            owners.append(end[edge])
            found.append(unit)
    left, right = np.concatenate(owners), np.concatenate(found)
    known = (left >= 0) & (right >= 0)
    return unique_pairs(left[known], right[known])


def entity_mass(tables: Tables) -> Ints:
    """Return m(e) for each row of `entities`, in units of 1 / MASS_SCALE text units.

    Where no entity has any text unit (a plain edge list) an entity's row is all the text there is, and
    stands for one unit of its own. Otherwise an entity without text units has no mass.
    """
    return mass_of(text_unit_sets(tables), tables[ENTITIES].num_rows)


def mass_of(sets: tuple[Ints, Ints], count: int) -> Ints:
    """Return `entity_mass` from the pairs of `text_unit_sets`, for `count` entities."""
    entity, unit = sets
    if len(entity) == 0:
        return np.full(count, MASS_SCALE, np.int64)
    sharers = np.bincount(unit)
    share = np.zeros(len(sharers), np.int64)
    held = sharers > 0
    share[held] = (MASS_SCALE + sharers[held] // 2) // sharers[held]
    # Sums below 2^53 are exact in the doubles that bincount adds in.
    return np.bincount(entity, weights=share[unit], minlength=count).astype(np.int64)


def with_mass(tables: Tables, values: Ints | None = None) -> Tables:
    """Return the tables with `entities.mass` filled, by `values` for a caller that has them already."""
    entities, mass = tables[ENTITIES], pa.array(entity_mass(tables) if values is None else values, pa.int64())
    if "mass" in entities.column_names:
        index = entities.column_names.index("mass")
        return {**tables, ENTITIES: entities.set_column(index, "mass", mass)}
    return {**tables, ENTITIES: entities.append_column("mass", mass)}
