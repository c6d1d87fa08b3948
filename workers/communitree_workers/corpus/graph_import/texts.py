"""Text units and documents: read, or made from the ids that the other tables name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared import tokens
from communitree_shared.contract.tables import COLUMNS, DOCUMENTS, TEXT_UNITS
from communitree_workers.corpus.graph_import.account import Notes
from communitree_workers.corpus.graph_import.grouping import canonical_order, content_ids, groups_of, reordered
from communitree_workers.corpus.graph_import.names import Reader, blank
from communitree_workers.corpus.graph_import.values import refuse_empty, string_lists
from communitree_workers.tables.columns import Ints, flatten, positions, to_lists, unique_pairs

Columns = dict[str, pa.Array]


@dataclass
class Texts:
    """Text units and documents, our columns by name, numbers nullable."""

    units: Columns
    documents: Columns


def read_texts(
    units: Reader | None, documents: Reader | None, mentioned: Iterable[pa.Array], encoding: str, notes: Notes
) -> Texts:
    """Return text units and documents that name each other.

    `mentioned`: lists of text unit ids in the other tables; without a text units table they are all there is.

    Raises:
        BadInput: a text unit or document without an id.
    """
    if units is not None:
        found, more = _units(units, encoding, notes)
    else:
        found, more = _stubs(mentioned, notes), None
    made = _documents(documents, notes) if documents is not None else _blank(DOCUMENTS, 0)
    return Texts(found, _joined(found, made, more, documents is not None, notes))


def _blank(name: str, count: int) -> Columns:
    return {column: blank(name, column, count) for column in COLUMNS[name]}


def _distinct(columns: Columns, what: str, notes: Notes, *order: str) -> tuple[Columns, Ints]:
    """Return the columns in canonical order with one row an id, and the rows taken."""
    rows = canonical_order(columns["id"], *(columns[name] for name in order))
    _, first = groups_of(columns["id"].take(pa.array(rows)))
    notes.warn(len(rows) - len(first), f"{what} repeated an id and was|were left out")
    rows = rows[first]
    return reordered(columns, rows), rows


def _units(reader: Reader, encoding: str, notes: Notes) -> tuple[Columns, tuple[Ints, pa.Array]]:
    """Return the text units, and further documents of a unit that lies in several, as (unit row, document id)."""
    reader.must_have("id", "text")
    columns = {name: reader.get(name) for name in COLUMNS[TEXT_UNITS] if name != "document_id"}
    spelled = reader.spelled("document_id")
    owners = blank(TEXT_UNITS, "entity_ids", len(reader))
    if spelled is not None:
        owners = string_lists(reader.raw.table[spelled], reader.file, spelled)
    columns["document_ids"] = owners
    if reader.spelled("id") is None:
        columns["id"] = content_ids(columns["text"])
    refuse_empty(columns["id"], reader.file, reader.spelled("id") or "id", "the id of a text unit")
    reader.release()
    columns, _ = _distinct(columns, "text unit|units", notes, "text")
    unit, ids = flatten(columns.pop("document_ids"))
    first = np.ones(len(unit), bool)
    first[1:] = unit[1:] != unit[:-1]
    primary = np.full(len(columns["id"]), -1, np.int64)
    primary[unit[first]] = np.flatnonzero(first)
    named = ids.take(pa.array(primary, mask=primary < 0)) if len(ids) else pa.nulls(len(primary), pa.string())
    columns["document_id"] = pc.fill_null(named.cast(pa.string()), "")
    columns["n_tokens"] = _counted(columns["n_tokens"], columns["text"], encoding)
    if reader.spelled("start") is None:
        columns["start"] = columns["end"] = pa.array(np.full(len(primary), -1, np.int64))
    return {name: columns[name] for name in COLUMNS[TEXT_UNITS]}, (unit[~first], ids.filter(pa.array(~first)))


def _counted(given: pa.Array, texts: pa.Array, encoding: str) -> pa.Array:
    missing = pc.is_null(given)
    if not pc.any(missing).as_py():
        return given
    made = [tokens.count(text, encoding) for text in texts.filter(missing).to_pylist()]
    return pc.replace_with_mask(given, missing, pa.array(made, pa.int64()))


def _stubs(mentioned: Iterable[pa.Array], notes: Notes) -> Columns:
    ids = pc.unique(pa.concat_arrays([flatten(lists)[1].cast(pa.string()) for lists in mentioned])).sort()
    units = _blank(TEXT_UNITS, len(ids))
    unknown = pa.array(np.full(len(ids), -1, np.int64))
    units.update(id=ids, n_tokens=pa.array(np.zeros(len(ids), np.int64)), start=unknown, end=unknown)
    if len(ids):
        notes.note(len(ids), "text unit|units is|are known by id only: there is no text_units table")
    else:
        notes.notes.append("The tables have no text units: the evidence of an entity is its own row.")
    return units


def _documents(reader: Reader, notes: Notes) -> Columns:
    reader.must_have("id", "title", "text")
    columns = {name: reader.get(name) for name in COLUMNS[DOCUMENTS]}
    if reader.spelled("id") is None:
        columns["id"] = content_ids(columns["title"], columns["text"])
    refuse_empty(columns["id"], reader.file, reader.spelled("id") or "id", "the id of a document")
    return _distinct(columns, "document|documents", notes, "title", "text")[0]


def _joined(
    units: Columns, documents: Columns, more: tuple[Ints, pa.Array] | None, given: bool, notes: Notes
) -> Columns:
    """Return the documents, those that only text units name added, with `text_unit_ids` from both sides."""
    doc, unit_ids = flatten(documents["text_unit_ids"])
    unit = positions(unit_ids, units["id"])
    notes.warn(int((unit < 0).sum()), "reference|references of documents to unknown text units was|were dropped")
    doc, unit = doc[unit >= 0], unit[unit >= 0]
    # A unit that names no document gets the first that names it.
    homeless = pc.equal(units["document_id"], "").to_numpy(zero_copy_only=False)
    if homeless.any() and len(doc):
        first_unit, at = np.unique(unit, return_index=True)
        named = np.full(len(homeless), -1, np.int64)
        named[first_unit] = doc[at]
        ids = documents["id"].take(pa.array(named, mask=named < 0))
        units["document_id"] = pc.if_else(pa.array(homeless), pc.fill_null(ids, ""), units["document_id"])
    wanted = (
        units["document_id"] if more is None else pa.concat_arrays([units["document_id"], more[1].cast(pa.string())])
    )
    owner = np.arange(len(homeless)) if more is None else np.concatenate([np.arange(len(homeless)), more[0]])
    row = positions(wanted, documents["id"])
    unknown = pc.unique(wanted.filter(pa.array(row < 0))).sort()
    unknown = unknown.filter(pc.not_equal(unknown, ""))
    if len(unknown):
        added = _blank(DOCUMENTS, len(unknown))
        added.update(id=unknown, title=unknown)
        documents = {name: pa.concat_arrays([documents[name], added[name]]) for name in documents}
        why = "text units name them" if given else "there is no documents table"
        notes.note(len(unknown), f"document|documents was|were made, without text, because {why}")
        row = positions(wanted, documents["id"])
    left, right = unique_pairs(np.concatenate([doc, row[row >= 0]]), np.concatenate([unit, owner[row >= 0]]))
    count = len(documents["id"])
    size = units["n_tokens"].to_numpy(zero_copy_only=False)
    total = np.bincount(left, weights=size[right], minlength=count).astype(np.int64)
    documents = {**documents, "text_unit_ids": to_lists(left, units["id"].take(pa.array(right)), count)}
    documents["n_tokens"] = pc.coalesce(documents["n_tokens"], pa.array(total))
    documents["title"] = pc.if_else(pc.equal(documents["title"], ""), documents["id"], documents["title"])
    return documents
