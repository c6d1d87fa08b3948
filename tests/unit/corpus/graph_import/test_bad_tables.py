"""Bad tables: the error names the file, the column, the row and what was expected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from communitree_shared.contract.options import IndexOptions
from communitree_shared.errors import BadInput
from communitree_workers.corpus.graph_import import read_graph, values
from support import graph_tables as old


def damaged(table: str, row: int, **change: Any) -> dict[str, bytes]:
    tables = old.tables_3()
    tables[table][row].update(change)
    if change:
        name = next(iter(change))
        for other in tables[table]:
            other[name] = change[name] if other is tables[table][row] else str(other[name])
    return {f"{name}.parquet": old.parquet(rows) for name, rows in tables.items()}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (damaged("relationships", 2, weight="heavy"), ["relationships.parquet", "column weight, row 3", "a number",
                                                       "'heavy'"]),
        (damaged("relationships", 1, weight="1e300"), ["column weight, row 2", "below 1e12"]),
        (damaged("relationships", 3, source=" "), ["column source, row 4", "title or id of an entity"]),
        (damaged("communities", 1, community="one"), ["communities.parquet", "column community, row 2",
                                                      "a whole number", "'one'"]),
        (damaged("communities", 3, community="0"), ["column community, row 4", "no other community has"]),
        (damaged("communities", 2, level=""), ["column level, row 3", "0 for the coarsest"]),
        (damaged("entities", 4, human_readable_id="4.5"), ["entities.parquet", "row 5", "a whole number"]),
        (damaged("text_units", 1, n_tokens="many"), ["text_units.parquet", "column n_tokens, row 2"]),
        (damaged("entities", 1, text_unit_ids="['t0' ... 't9']"), ["column text_unit_ids, row 2", "a whole list"]),
        (damaged("community_reports", 0, rank="high"), ["community_reports.parquet", "column rank, row 1"]),
        (damaged("community_reports", 3, children="[1, 'x']"), ["column children, row 4", "whole numbers", "'x'"]),
        ({"edges.csv": b"source,weight\nA,1\n"}, ["edges.csv", "column target is missing", "source, weight"]),
        ({"edges.csv": b"source,target\nA,B\nB\n"}, ["edges.csv", "a table as CSV", "2 columns"]),
        ({"edges.csv": b"source,target\nA,\n"}, ["edges.csv", "column target, row 1"]),
        ({"edges.csv": b"source,target\nA,B\n\x01\x02\xff\x00,B\n"}, ["edges.csv", "a table as CSV"]),
        ({"edges.csv": b"source,target\n"}, ["no entity", "edges.csv"]),
        ({"edges.jsonl": b'{"source": "A", "target": "B"}\n{"source": '}, ["edges.jsonl", "line 2", "JSON object"]),
        ({"edges.jsonl": b"[1]\n"}, ["edges.jsonl", "row 1", "an object"]),
        ({"entities.parquet": b"PAR1 no"}, ["entities.parquet", "Parquet"]),
        ({"entities.parquet": old.parquet([{"type": "x"}])}, ["entities.parquet", "title", "name", "type"]),
        ({"entities.parquet": old.parquet([{"title": "A"}, {"title": None}])}, ["column title, row 2", "a title"]),
        ({"entities.parquet": old.parquet([{"title": ["A"]}])}, ["column title, row 1", "a text"]),
        ({"entities.csv": b"title\nA\n", "create_final_entities.parquet": b""}, ["create_final_entities.parquet",
                                                                              "entities.csv", "both hold"]),
        ({"readme.md": b"x"}, ["No graph among the files: readme.md", "source and target"]),
        ({}, ["No graph among the files"]),
    ],
)  # fmt: skip
def test_the_error_names_the_place_and_what_was_expected(files: dict[str, bytes], words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_graph(files, IndexOptions())
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


def test_every_refusal_says_what_to_do() -> None:
    for files in (
        {"edges.jsonl": b"no"}, {"edges.jsonl": b"[1]"}, {"edges.json": b"{"}, {"edges.csv": b"source,target\n"},
        {"edges.parquet": old.parquet([{"source": "A", "target": "B", "weight": [1.0]}])},
    ):  # fmt: skip
        with pytest.raises(BadInput) as caught:
            read_graph(files, IndexOptions())
        assert "nothing was imported" in caught.value.hint


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("['a', 'b']", ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("('a', 'b')", ["a", "b"]),
        ("[1, 2 3]", ["1", "2", "3"]),
        ("a,b", ["a", "b"]),
        ("one id", ["one id"]),
        ("['with, comma']", ["with, comma"]),
        ("[]", []),
        ("", []),
        ("nan", []),
        (None, []),
    ],
)
def test_lists_that_became_text(written: str | None, meant: list[str]) -> None:
    assert values.string_lists(pa.array([written], pa.string()), "f", "c").to_pylist() == [meant]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.large_list(pa.int32()), pa.list_(pa.float64()), pa.list_(pa.int64(), 2)],
)
def test_lists_of_any_flavour(kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array([[1, 2], None], kind), pa.array([[3, None]], kind)])
    assert values.string_lists(column, "f", "c").to_pylist() == [["1", "2"], [], ["3"]]
    assert values.int_lists(column, "f", "c").to_pylist() == [[1, 2], [], [3]]
