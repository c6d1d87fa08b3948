"""Rows that name each other: both directions united, ids of nothing dropped and counted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import COLUMNS, COVARIATES, TEXT_UNITS
from communitree_workers.corpus.graph_import.account import Notes
from communitree_workers.corpus.graph_import.ends import normalised
from communitree_workers.corpus.graph_import.entities import Entities
from communitree_workers.corpus.graph_import.grouping import canonical_order, content_ids, groups_of
from communitree_workers.corpus.graph_import.names import Reader, blank
from communitree_workers.tables.columns import Ints, flatten, lengths, positions, to_lists, unique_pairs

Columns = dict[str, pa.Array]


def unite(
    owners: Columns, units: Columns, back: str, was: tuple[pa.Array, Ints] | None, what: str, notes: Notes
) -> None:
    """Make `owners.text_unit_ids` and `units[back]` say the same: all that either said, of rows that are there.

    `was`: ids that the owners had before rows were merged, and the row each of them is in now.
    """
    left, ids = flatten(owners["text_unit_ids"])
    right = positions(ids, units["id"])
    notes.warn(int((right < 0).sum()), f"reference|references of {what} to unknown text units was|were dropped")
    unit, ids = flatten(units[back])
    owner = positions(ids, owners["id"])
    if was is not None and len(was[1]):
        before = positions(ids, was[0])
        owner = np.where(before >= 0, was[1][before], owner)
    notes.warn(int((owner < 0).sum()), f"reference|references of text units to unknown {what} was|were dropped")
    sound = _distinct(left, right)
    sound_back = _distinct(unit, owner) and (was is None or len(was[0]) == len(owners["id"]))
    said, said_back = len(left), len(unit)
    left, right = np.concatenate([left, owner]), np.concatenate([right, unit])
    known = (right >= 0) & (left >= 0)
    left, right = unique_pairs(left[known], right[known])
    # What is whole already stays in the order in which it came.
    if len(left) != said or not sound:
        owners["text_unit_ids"] = to_lists(left, units["id"].take(pa.array(right)), len(owners["id"]))
    if len(left) != said_back or not sound_back:
        right, left = unique_pairs(right, left)
        units[back] = to_lists(right, owners["id"].take(pa.array(left)), len(units["id"]))


def _distinct(left: Ints, right: Ints) -> bool:
    """Say whether all pairs are of known rows and none stands twice."""
    return bool((left >= 0).all() and (right >= 0).all()) and len(unique_pairs(left, right)[0]) == len(left)


def read_covariates(reader: Reader, entities: Entities, units: Columns, notes: Notes) -> Columns:
    """Return the claims, each with the entity that its subject names, and fill `covariate_ids` of the text units."""
    columns = {name: reader.get(name) for name in COLUMNS[COVARIATES]}
    anonymous = pc.equal(columns["id"], "")
    if pc.any(anonymous).as_py():
        made = content_ids(columns["subject_id"], columns["description"], columns["text_unit_id"])
        columns["id"] = pc.if_else(anonymous, made, columns["id"])
    order = canonical_order(columns["id"], columns["subject_id"], columns["description"])
    _, first = groups_of(columns["id"].take(pa.array(order)))
    notes.warn(len(order) - len(first), "covariate|covariates repeated an id and was|were left out")
    columns = {name: column.take(pa.array(order[first])) for name, column in columns.items()}
    row = positions(columns["entity_id"], entities.columns["id"])
    subject = columns["subject_id"]
    for titles in (entities.written, entities.columns["id"]):
        row = np.where(row < 0, positions(subject, titles), row)
    said = pc.not_equal(subject, "").to_numpy(zero_copy_only=False)
    if ((row < 0) & said).any():
        row = np.where((row < 0) & said, positions(normalised(subject), normalised(entities.written)), row)
    columns["entity_id"] = pc.fill_null(entities.columns["id"].take(pa.array(row, mask=row < 0)), "")
    notes.note(int((row < 0).sum()), "claim|claims had a subject that is no entity: kept with the text unit|units")
    _place(columns, units, notes)
    return columns


def no_covariates(units: Columns, notes: Notes) -> Columns:
    """Return a table without rows, and make the text units name none."""
    mentioned = int(lengths(units["covariate_ids"]).sum())
    notes.warn(mentioned, "reference|references of text units to unknown claims was|were dropped")
    units["covariate_ids"] = blank(TEXT_UNITS, "covariate_ids", len(units["id"]))
    return {name: blank(COVARIATES, name, 0) for name in COLUMNS[COVARIATES]}


def _place(columns: Columns, units: Columns, notes: Notes) -> None:
    """Give each claim its text unit: the one it names, else the first that names it."""
    unit = positions(columns["text_unit_id"], units["id"])
    lost = (unit < 0) & pc.not_equal(columns["text_unit_id"], "").to_numpy(zero_copy_only=False)
    owner, ids = flatten(units["covariate_ids"])
    claim = positions(ids, columns["id"])
    notes.warn(int((claim < 0).sum()), "reference|references of text units to unknown claims was|were dropped")
    known, at = np.unique(claim, return_index=True)
    named_by = np.full(len(unit), -1, np.int64)
    named_by[known[known >= 0]] = owner[at[known >= 0]]
    unit = np.where(unit < 0, named_by, unit)
    notes.warn(int((lost & (unit < 0)).sum()), "claim|claims named an unknown text unit")
    columns["text_unit_id"] = pc.fill_null(units["id"].take(pa.array(unit, mask=unit < 0)), "")
    claims = np.flatnonzero(unit >= 0)
    left, right = unique_pairs(unit[claims], claims)
    units["covariate_ids"] = to_lists(left, columns["id"].take(pa.array(right)), len(units["id"]))
