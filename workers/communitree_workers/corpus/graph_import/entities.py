"""The entities table of any generation: one row for each id, in canonical order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import COLUMNS, ENTITIES
from communitree_workers.corpus.graph_import.account import Notes
from communitree_workers.corpus.graph_import.grouping import (
    canonical_order,
    content_ids,
    groups_of,
    joined,
    reordered,
    united,
)
from communitree_workers.corpus.graph_import.names import Reader, blank
from communitree_workers.corpus.graph_import.values import refuse


@dataclass
class Entities:
    """`columns`: our columns by name, numbers nullable; `written`: each title as it stood in the file."""

    columns: dict[str, pa.Array]
    written: pa.Array

    def __len__(self) -> int:
        return len(self.written)


def nfc(texts: pa.Array) -> pa.Array:
    """Return the texts in Unicode's composed form: entities are ordered by it."""
    return pc.utf8_normalize(texts, form="NFC")


def no_entities() -> Entities:
    """Return a table without rows."""
    return Entities({name: blank(ENTITIES, name, 0) for name in COLUMNS[ENTITIES]}, pa.array([], pa.string()))


def read_entities(reader: Reader, notes: Notes, *, repeated: bool = False) -> Entities:
    """Return the entities of a table. `repeated`: a nodes table, in which an entity has a row for each level.

    Raises:
        BadInput: neither `title` (`name`) nor `id` is a column, or a row has neither.
    """
    reader.must_have("title", "id")
    columns = {name: reader.get(name) for name in COLUMNS[ENTITIES]}
    written = columns["title"]
    untitled = pc.equal(pc.utf8_trim_whitespace(written), "")
    nameless = pc.and_(untitled, pc.equal(columns["id"], "")).to_numpy(zero_copy_only=False)
    if nameless.any():
        refuse(reader.file, reader.spelled("title") or "title", int(np.argmax(nameless)), "a title", "")
    if reader.spelled("title") is not None:
        notes.warn(pc.sum(untitled).as_py() or 0, "entity|entities without a title is|are shown by id")
    if not repeated:
        reader.release()
    columns["title"] = pc.if_else(untitled, columns["id"], written)
    columns["id"] = _or_hash(columns["id"], columns["title"])
    columns["written"] = written
    columns = reordered(columns, canonical_order(nfc(columns["title"]), columns["id"], columns["description"]))
    written = columns.pop("written")
    if pc.count_distinct(columns["id"]).as_py() < len(written):
        columns, written = _one_row_an_id(columns, written, notes, quiet=repeated)
    doubled = len(written) - pc.count_distinct(columns["title"]).as_py()
    notes.note(doubled, "entity|entities had the title of another one; relationships by title go to the first of them")
    return Entities(columns, written)


def _or_hash(ids: pa.Array, titles: pa.Array) -> pa.Array:
    missing = pc.equal(ids, "").to_numpy(zero_copy_only=False)
    if not missing.any():
        return ids
    made = content_ids(titles.filter(pa.array(missing)))
    return pc.replace_with_mask(ids, pa.array(missing), made)


def _one_row_an_id(
    columns: dict[str, pa.Array], written: pa.Array, notes: Notes, *, quiet: bool
) -> tuple[dict[str, pa.Array], pa.Array]:
    """Unite rows of one id and title; an id that stands for a second title gives that one an id of its own."""
    group, first = groups_of(columns["id"], columns["title"])
    count = len(first)
    if not quiet:
        notes.warn(len(group) - count, "entity row|rows repeated an id and title and was|were united with the first")
    firsts = pa.array(first)
    merged = {name: column.take(firsts) for name, column in columns.items()}
    merged["description"] = joined(columns["description"], group, count)
    for name in ("text_unit_ids", "aliases"):
        merged[name] = united(columns[name], group, count)
    _, owners = groups_of(merged["id"])
    again = np.ones(count, bool)
    again[owners] = False
    if again.any():
        others = pa.array(again)
        fresh = content_ids(merged["title"].filter(others), merged["id"].filter(others))
        notes.warn(
            int(again.sum()),
            "entity|entities had the id of another one and got a new id",
            merged["title"].filter(others).slice(0, 6).to_pylist(),
        )
        merged["id"] = pc.replace_with_mask(merged["id"], others, fresh)
    return merged, written.take(firsts)
