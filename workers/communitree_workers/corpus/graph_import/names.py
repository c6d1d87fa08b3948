"""The names that columns have had, and reading a column by any of them."""

from __future__ import annotations

import pyarrow as pa

from communitree_shared.contract.tables import (
    COLUMNS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    OWN_COLUMNS,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from communitree_shared.errors import BadInput
from communitree_workers.corpus.graph_import import values
from communitree_workers.corpus.graph_import.files import Raw

#: table → our column → the names it has had, the present one first. Any other column goes by its own name only.
ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    DOCUMENTS: {
        "text": ("text", "raw_content", "content"), "title": ("title", "name"),
        "raw_data": ("raw_data", "metadata", "attributes"), "human_readable_id": ("human_readable_id", "short_id"),
    },
    TEXT_UNITS: {
        "id": ("id", "chunk_id"), "text": ("text", "chunk", "content"), "document_id": ("document_id", "document_ids"),
        "human_readable_id": ("human_readable_id", "short_id"),
    },
    ENTITIES: {
        "title": ("title", "name", "entity", "label"), "type": ("type", "entity_type"),
        "text_unit_ids": ("text_unit_ids", "source_id"), "human_readable_id": ("human_readable_id", "short_id"),
    },
    RELATIONSHIPS: {
        "source": ("source", "src", "from", "source_id"), "target": ("target", "dst", "to", "target_id"),
        "description": ("description", "relation", "predicate", "label"), "weight": ("weight", "strength"),
        "human_readable_id": ("human_readable_id", "short_id"),
    },
    COVARIATES: {"human_readable_id": ("human_readable_id", "short_id")},
    COMMUNITIES: {"community": ("community", "cluster", "id")},
    COMMUNITY_REPORTS: {
        "community": ("community", "community_id", "cluster"), "rank": ("rank", "rating"),
        "rating_explanation": ("rating_explanation", "rank_explanation"),
    },
}  # fmt: skip

#: Members of these lists may be comma-joined (GraphRAG 0.x).
_JOINED = {(COMMUNITIES, "text_unit_ids"), (COMMUNITIES, "relationship_ids")}


#: Every column that any table is read for, the nodes table's included.
WANTED = frozenset(name for columns in COLUMNS.values() for name in columns) | frozenset(
    name for columns in ALIASES.values() for names in columns.values() for name in names
)


class Reader:
    """The columns of one file, by our names. `column` is None where the file has no such column."""

    def __init__(self, name: str, raw: Raw) -> None:
        self.name = name
        self.raw = raw
        self.file = raw.file
        # `n_tokens` of a foreign table counts something else: of a claim its text unit, not its row.
        telling = OWN_COLUMNS[name].keys() - {"n_tokens"}
        self._hidden = set() if not telling or telling & raw.named.keys() else OWN_COLUMNS[name].keys()

    def __len__(self) -> int:
        return len(self.raw)

    def spelled(self, column: str) -> str | None:
        """Return the column's name in the file."""
        if column in self._hidden:
            return None
        return self.raw.find(*ALIASES[self.name].get(column, (column,)))

    def must_have(self, *columns: str) -> None:
        """Raise `BadInput` unless the file has one of these columns."""
        if all(self.spelled(column) is None for column in columns):
            wanted = " or ".join(name for column in columns for name in ALIASES[self.name].get(column, (column,)))
            have = ", ".join(self.raw.have[:20]) or "none"
            raise BadInput(
                f"{self.file}: column {columns[0]} is missing: expected {wanted}, found the columns {have}.",
                hint=f"Name the column, or rename the file if it is no table of {self.name.replace('_', ' ')}.",
            )

    def column(self, column: str) -> pa.Array | None:
        """Return the column in our type; numbers may be null, texts and lists are not."""
        spelled = self.spelled(column)
        if spelled is None:
            return None
        data, kind = self.raw.table[spelled], COLUMNS[self.name][column]
        if kind == "str":
            return values.text(data, self.file, spelled)
        if kind == "int":
            return values.whole_numbers(data, self.file, spelled)
        if kind == "float":
            return values.numbers(data, self.file, spelled)
        if kind == "bool":
            return _flags(data, self.file, spelled)
        if kind == "list[finding]":
            return values.findings(data, self.file, spelled)
        if kind == "list[int]":
            return values.int_lists(data, self.file, spelled)
        return values.string_lists(data, self.file, spelled, joined=(self.name, column) in _JOINED)

    def release(self) -> None:
        """Let go of the file's table, once its columns are read."""
        self.raw.table = self.raw.table.slice(0, 0).select([])

    def get(self, column: str) -> pa.Array:
        """Return the column, or empty values where the file has none (null for numbers)."""
        found = self.column(column)
        return found if found is not None else blank(self.name, column, len(self))


def blank(name: str, column: str, count: int) -> pa.Array:
    """Return `count` empty values of a column's type: "", no members, null for numbers."""
    kind = COLUMNS[name][column]
    if kind == "str":
        return pa.array([""] * count, pa.string())
    if kind == "list[finding]":
        return values.findings(pa.nulls(count), "", column)
    if kind.startswith("list"):
        lists = values.string_lists(pa.nulls(count), "", column)
        return lists if kind == "list[str]" else lists.cast(pa.list_(pa.int64()))
    return pa.nulls(count, {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}[kind])


def _flags(data: pa.ChunkedArray, file: str, spelled: str) -> pa.Array:
    array = values.plain(data)
    if pa.types.is_boolean(array.type):
        return array
    return pa.array([text.lower() in ("true", "1") for text in values.text(array, file, spelled).to_pylist()])
