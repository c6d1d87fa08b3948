"""Canonical orders and row numbers: what is read from the tables, so that their row order changes nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.tables import DOCUMENTS, ENTITIES, RELATIONSHIPS, TEXT_UNITS, WEIGHT_SCALE
from communitree_shared.errors import IntegrityError
from communitree_workers.cluster.graph import digests
from communitree_workers.tables.columns import Ints, one_chunk, positions
from communitree_workers.tables.io import Tables

#: What an edge of unknown or useless weight counts, as a share of the median of the good ones: as a weak edge does.
WEAK_SHARE = 0.1

#: Weights above this are scaled down together: the sum of any number of fixed-point weights must fit 63 bits.
_LARGEST_WEIGHT = 1e6


def nfc(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the strings in Unicode normal form C; null becomes the empty string."""
    return pc.utf8_normalize(pc.fill_null(one_chunk(values), ""), form="NFC")


def entity_order(tables: Tables) -> Ints:
    """Return the rows of `entities` ordered by (NFC title, id).

    Raises:
        IntegrityError: an id stands twice, or is missing.
    """
    entities = tables[ENTITIES]
    ids = one_chunk(entities["id"])
    unique_ids(ids, ENTITIES)
    order = pc.sort_indices(
        pa.table({"title": nfc(entities["title"]), "id": ids}),
        sort_keys=[("title", "ascending"), ("id", "ascending")],
    )
    return np.asarray(order, np.int64)


def numbered_order(table: pa.Table, name: str) -> Ints:
    """Return the rows ordered by (human_readable_id, id).

    Raises:
        IntegrityError: an id stands twice, or is missing.
    """
    ids = one_chunk(table["id"])
    numbers = np.asarray(pc.fill_null(one_chunk(table["human_readable_id"]), -1), np.int64)
    order = np.argsort(numbers, kind="stable").astype(np.int64)
    unique_ids(ids, name)
    if len(order) > 1 and (np.diff(numbers[order]) == 0).any():
        frame = pa.table({"number": numbers, "id": ids})
        order = np.asarray(pc.sort_indices(frame, sort_keys=[("number", "ascending"), ("id", "ascending")]), np.int64)
    return order


def unique_ids(ids: pa.Array, name: str) -> None:
    """Raise IntegrityError where an id stands twice or is missing."""
    if ids.null_count or pc.any(pc.equal(pc.binary_length(ids), 0)).as_py():
        raise IntegrityError(f"{name}: a row has no id.", hint="Give every row an id of its own.")
    marks = np.sort(digests(ids))
    if (marks[1:] == marks[:-1]).any() and pc.count_distinct(ids).as_py() != len(ids):
        counts = pc.value_counts(ids)
        twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        first = pc.min(twice).as_py()
        raise IntegrityError(
            f"{name}: the id {first!r} stands in more than one row ({len(twice)} such ids).",
            hint="Ids are keys: merge the rows, or give each an id of its own.",
        )


def unit_order(tables: Tables) -> tuple[Ints, Ints, list[str]]:
    """Order the text units by (document, human_readable_id, id); documents by (human_readable_id, id).

    Returns:
        The rows of `text_units` in order; the number of each one's document (a document that `documents` does not
        know comes last; no document at all: -1 and after all others); the documents' ids by number.
    """
    units, documents = tables[TEXT_UNITS], tables[DOCUMENTS]
    order = numbered_order(units, TEXT_UNITS)
    known = one_chunk(documents["id"]).take(pa.array(numbered_order(documents, DOCUMENTS)))
    named = pc.fill_null(one_chunk(units["document_id"]), "").take(pa.array(order))
    stray = pc.unique(named.filter(pc.invert(pc.is_in(named, value_set=pa.concat_arrays([known, pa.array([""])])))))
    every = pa.concat_arrays([known, stray.take(pc.sort_indices(stray))])
    document = positions(named, every)
    last = np.argsort(np.where(document < 0, len(every), document), kind="stable")
    return order[last], document[last], every.to_pylist()


def relationship_members(tables: Tables, ids: pa.Array, titles: pa.Array) -> tuple[Ints, Ints, bool]:
    """Return the members that are source and target of each relationship row, -1 where an end names none.

    An end is taken by its id; where that is empty or names nothing, by its title, as it stands or in NFC. The third
    value tells whether all were found by id.

    Args:
        tables: the corpus.
        ids, titles: those of the members, in canonical order: of equal titles the first is meant.
    """
    relationships = tables[RELATIONSHIPS]
    normal: pa.Array | None = None
    ends: list[Ints] = []
    by_id = True
    for id_column, title_column in (("source_id", "source"), ("target_id", "target")):
        end = positions(relationships[id_column], ids)
        if (end < 0).any():
            by_id = False
            end = np.where(end < 0, positions(relationships[title_column], titles), end)
        if (end < 0).any():
            normal = nfc(titles) if normal is None else normal
            end = np.where(end < 0, positions(nfc(relationships[title_column]), normal), end)
        ends.append(end)
    return ends[0], ends[1], by_id


def fixed_weights(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, int]:
    """Return the weights in fixed point, all > 0, and how many had to be floored.

    A weight that is missing, not a number, infinite, zero or negative says nothing about how strong its edge is,
    only that there is one: it counts a tenth of the median of the good weights.
    """
    raw: npt.NDArray[np.float64] = np.asarray(
        pc.fill_null(one_chunk(column).cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
    )
    good = np.isfinite(raw) & (raw > 0)
    largest = float(raw[good].max()) if good.any() else 1.0
    if largest > _LARGEST_WEIGHT:
        raw = raw * float(10.0 ** -np.ceil(np.log10(largest / _LARGEST_WEIGHT)))
    fixed = np.zeros(len(raw), np.int64)
    fixed[good] = np.maximum(np.rint(raw[good] * WEIGHT_SCALE), 1)
    fixed[~good] = weak_weight(fixed[good])
    return fixed, int(len(raw) - good.sum())


def weak_weight(weights: Ints) -> int:
    """Return a tenth of the median weight, in fixed point; of 1.0 where there is none."""
    median = int(np.median(weights)) if len(weights) else WEIGHT_SCALE
    return max(int(median * WEAK_SHARE), 1)
