"""Descriptions that outgrew their limit: found, for a model to summarise, and replaced or cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.options import ExtractOptions
from communitree_shared.tables import ENTITIES, RELATIONSHIPS
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
        for row, text in _long(table, options):
            title = " — ".join(table[column][row].as_py() for column in columns)
            out.append(LongDescription(name, table["id"][row].as_py(), title, text.split("\n")))
    return out


def with_descriptions(tables: Tables, summaries: Mapping[str, str], options: ExtractOptions) -> tuple[Tables, int]:
    """Return the tables with summaries (by id) in place, and how many other descriptions had to be cut to the limit."""
    out, cut = dict(tables), 0
    for name in (ENTITIES, RELATIONSHIPS):
        table = tables[name]
        short = {row: _shortened(text, options) for row, text in _long(table, options)}
        cut += len(short)
        if summaries:
            wanted = pc.index_in(one_chunk(table["id"]), value_set=pa.array(list(summaries)))
            for row in np.flatnonzero(pc.is_valid(wanted).to_numpy(zero_copy_only=False)).tolist():
                if summary := summaries[table["id"][row].as_py()]:
                    cut -= row in short
                    short[row] = summary
        if short:
            out[name] = _replaced(table, short)
    return out, cut


def _long(table: pa.Table, options: ExtractOptions) -> Iterator[tuple[int, str]]:
    """Yield row and text of descriptions above the limit; a token has a byte or more, so short ones are not counted."""
    texts = one_chunk(table["description"])
    limit = options.max_description_tokens
    for row in np.flatnonzero(pc.binary_length(texts).to_numpy() > limit).tolist():
        text = texts[row].as_py()
        if count(text) > limit:
            yield row, text


def _replaced(table: pa.Table, texts: dict[int, str]) -> pa.Table:
    """Return the table with the descriptions of these rows replaced."""
    at = table.schema.get_field_index("description")
    old = one_chunk(table["description"])
    rows = sorted(texts)
    mask = np.zeros(len(old), dtype=bool)
    mask[rows] = True
    new = pc.replace_with_mask(old, pa.array(mask), pa.array([texts[row] for row in rows], old.type))
    return table.set_column(at, "description", new)


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
