"""Descriptions that outgrew their limit: found, for a model to summarise, and replaced or cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.contract.options import ExtractOptions
from communitree_shared.contract.tables import ENTITIES, RELATIONSHIPS
from communitree_shared.tokens import count, truncate
from communitree_workers.tables.columns import one_chunk
from communitree_workers.tables.io import Tables


@dataclass(frozen=True)
class LongDescription:
    """An entity or relationship whose descriptions are too long together; `title` names it."""

    table: str
    id: str
    title: str
    descriptions: list[str]


def long_descriptions(tables: Tables, options: ExtractOptions) -> list[LongDescription]:
    """Return what a model should summarise, in the order of the tables (of `merge(…, keep_long=True)`)."""
    out = []
    for name in (ENTITIES, RELATIONSHIPS):
        table = tables[name]
        columns = ("title",) if name == ENTITIES else ("source", "target")
        for row, text in _long(table["description"], options):
            title = " — ".join(table[column][row].as_py() for column in columns)
            out.append(LongDescription(name, table["id"][row].as_py(), title, text.split("\n")))
    return out


def with_summaries(table: pa.Table, summaries: Mapping[str, str], options: ExtractOptions) -> tuple[pa.Table, int]:
    """Return a table with summaries (by id) in place, and how many other descriptions had to be cut to the limit."""
    short = {row: _shortened(text, options) for row, text in _long(table["description"], options)}
    cut = len(short)
    wanted = pc.index_in(one_chunk(table["id"]), value_set=pa.array(list(summaries), pa.string()))
    for row in np.flatnonzero(pc.is_valid(wanted).to_numpy(zero_copy_only=False)).tolist():
        if summary := summaries[table["id"][row].as_py()]:
            cut -= row in short
            short[row] = summary
    at = table.schema.get_field_index("description")
    column = _replaced(table["description"], short)
    return table.set_column(at, "description", column), cut


def cut_to_limit(texts: pa.Array, options: ExtractOptions) -> tuple[pa.Array, int]:
    """Return a column of descriptions without the last parts of those above the limit, and how many these were."""
    short = {row: _shortened(text, options) for row, text in _long(texts, options)}
    return _replaced(texts, short), len(short)


def _long(column: pa.Array | pa.ChunkedArray, options: ExtractOptions) -> Iterator[tuple[int, str]]:
    """Yield row and text of descriptions above the limit; a token has a byte or more, so short ones are not counted."""
    texts = one_chunk(column)
    limit = options.max_description_tokens
    for row in np.flatnonzero(pc.binary_length(texts).to_numpy() > limit).tolist():
        text = texts[row].as_py()
        if count(text) > limit:
            yield row, text


def _replaced(column: pa.Array | pa.ChunkedArray, texts: Mapping[int, str]) -> pa.Array:
    """Return the column with the texts of these rows replaced."""
    old = one_chunk(column)
    if not texts:
        return old
    rows = sorted(texts)
    mask = np.zeros(len(old), dtype=bool)
    mask[rows] = True
    return pc.replace_with_mask(old, pa.array(mask), pa.array([texts[row] for row in rows], old.type))


def _fits(description: str, options: ExtractOptions) -> bool:
    limit = options.max_description_tokens
    return len(description) * 4 <= limit or count(description) <= limit


def _shortened(description: str, options: ExtractOptions) -> str:
    """Return the first descriptions that fit together, the first one cut if it alone does not."""
    kept: list[str] = []
    for part in description.split("\n"):
        if _fits("\n".join([*kept, part]), options):
            kept.append(part)
    return "\n".join(kept) or truncate(description, options.max_description_tokens)
