"""Every generation of GraphRAG's tables, and every format, gives the same index."""

from __future__ import annotations

import io
import random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ClusterOptions, IndexOptions
from communitree_workers.cluster.adopt import adopt
from communitree_workers.corpus.graph_import import Imported, read_graph
from communitree_workers.tables.check import check_tables
from communitree_workers.tables.io import Tables, schema
from support import graph_tables as old

GENERATIONS = {
    "0.x": old.generation_0,
    "1.x": old.generation_1,
    "2.x": old.generation_2,
    "3.x": old.generation_3,
    "csv": lambda: old.as_csv(old.tables_3(), numpy_lists=False),
    "csv of numpy arrays": lambda: old.as_csv(old.tables_3(), numpy_lists=True),
    "jsonl": lambda: old.as_jsonl(old.tables_3()),
}


def imported(files: Any) -> tuple[Tables, Imported]:
    graph = read_graph(files, IndexOptions())
    assert graph.communities is not None
    kept = adopt(graph.tables, graph.communities)
    tables = {**graph.tables, **kept.tables, "communities": kept.communities}
    return tables | ({"community_reports": graph.reports} if graph.reports is not None else {}), graph


def core(tables: Tables) -> dict[str, Any]:
    """What every generation can say."""
    keep = {
        "documents": ["id", "title", "text", "text_unit_ids"],
        "text_units": ["id", "text", "n_tokens", "document_id", "entity_ids", "relationship_ids", "covariate_ids"],
        "entities": ["id", "human_readable_id", "title", "type", "description", "text_unit_ids", "degree", "frequency"],
        "relationships": ["id", "human_readable_id", "source", "target", "weight", "text_unit_ids", "source_id"],
        "covariates": ["id", "human_readable_id", "subject_id", "start_date", "end_date", "entity_id", "text_unit_id"],
        "communities": ["community", "level", "parent", "children", "title", "entity_ids", "relationship_ids", "size"],
        "community_reports": ["id", "community", "title", "summary", "rank", "rating_explanation", "findings"],
    }
    found: dict[str, Any] = {name: tables[name].select(columns).to_pylist() for name, columns in keep.items()}
    for row in found["communities"]:
        row["entity_ids"].sort()
    return found


@pytest.mark.parametrize("name", GENERATIONS)
def test_all_generations_give_the_same_index(name: str) -> None:
    expected, _ = imported(old.generation_3())
    tables, graph = imported(GENERATIONS[name]())
    assert core(tables) == core(expected)
    assert check_tables(tables) == []
    assert graph.warnings == []
    for table, rows in tables.items():
        assert rows.schema == schema(table)


def test_what_the_example_holds() -> None:
    tables, graph = imported(old.generation_0())
    communities = {row["community"]: row for row in tables["communities"].to_pylist()}
    assert communities[0]["children"] == [2, 3]
    assert (communities[2]["parent"], communities[2]["entity_ids"]) == (0, ["a", "b"])
    assert tables["community_reports"]["generated_by"].to_pylist() == ["imported"] * 4
    claims = {row["id"]: row["entity_id"] for row in tables["covariates"].to_pylist()}
    assert claims == {"c0": "a", "c1": ""}
    assert any("create_base_entity_graph.parquet" in note and "stats.json" in note for note in graph.notes)


@settings(max_examples=6)
@given(st.integers(0, 2**32))
def test_row_order_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    tables = {name: rng.sample(rows, len(rows)) for name, rows in old.tables_3().items()}
    drop = rng.random() < 0.5
    for rows in tables.values():
        for row in rows:
            if drop and "community" not in row:
                row.pop("human_readable_id", None)
    found, _ = imported({f"{name}.parquet": old.parquet(rows) for name, rows in tables.items()})
    if drop:
        expected, _ = imported(
            {
                f"{name}.parquet": old.parquet(
                    [{k: v for k, v in r.items() if k != "human_readable_id" or "community" in r} for r in rows]
                )
                for name, rows in old.tables_3().items()
            }
        )
    else:
        expected, _ = imported(old.generation_3())
    assert all(found[name].equals(expected[name]) for name in expected)


