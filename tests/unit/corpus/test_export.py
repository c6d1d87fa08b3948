"""What is exported reads back as it was, and has GraphRAG's columns and types."""

from __future__ import annotations

import io
import random

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import IndexOptions
from communitree_shared.contract.tables import COLUMNS, GRAPHRAG_COLUMNS
from communitree_shared.errors import UsageError
from communitree_workers.cluster.adopt import adopt
from communitree_workers.corpus.export import export
from communitree_workers.corpus.graph_import import read_graph
from communitree_workers.tables.io import Tables
from support import graph_tables as old


def imported(files: dict[str, bytes]) -> Tables:
    graph = read_graph(files, IndexOptions())
    assert graph.communities is not None
    assert graph.reports is not None
    kept = adopt(graph.tables, graph.communities)
    return {**graph.tables, **kept.tables, "communities": kept.communities, "community_reports": graph.reports}


@pytest.mark.parametrize("fmt", ["graphrag", "graphrag-only"])
@pytest.mark.parametrize("files", [old.generation_0, old.generation_1, old.generation_2, old.generation_3], ids="0123")
def test_an_imported_index_exported_and_imported_again_is_equal(files, fmt) -> None:  # type: ignore[no-untyped-def]
    tables = imported(files())
    again = imported(dict(export(tables, fmt)))
    assert [name for name in tables if not tables[name].equals(again[name])] == []


@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_damaged_tables_are_equal_too_after_one_import(seed: int) -> None:
    rng = random.Random(seed)
    files = old.tables_3()
    ids = {name: [row["id"] for row in rows] + ["lost"] for name, rows in files.items()}
    titles = [row["title"] for row in files["entities"]] + ["alice", " bob", "new", "New"]
    for _ in range(rng.randint(1, 8)):
        ends = {"source": rng.choice(titles), "target": rng.choice(titles)}
        more = {"weight": rng.choice([None, 0.0, -1.0, 3.3]), "text_unit_ids": [rng.choice(ids["text_units"])]}
        files["relationships"].append({"id": f"x{rng.random()}", **ends, **more})
    for row in files["communities"]:
        if rng.random() < 0.5:
            row["entity_ids"] = rng.sample(ids["entities"], rng.randint(0, 4))
            row["relationship_ids"] = rng.sample(ids["relationships"], rng.randint(0, 3))
    for name in ("documents", "covariates"):
        if rng.random() < 0.3:
            del files[name]
    tables = imported({f"{name}.parquet": old.parquet(rows) for name, rows in files.items()})
    kept = set(tables["communities"]["community"].to_pylist())
    again = imported(dict(export(tables, "all")))
    assert [name for name in tables if not tables[name].equals(again[name])] == []
    assert set(again["communities"]["community"].to_pylist()) == kept


def test_columns_and_types() -> None:
    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "list[str]": pa.list_(pa.string())}
    tables = imported(old.generation_3())
    for fmt, columns in (("graphrag", COLUMNS), ("graphrag-only", GRAPHRAG_COLUMNS)):
        files = dict(export(tables, fmt))  # type: ignore[arg-type]
        assert sorted(files) == sorted(f"{name}.parquet" for name in COLUMNS)
        for name in COLUMNS:
            schema = pq.read_schema(io.BytesIO(files[f"{name}.parquet"]))
            assert schema.names == list(columns[name])
            for column, kind in columns[name].items():
                field = schema.field(column)
                if kind in kinds and not kind.startswith("list"):
                    assert field.type == kinds[kind]
                elif kind == "list[str]":
                    assert field.type.value_type == pa.string()


def test_the_tree() -> None:
    files = dict(export(imported(old.generation_3()), "tree"))
    assert list(files) == ["tree.json"]
    tree = orjson.loads(files["tree.json"])
    assert tree["levels"] == {"0": 2, "1": 2}
    first, second = tree["roots"]
    assert (first["id"], first["title"], first["summary"]) == (0, "Title 0", "Summary 0")
    assert [child["id"] for child in first["children"]] == [2, 3]
    assert "children" not in second
    assert [entity["title"] for entity in second["entities"]] == ["甲", "FRANK"]
    assert first["size"] == sum(child["size"] for child in first["children"])


def test_no_claims_no_file_and_no_other_formats() -> None:
    tables = imported(old.generation_3())
    tables["covariates"] = tables["covariates"].slice(0, 0)
    assert "covariates.parquet" not in dict(export(tables))
    assert "tree.json" in dict(export(tables))
    with pytest.raises(UsageError, match="graphml"):
        list(export(tables, "graphml"))  # type: ignore[arg-type]
