"""Tokens of many lines are those of each line."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared import tokens
from communitree_workers.text import token_lines
from communitree_workers.text.token_lines import count_lines

TAIL = st.text(st.sampled_from("ab  1,.;/-\"'#|[]（）。汉字é😀\u0301\u00a0\u3000\t\r\x1c<|endoftext|>"), max_size=30)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 99_999), TAIL), max_size=30),
    st.sampled_from(["o200k_base", "cl100k_base"]),
)
def test_lines_count_as_one_by_one(parts: list[tuple[int, str]], encoding: str) -> None:
    lines = [f"{number},{tail}\n" for number, tail in parts]
    assert count_lines(pa.array(lines, pa.string()), encoding).tolist() == [tokens.count(x, encoding) for x in lines]


@pytest.mark.parametrize(
    ("run", "size", "expected"), [(3, 3_000, [3, 3, 3, 1]), (100, 60, [2, 2, 2, 2, 2]), (100, 20, [1] * 10)]
)
def test_runs_are_cut_by_lines_and_by_bytes(
    run: int, size: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_lines, "_RUN", run)
    monkeypatch.setattr(token_lines, "_BYTES", size)
    cut: list[int] = []
    count_run = token_lines._run

    def spy(lines: pa.Array, *encoder: Any) -> Any:
        cut.append(len(lines))
        return count_run(lines, *encoder)

    monkeypatch.setattr(token_lines, "_run", spy)
    lines = [f"{n},word {n} and 汉字 in 30 B\n" for n in range(10)]
    assert count_lines(pa.array(lines), "o200k_base").tolist() == [tokens.count(line) for line in lines]
    assert cut == expected


def test_repeated_words_count_wherever_they_stand() -> None:
    lines = [f"{n},{'it’s “one” (two), ' * n}three.\n" for n in range(9)]
    assert count_lines(pa.array(lines), "o200k_base").tolist() == [tokens.count(line) for line in lines]


@pytest.mark.parametrize(
    "text", ["a", "", "1,  two", "1, \u3000 wide", "1,a\tb   c", "1,end ", " 1,begin", "-1,a b", "1,a\r b"]
)
def test_lines_with_other_white_space_are_counted_alone(text: str) -> None:
    lines = ["7,a plain line\n", f"{text}\n", text, "8,another\n"]
    assert count_lines(pa.array(lines), "o200k_base").tolist() == [tokens.count(line) for line in lines]


def test_a_tokenizer_whose_words_join_a_space_with_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b" 1": 256, b" a": 257}
    joining = tiktoken.Encoding("joining", pat_str=r" ?\S+|\s+", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tokens, "encoding", lambda _: joining)
    assert count_lines(pa.array(["1 1\n", "1 a a\n"]), "joining").tolist() == [3, 4]
