from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.corpus.disk import runs
from communitree_workers.corpus.disk.runs import Runs

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64())])


def hashes(keys: list[int]) -> np.ndarray:
    return np.asarray([key * 2_654_435_761 for key in keys], dtype=np.uint64)


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 20), max_size=9), max_size=8), st.integers(0, 12))
def test_all_rows_come_back_and_those_of_one_key_in_one_part(batches: list[list[int]], held: int) -> None:
    with Runs(SCHEMA, held=held, parts=4) as rows:
        for keys in batches:
            rows.add(pa.table({"key": [str(k) for k in keys], "n": keys}, schema=SCHEMA), hashes(keys))
        parts = [part.to_pydict() for part in rows.parts()]
    assert sorted(n for part in parts for n in part["n"]) == sorted(n for keys in batches for n in keys)
    where = [(key, number) for number, part in enumerate(parts) for key in set(part["key"])]
    assert len(where) == len({key for key, _ in where})
    assert rows.rows == sum(map(len, batches))


def test_files_are_made_above_the_limit_only_and_have_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BinaryIO] = []

    def make(**options: str) -> BinaryIO:
        made.append(tempfile.TemporaryFile(dir=tmp_path, **options))  # noqa: SIM115
        return made[-1]

    monkeypatch.setattr(runs, "tempfile", SimpleNamespace(TemporaryFile=make))
    few = pa.table({"key": ["a"], "n": [1]}, schema=SCHEMA)
    with Runs(SCHEMA, held=2, parts=3) as rows:
        rows.add(few, hashes([1]))
        assert not made
        rows.add(few, hashes([1]))
        rows.add(few, hashes([1]))
        assert len(made) == 3
        assert not list(tmp_path.iterdir())
        assert sum(part.num_rows for part in rows.parts()) == 3
    assert all(file.closed for file in made)


def test_no_rows_are_one_empty_part() -> None:
    with Runs(SCHEMA) as rows:
        assert [part.num_rows for part in rows.parts()] == [0]
