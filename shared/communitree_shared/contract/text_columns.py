"""Which column of a table holds its text: one name for all tables, or `papers.csv=abstract` for one of them."""

from __future__ import annotations

from pathlib import PurePosixPath

#: Before an equals sign, such a file's name is that of a table; otherwise the sign belongs to the column's name.
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")


def text_column_of(given: str | list[str], table: str) -> str:
    """Return the column that was given for a table, by its name or the end of it; "" where none was."""
    plain, own = text_columns(given)
    return own.get(table, own.get(PurePosixPath(table).name, plain))


def text_columns(given: str | list[str]) -> tuple[str, dict[str, str]]:
    """Return the column of all tables, and those of single ones."""
    plain, own = "", {}
    for one in [given] if isinstance(given, str) else given:
        table, equals, column = one.rpartition("=")
        if equals and PurePosixPath(table.lower()).suffix in _TABLES:
            own[table] = column
        else:
            plain = one
    return plain, own
