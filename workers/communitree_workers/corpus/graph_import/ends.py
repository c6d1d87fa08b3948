"""Which entity an end of a relationship names: by title, by id, by normalised title, else one of its own."""

from __future__ import annotations

import html

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import COLUMNS, ENTITIES
from communitree_workers.corpus.graph_import.account import Notes, numbered
from communitree_workers.corpus.graph_import.entities import Entities
from communitree_workers.corpus.graph_import.grouping import content_ids
from communitree_workers.corpus.graph_import.names import blank
from communitree_workers.tables.columns import Ints, flatten, one_chunk, positions, to_lists, unique_pairs


def normalised(titles: pa.Array) -> pa.Array:
    """Return titles without what tells two spellings of one name apart: entities, width, case, quotes, spaces."""
    coded = pc.match_substring(titles, "&")
    if pc.any(coded).as_py():
        plain = pa.array([html.unescape(title) for title in titles.filter(coded).to_pylist()], pa.string())
        titles = pc.replace_with_mask(titles, coded, plain)
    titles = pc.utf8_upper(pc.utf8_normalize(titles, form="NFKC"))
    titles = pc.replace_substring_regex(titles, "[‘’ʼ`´]", "'")
    titles = pc.replace_substring_regex(titles, r"[\s\x{00A0}\x{3000}]+", " ")
    return pc.replace_substring_regex(titles, r"^[\s\"'“”„«»]+|[\s\"'“”„«»]+$", "")


def resolve(ends: pa.Array, entities: Entities, notes: Notes) -> tuple[Entities, Ints]:
    """Return the entities with those that had to be made for unknown ends, and the entity row of each end."""
    encoded = one_chunk(ends.dictionary_encode())
    names, code = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    times = np.bincount(code, minlength=len(names))
    row = positions(names, entities.written)
    by_id = np.where(row < 0, positions(names, entities.columns["id"]), -1)
    notes.note(int(times[by_id >= 0].sum()), "edge end|ends named an entity by its id, not its title")
    row = np.where(row < 0, by_id, row)
    if len(entities) and (row < 0).any():
        entities, row = _by_spelling(names, row, times, entities, notes)
    unknown = np.flatnonzero(row < 0)
    if len(unknown):
        spelled = names.take(pa.array(unknown))
        entities, made = _made(spelled, entities)
        row[unknown] = made
        fresh = len(np.unique(made))
        what = numbered(fresh, f"{fresh:,} entity|entities was|were made")
        notes.note(int(times[unknown].sum()), f"edge end|ends named no entity: {what}")
    return entities, row[code]


def _by_spelling(names: pa.Array, row: Ints, times: Ints, entities: Entities, notes: Notes) -> tuple[Entities, Ints]:
    unknown = np.flatnonzero(row < 0)
    keys = normalised(names.take(pa.array(unknown)))
    found = np.where(
        pc.not_equal(keys, "").to_numpy(zero_copy_only=False), positions(keys, normalised(entities.written)), -1
    )
    row = row.copy()
    row[unknown] = found
    matched = unknown[found >= 0]
    if not len(matched):
        return entities, row
    spelled = names.take(pa.array(matched))
    notes.note(
        int(times[matched].sum()), "edge end|ends matched an entity by normalised title only", spelled.to_pylist()[:6]
    )
    return _with_aliases(entities, row[matched], spelled), row


def _with_aliases(entities: Entities, rows: Ints, spelled: pa.Array) -> Entities:
    """Return the entities with other spellings of their titles added to `aliases`."""
    owner, known = flatten(entities.columns["aliases"])
    everything = pa.concat_arrays([known.cast(pa.string()), spelled])
    distinct = pc.unique(everything).sort()
    left, right = unique_pairs(np.concatenate([owner, rows]), positions(everything, distinct))
    aliases = to_lists(left, distinct.take(pa.array(right)), len(entities))
    return Entities({**entities.columns, "aliases": aliases}, entities.written)


def _made(spelled: pa.Array, entities: Entities) -> tuple[Entities, Ints]:
    """Return the entities with new ones appended, and the row of each spelling.

    Beside an entities table spellings of one name become one entity; a plain edge list is taken to the letter.
    """
    order = np.asarray(pc.sort_indices(spelled)).astype(np.int64)
    ordered = spelled.take(pa.array(order))
    keys = ordered
    if len(entities):
        keys = normalised(ordered)
        keys = pc.if_else(pc.equal(keys, ""), ordered, keys)
    first_of = pc.unique(keys)
    group = positions(keys, first_of)
    titles = ordered.take(pa.array(positions(first_of, keys)))
    start, count = len(entities), len(titles)
    columns = {name: blank(ENTITIES, name, count) for name in COLUMNS[ENTITIES]}
    columns["title"] = titles
    columns["id"] = content_ids(titles)
    grown = Entities(
        {name: pa.concat_arrays([one_chunk(entities.columns[name]), columns[name]]) for name in columns},
        pa.concat_arrays([one_chunk(entities.written), titles]),
    )
    rows = np.empty(len(spelled), np.int64)
    rows[order] = start + group
    other = pc.not_equal(ordered, titles.take(pa.array(group)))
    if pc.any(other).as_py():
        grown = _with_aliases(grown, start + group[other.to_numpy(zero_copy_only=False)], ordered.filter(other))
    return grown, rows
