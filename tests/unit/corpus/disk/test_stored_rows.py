from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.corpus.disk.stored_rows import rows_of
from communitree_workers.tables.io import TableFile, from_rows


def stored(groups: list[int]) -> tuple[bytes, pa.Table]:
    """A table of text units in groups of so many rows: its bytes, and what is in it."""
    parts, at = [], 0
    for size in groups:
        rows = [{"id": f"u{n}", "human_readable_id": n, "text": f"text {n} " * 40} for n in range(at, at + size)]
        parts.append(from_rows("text_units", rows))
        at += size
    with TableFile("text_units") as file:
        for part in parts:
            file.add(part)
        written, size = file.close()
        written.seek(0)
        return written.read(size), pa.concat_tables(parts)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_any_rows_of_any_groups(groups: list[int], data: st.DataObject) -> None:
    raw, table = stored(groups)
    start = data.draw(st.integers(0, table.num_rows - 1))
    rows = data.draw(st.integers(1, table.num_rows - start))
    found = rows_of(
        lambda at, length: raw[at : at + length], len(raw), start, rows, ["id", "text"], lambda _, make: make()[0]
    )
    assert found.to_pylist() == table.select(["id", "text"]).slice(start, rows).to_pylist()


def test_only_what_holds_them_is_read() -> None:
    raw, _ = stored([50] * 40)
    read: list[int] = []
    kept: dict[str, Any] = {}

    def part(at: int, length: int) -> bytes:
        read.append(length)
        return raw[at : at + length]

    def keep(name: str, make: Any) -> Any:
        if name not in kept:
            kept[name] = make()[0]
        return kept[name]

    rows_of(part, len(raw), 1000, 50, ["id", "text"], keep)
    group = sum(read)
    rows_of(part, len(raw), 1010, 20, ["id", "text"], keep)
    assert sum(read) == group, "the second asks for nothing"
    assert list(kept) == ["footer", "20 id text"], "where rows lie is worked out once, with the footer"
    rows_of(part, len(raw), 0, 50, ["id", "text"], keep)
    assert sum(read) - group < len(raw) / 20, "footer known: one group of forty"
