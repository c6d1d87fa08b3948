"""Descriptions that outgrew their limit: found, for a model to summarise, and replaced or cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from communitree_shared.options import ExtractOptions
from communitree_shared.tables import ENTITIES, RELATIONSHIPS
from communitree_shared.tokens import count, truncate
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
        for row, text in enumerate(table["description"].to_pylist()):
            if not _fits(text, options):
                columns = ("title",) if name == ENTITIES else ("source", "target")
                title = " — ".join(table[column][row].as_py() for column in columns)
                out.append(LongDescription(name, table["id"][row].as_py(), title, text.split("\n")))
    return out


def with_descriptions(tables: Tables, summaries: Mapping[str, str], options: ExtractOptions) -> tuple[Tables, int]:
    """Return the tables with summaries (by id) in place, and how many other descriptions had to be cut to the limit."""
    out, cut = dict(tables), 0
    for name in (ENTITIES, RELATIONSHIPS):
        table = tables[name]
        texts = table["description"].to_pylist()
        changed = False
        ids = table["id"].to_pylist() if summaries else [""] * len(texts)
        for row, text in enumerate(texts):
            summary = summaries.get(ids[row], "")
            if not summary and _fits(text, options):
                continue
            texts[row], changed = summary or _shortened(text, options), True
            cut += not summary
        if changed:
            at = table.schema.get_field_index("description")
            out[name] = table.set_column(at, "description", pa.array(texts, pa.string()))
    return out, cut


def _fits(description: str, options: ExtractOptions) -> bool:
    """A token has at least one byte: short descriptions need no counting."""
    limit = options.max_description_tokens
    return len(description) * 4 <= limit or len(description.encode()) <= limit or count(description) <= limit


def _shortened(description: str, options: ExtractOptions) -> str:
    """Return the first descriptions that fit together, the first one cut if it alone does not."""
    kept: list[str] = []
    for part in description.split("\n"):
        if _fits("\n".join([*kept, part]), options):
            kept.append(part)
    return "\n".join(kept) or truncate(description, options.max_description_tokens)