def test_integer_ids_categories_and_paths_or_openers_do_as_well(tmp_path: Any) -> None:
    entities = pd.DataFrame({"id": [1, 2, 3], "title": ["A", "B", "C"], "text_unit_ids": [[10], [10, 11], None]})
    entities["type"] = pd.Series(["x", "y", None], dtype="category")
    edges = pd.DataFrame({"id": [7, 8], "source": ["A", "B"], "target": ["B", "C"], "weight": [1, float("nan")]})
    units = pd.DataFrame({"id": [10.0, 11.0], "text": ["one", "two"], "n_tokens": [None, 3]})
    entities.to_parquet(tmp_path / "entities.parquet")
    files = {
        "entities.parquet": tmp_path / "entities.parquet",
        "relationships.parquet": lambda: io.BytesIO(edges.to_parquet()),
        "text_units.parquet": units.to_parquet(),
    }
    graph = read_graph(files, IndexOptions())  # type: ignore[arg-type]
    assert graph.tables["entities"]["id"].to_pylist() == ["1", "2", "3"]
    assert graph.tables["entities"]["text_unit_ids"].to_pylist() == [["10"], ["10", "11"], []]
    assert graph.tables["entities"]["type"].to_pylist() == ["x", "y", ""]
    assert graph.tables["text_units"]["n_tokens"].to_pylist() == [1, 3]
    assert graph.tables["relationships"]["weight"].to_pylist() == [1.0, 1.0]
    assert graph.warnings == ["1 relationship without a weight weighs 1."]
    assert graph.communities is None
    assert graph.reports is None


def test_recluster_leaves_the_tree_out() -> None:
    graph = read_graph(old.generation_1(), IndexOptions(cluster=ClusterOptions(recluster=True)))
    assert (graph.communities, graph.reports) == (None, None)
    assert any("built anew" in note for note in graph.notes)


def test_documents_and_text_units_are_made_from_the_ids_that_name_them() -> None:
    files = old.generation_2()
    del files["documents.parquet"]
    graph = read_graph(files, IndexOptions())
    made = graph.tables["documents"].to_pylist()
    assert [(d["id"], d["title"], d["n_tokens"]) for d in made] == [("d0", "d0", 8), ("d1", "d1", 8)]
    assert [d["text_unit_ids"] for d in made] == [["t0", "t1"], ["t2", "t3"]]
    del files["text_units.parquet"]
    graph = read_graph(files, IndexOptions())
    assert graph.tables["text_units"]["id"].to_pylist() == ["t0", "t1", "t2", "t3"]
    assert check_tables(graph.tables) == []
    assert any(note.startswith("4 text units are known by id only") for note in graph.notes)


def test_communities_from_a_nodes_table_alone() -> None:
    files = old.generation_0()
    for name in ("communities", "entities"):
        del files[f"create_final_{name}.parquet"]
    tables, graph = imported(files)
    found = [
        (c["community"], c["level"], c["parent"], sorted(c["entity_ids"])) for c in tables["communities"].to_pylist()
    ]
    assert found == [(n, row[0], row[1], sorted(row[3])) for n, row in sorted(old.COMMUNITIES.items())]
    assert any("made from the nodes table" in note for note in graph.notes)


def test_reports_without_communities_are_left_out_and_said() -> None:
    files = old.generation_3()
    del files["communities.parquet"]
    graph = read_graph(files, IndexOptions())
    assert graph.reports is None
    assert "4 reports were left out: there is no communities table that they belong to." in graph.warnings


def test_reports_on_unknown_communities_are_left_out_and_said() -> None:
    tables = old.tables_3()
    tables["community_reports"][0]["community"] = 4242
    graph = read_graph({f"{name}.parquet": old.parquet(rows) for name, rows in tables.items()}, IndexOptions())
    assert "1 report on unknown communities was left out: 4242." in graph.warnings


def test_reports_come_in_many_shapes() -> None:
    files = old.generation_3()
    rows: list[dict[str, Any]] = [
        {"community": "0", "title": "T", "summary": "S", "rank": "7.5", "findings": '[{"summary": "s"}, "plain"]'},
        {"community": "1", "title": "U", "summary": "V", "rank": "", "findings": "just a text"},
        {"community": "1", "title": "U again", "summary": "V", "rank": None, "findings": None},
    ]
    graph = read_graph({**files, "community_reports.parquet": old.parquet(rows)}, IndexOptions())
    assert graph.reports is not None
    first, second = graph.reports.to_pylist()
    assert first["findings"] == [{"summary": "s", "explanation": ""}, {"summary": "plain", "explanation": ""}]
    assert first["full_content"] == "# T\n\nS\n\ns\n\nplain"
    assert (first["rank"], second["rank"]) == (7.5, None)
    assert second["findings"][0]["summary"] == "just a text"
    assert graph.warnings == ["1 second report on a community was left out."]
