"""Whole tables are rendered as their rows are one by one."""

from __future__ import annotations

import sys

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract import tables as names
from communitree_workers.report.evidence import rows, table_rows
from communitree_workers.tables.io import from_rows

SPACES = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace())
FIELD = st.none() | st.text(st.sampled_from("ab1,\"'#|[]（）。汉é\u200b" + " " * 8 + SPACES), max_size=12)


@settings(max_examples=150)
@given(st.lists(st.tuples(FIELD, FIELD, FIELD), max_size=8))
def test_a_table_is_rendered_as_its_rows(fields: list[tuple[str | None, str | None, str | None]]) -> None:
    table = pa.table(
        {
            name: pa.array([row[i] for row in fields], pa.string())
            for i, name in enumerate(table_rows.FIELDS["entities"])
        }
    )
    assert table_rows.tails("entities", table).to_pylist() == [rows.line(*row) for row in fields]


def test_every_kind_of_white_space_is_collapsed() -> None:
    table = pa.table({"text": [f"a{space}b{space}{space}c" for space in SPACES]})
    assert set(table_rows.tails("text_units", table).to_pylist()) == {"a b c"}


def test_none_is_no_object_and_no_date_in_any_case() -> None:
    claim = {"subject_id": "none", "object_id": "None", "type": "", "status": "", "start_date": "none",
             "end_date": "2024-01-02T10:00", "description": None}  # fmt: skip
    rest = table_rows.tails("claims", from_rows(names.COVARIATES, [claim]))
    assert table_rows.lines(pa.chunked_array([[12]]), rest).to_pylist() == ["12,none,,,,,2024-01-02,\n"]


def test_a_table_may_hold_more_text_than_a_plain_string_array() -> None:
    rest = table_rows.tails("entities", pa.table({"title": ["a"], "type": ["b"], "description": ["c"]}))
    assert rest.type == table_rows.lines(pa.chunked_array([[1]]), rest).type == pa.large_string()
