"""The relationships table, or a plain edge list: ends resolved, parallel and reversed edges one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import COLUMNS, ENTITIES, RELATIONSHIPS, WEIGHT_SCALE
from communitree_workers.corpus.graph_import.account import Notes
from communitree_workers.corpus.graph_import.ends import resolve
from communitree_workers.corpus.graph_import.entities import Entities, nfc
from communitree_workers.corpus.graph_import.grouping import (
    canonical_order,
    content_ids,
    groups_of,
    joined,
    numbered,
    renumber,
    reordered,
    united,
)
from communitree_workers.corpus.graph_import.names import Reader
from communitree_workers.corpus.graph_import.values import refuse, refuse_empty
from communitree_workers.tables.columns import Ints, one_chunk, positions

Floats = npt.NDArray[np.float64]

#: A weight above this could overflow the fixed-point sum.
_MOST = 1e12


@dataclass
class Relationships:
    """Merged edges. `ids` are the ids as they stood in the file, `now` the row each of them is in."""

    columns: dict[str, pa.Array]
    source: Ints
    target: Ints
    ids: pa.Array
    now: Ints


def read_relationships(readers: Sequence[Reader], entities: Entities, notes: Notes) -> tuple[Entities, Relationships]:
    """Return the merged relationships, and the entities with those that their ends made necessary.

    Raises:
        BadInput: no source or target column, an empty end, a weight that is no finite number.
    """
    parts = [_columns(reader, entities, notes) for reader in readers]
    columns = {name: one_chunk(pa.chunked_array([part[name] for part in parts])) for name in parts[0]}
    count = len(columns["id"])
    entities, ends = _ends(columns, entities, notes)
    order = _order(columns, ends, entities)
    columns = reordered(columns, order)
    source, target = ends[0][order], ends[1][order]
    low, high = np.minimum(source, target), np.maximum(source, target)
    group, first = renumber(low * max(len(entities), 1) + high)
    merged = len(first)
    notes.note(
        count - merged, "parallel or reversed relationship|relationships was|were united with the first: weights summed"
    )
    given = columns["id"]
    if merged < count:
        columns = _merged(columns, group, first)
    source, target = source[first], target[first]
    columns["source"] = entities.columns["title"].take(pa.array(source))
    columns["target"] = entities.columns["title"].take(pa.array(target))
    columns["source_id"] = entities.columns["id"].take(pa.array(source))
    columns["target_id"] = entities.columns["id"].take(pa.array(target))
    columns["id"] = _ids(columns, notes)
    return entities, Relationships(columns, source, target, given, group)


def _columns(reader: Reader, entities: Entities, notes: Notes) -> dict[str, pa.Array]:
    reader.must_have("source")
    reader.must_have("target")
    columns = {name: reader.get(name) for name in COLUMNS[RELATIONSHIPS]}
    count = len(reader)
    blank_is_known = positions(pa.array([""]), entities.written)[0] >= 0
    for end in ("source", "target"):
        if not blank_is_known:
            refuse_empty(columns[end], reader.file, reader.spelled(end) or end, "the title or id of an entity")
    weight = columns["weight"].to_numpy(zero_copy_only=False)
    if (np.abs(weight) > _MOST).any():
        row = int(np.argmax(np.abs(weight) > _MOST))
        refuse(reader.file, reader.spelled("weight") or "weight", row, "a weight below 1e12", float(weight[row]))
    if reader.spelled("weight") is None:
        notes.note(count, f"relationship|relationships of {reader.file} has|have no weight column and weighs|weigh 1")
    else:
        notes.warn(columns["weight"].null_count, "relationship|relationships without a weight weighs|weigh 1")
    columns["weight"] = pc.fill_null(columns["weight"], 1.0)
    reader.release()
    return columns


def _ends(columns: dict[str, pa.Array], entities: Entities, notes: Notes) -> tuple[Entities, list[Ints]]:
    """Resolve both ends: by our own id columns where they name entities, else by what `source` and `target` say."""
    count = len(columns["source"])
    rows = np.concatenate([positions(columns[f"{end}_id"], entities.columns["id"]) for end in ("source", "target")])
    open_ends = np.flatnonzero(rows < 0)
    if len(open_ends):
        ends = pa.concat_arrays([columns["source"], columns["target"]])
        entities, found = resolve(ends.take(pa.array(open_ends)), entities, notes)
        rows[open_ends] = found
    return entities, [rows[:count], rows[count:]]


def _order(columns: dict[str, pa.Array], ends: list[Ints], entities: Entities) -> Ints:
    """Return the rows by their numbers; where they have none of their own, by ends and content."""
    given = columns["human_readable_id"]
    if numbered(given):
        return np.argsort(given.to_numpy(), kind="stable").astype(np.int64)
    titles = np.empty(len(entities), np.int64)
    titles[canonical_order(entities.columns["title"], entities.columns["id"])] = np.arange(len(entities))
    return canonical_order(
        pc.fill_null(given, np.iinfo(np.int64).max), pa.array(titles[ends[0]]), pa.array(titles[ends[1]]),
        columns["id"], columns["description"], columns["weight"],
    )  # fmt: skip


def _merged(columns: dict[str, pa.Array], group: Ints, first: Ints) -> dict[str, pa.Array]:
    count = len(first)
    out = reordered(columns, first)
    out["weight"] = pa.array(_sums(columns["weight"].to_numpy(zero_copy_only=False), group, count))
    several = np.bincount(group, minlength=count) > 1
    place = np.cumsum(several) - 1
    rows = np.flatnonzero(several[group])
    within, groups = place[group[rows]], int(several.sum())
    mask = pa.array(several)
    texts = joined(columns["description"].take(pa.array(rows)), within, groups)
    out["description"] = pc.replace_with_mask(out["description"], mask, texts)
    lists = united(columns["text_unit_ids"].take(pa.array(rows)), within, groups)
    both = pa.concat_arrays([out["text_unit_ids"], lists])
    out["text_unit_ids"] = both.take(pa.array(np.where(several, count + place, np.arange(count))))
    return out


def _sums(weights: Floats, group: Ints, count: int) -> Floats:
    """Return summed weights; in fixed point, so that row order cannot change a sum. A single edge keeps its own."""
    order = np.argsort(group, kind="stable")
    fixed = np.round(weights * WEIGHT_SCALE).astype(np.int64)[order]
    sizes = np.bincount(group, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    total: Floats = np.add.reduceat(fixed, starts) / WEIGHT_SCALE
    return np.where(sizes == 1, weights[order][starts], total)


def _ids(columns: dict[str, pa.Array], notes: Notes) -> pa.Array:
    ids = columns["id"]
    missing = pc.equal(ids, "").to_numpy(zero_copy_only=False)
    if not missing.any() and pc.count_distinct(ids).as_py() == len(ids):
        return ids
    _, owners = groups_of(ids)
    again = np.ones(len(ids), bool)
    again[owners] = False
    again &= ~missing
    notes.warn(int(again.sum()), "relationship|relationships had the id of another one and got a new id")
    fresh = missing | again
    if not fresh.any():
        return ids
    mask = pa.array(fresh)
    made = content_ids(columns["source_id"].filter(mask), columns["target_id"].filter(mask))
    return pc.replace_with_mask(ids, mask, made)


def degrees(relationships: Relationships, entities: Entities) -> tuple[Ints, Ints]:
    """Return the number of relationships of each entity, and for each relationship the sum over its ends."""
    count = len(entities)
    degree = np.bincount(relationships.source, minlength=count) + np.bincount(relationships.target, minlength=count)
    loops = relationships.source == relationships.target
    degree -= np.bincount(relationships.source[loops], minlength=count)
    return degree, degree[relationships.source] + degree[relationships.target]


def with_text_of_edges(entities: Entities, relationships: Relationships, made_from: int) -> Entities:
    """Return the entities in canonical order again, those made for edge ends with their relationships' text units.

    Args:
        entities: from row `made_from` on they were made for edge ends.
        relationships: their ends are put right for the new order.
    """
    count = len(entities)
    if made_from >= count:
        return entities
    lists = relationships.columns["text_unit_ids"]
    both = pa.concat_arrays([lists, lists])
    owner = np.concatenate([relationships.source, relationships.target])
    mine = owner >= made_from
    found = united(both.filter(pa.array(mine)), owner[mine] - made_from, count - made_from)
    kept = one_chunk(entities.columns["text_unit_ids"]).slice(0, made_from)
    columns = {**entities.columns, "text_unit_ids": pa.concat_arrays([kept, found])}
    order = canonical_order(nfc(columns["title"]), columns["id"])
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    relationships.source, relationships.target = place[relationships.source], place[relationships.target]
    columns = reordered({**columns, "written": entities.written}, order)
    return Entities({name: columns[name] for name in COLUMNS[ENTITIES]}, columns["written"])
