"""Texts of a column as bytes: those of the column, whatever its type, chunks, slices and nulls."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.tables.texts import Utf8Texts

TEXTS = st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)), max_size=6)


@settings(max_examples=80, deadline=None)
@given(st.lists(TEXTS, max_size=3), st.integers(0, 4), st.randoms(), st.sampled_from([pa.string(), pa.large_string()]))
def test_texts_are_the_column(chunks: list[list[str | None]], skip: int, order: Random, kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind).slice(skip)
    rows = list(range(len(column)))
    order.shuffle(rows)
    texts = Utf8Texts(column, np.array(rows, np.int64))
    values = column.to_pylist()
    assert [texts[place] for place in range(len(texts))] == [(values[row] or "").encode() for row in rows]


def test_a_null_is_empty_whatever_its_bounds_hold() -> None:
    valid = pa.py_buffer(bytes([0b101]))
    bounds, data = pa.py_buffer(np.array([0, 1, 2, 3], np.int32).tobytes()), pa.py_buffer(b"abc")
    column = pa.Array.from_buffers(pa.string(), 3, [valid, bounds, data])
    texts = Utf8Texts(column, np.arange(3))
    assert [texts[place] for place in range(3)] == [b"a", b"", b"c"]


def test_a_row_that_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError):
        Utf8Texts(pa.array(["a"]), np.array([1]))
