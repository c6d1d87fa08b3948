"""Tokens of many lines are those of each line."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared import tokens
from communitree_workers.text import token_lines
from communitree_workers.text.token_lines import count_lines

TAIL = st.text(st.sampled_from("ab 1,.;/-\"'#|[]（）。汉字é😀\u00a0<|endoftext|>"), max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 99_999), TAIL), max_size=30),
    st.sampled_from(["o200k_base", "cl100k_base"]),
)
def test_lines_count_as_one_by_one(parts: list[tuple[int, str]], encoding: str) -> None:
    lines = [f"{number},{tail}\n" for number, tail in parts]
    assert count_lines(pa.array(lines, pa.string()), encoding).tolist() == [tokens.count(x, encoding) for x in lines]


def test_more_lines_than_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_lines, "_RUN", 3)
    lines = [f"{n},word {n} 汉字\n" for n in range(10)]
    assert count_lines(pa.array(lines), "o200k_base").tolist() == [tokens.count(line) for line in lines]


def test_lines_that_run_into_one_another_are_counted_one_by_one() -> None:
    lines = ["a\n", "\n", "b\n"]  # an empty line: `\n\n` is one token
    assert count_lines(pa.array(lines), "o200k_base").tolist() == [tokens.count(line) for line in lines]
