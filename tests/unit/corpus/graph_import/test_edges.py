"""Edge ends, parallel edges, plain edge lists, and ids that are doubled or lead nowhere."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import IndexOptions
from communitree_workers.corpus.graph_import import Imported, read_graph
from communitree_workers.tables.check import check_tables
from support import graph_tables as old


def graph_of(files: dict[str, Any]) -> Imported:
    graph = read_graph(files, IndexOptions())
    assert check_tables(graph.tables) == []
    return graph


def entities(graph: Imported) -> dict[str, dict[str, Any]]:
    return {row["title"]: row for row in graph.tables["entities"].to_pylist()}


def edges(graph: Imported) -> list[tuple[str, str, float]]:
    rows = graph.tables["relationships"].to_pylist()
    return [(row["source"], row["target"], row["weight"]) for row in rows]


def test_a_table_in_the_encoding_of_a_chinese_spreadsheet_is_read_and_said() -> None:
    graph = graph_of({"edges.csv": "source,target,weight\n贾宝玉,林黛玉,2\n林黛玉,薛宝钗,1\n".encode("gb18030")})
    assert edges(graph) == [("林黛玉", "薛宝钗", 1.0), ("贾宝玉", "林黛玉", 2.0)]
    assert "edges.csv was read as gb18030." in graph.notes


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("edges.csv", b"source,target,weight\nA,B,2\nB,C,0.5\n"),
        ("my graph.csv", "\ufeffSource;Target;Weight\nA;B;2\nB;C;.5\n".encode()),
        ("utf16.csv", "source,target,weight\nA,B,2\nB,C,0.5\n".encode("utf-16")),
        ("x.tsv", b"from\tto\tweight\nA\tB\t2\nB\tC\t5e-1\n"),
        ("x.jsonl", b'{"source": "A", "target": "B", "weight": 2}\n\n{"source": "B", "target": "C", "weight": "0.5"}'),
        ("x.json", b'[{"src": "A", "dst": "B", "weight": 2}, {"src": "B", "dst": "C", "weight": 0.5}]'),
        ("x.parquet", old.parquet([{"source": "A", "target": "B", "weight": 2}, {"source": "B", "target": "C",
                                    "weight": 0.5}])),
    ],
)  # fmt: skip
def test_an_edge_list_is_a_graph(file: str, data: bytes) -> None:
    graph = graph_of({file: data})
    assert edges(graph) == [("A", "B", 2.0), ("B", "C", 0.5)]
    assert [(e["title"], e["type"], e["degree"]) for e in entities(graph).values()] == [
        ("A", "", 1), ("B", "", 2), ("C", "", 1),
    ]  # fmt: skip
    assert "4 edge ends named no entity: 3 entities were made." in graph.notes
    assert "The tables have no text units: the evidence of an entity is its own row." in graph.notes


def test_an_edge_list_is_taken_to_the_letter_and_may_lack_weights() -> None:
    graph = graph_of({"edges.csv": b"source,target\n1,a\na,A\n"})
    assert set(entities(graph)) == {"1", "a", "A"}
    assert {edge[2] for edge in edges(graph)} == {1.0}
    assert "2 relationships of edges.csv have no weight column and weigh 1." in graph.notes


def test_a_file_with_ends_is_no_edge_list_beside_a_relationships_table() -> None:
    graph = graph_of({"planted.csv": b"source,target\nX,Y\n", "edges.csv": b"source,target\nA,B\n"})
    assert set(entities(graph)) == {"A", "B"}
    assert "Ignored, as no table that is known: planted.csv." in graph.notes


def test_ends_are_matched_by_spelling_else_they_become_entities() -> None:
    table = [{"id": i, "title": t} for i, t in enumerate(["ALICE", "BOB & CO", "甲", '"DORA"', "O'HARA"])]
    pairs = [("Alice", "bob &amp;  co"), ("甲 ", "ＡＬＩＣＥ"), ("Dora", "O’Hara"), ("eve", "EVE "), ("2", "ALICE")]
    rows = [{"source": a, "target": b, "text_unit_ids": ["t9"]} for a, b in pairs]
    graph = graph_of({"entities.parquet": old.parquet(table), "relationships.parquet": old.parquet(rows)})
    assert sorted(tuple(sorted(edge[:2])) for edge in edges(graph)) == sorted(
        tuple(sorted(pair)) for pair in [("ALICE", "BOB & CO"), ("甲", "ALICE"), ('"DORA"', "O'HARA"), ("EVE ", "EVE ")]
    )
    assert entities(graph)["ALICE"]["aliases"] == ["Alice", "ＡＬＩＣＥ"]
    assert entities(graph)["EVE "]["aliases"] == ["eve"]
    assert entities(graph)["EVE "]["text_unit_ids"] == ["t9"]
    assert any(note.startswith("6 edge ends matched an entity by normalised title only") for note in graph.notes)
    assert "2 edge ends named no entity: 1 entity was made." in graph.notes
    assert "1 edge end named an entity by its id, not its title." in graph.notes


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_parallel_and_reversed_edges_are_summed_alike_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    weights = [round(rng.uniform(0, 1), rng.randint(1, 9)) for _ in range(9)]
    rows = [
        {"source": "AB"[i % 2], "target": "BA"[i % 2], "weight": w, "description": f"d{i % 3}",
         "text_unit_ids": [f"t{i % 4}"]}
        for i, w in enumerate(weights)
    ]  # fmt: skip
    first = graph_of({"edges.parquet": old.parquet([*rows, {"source": "B", "target": "C", "weight": 0.1}])})
    rng.shuffle(rows)
    again = graph_of({"edges.parquet": old.parquet([{"source": "B", "target": "C", "weight": 0.1}, *rows])})
    assert first.tables["relationships"].equals(again.tables["relationships"])
    row = first.tables["relationships"].to_pylist()[0]
    assert row["weight"] == sum(round(w * 1e6) for w in weights) / 1e6
    assert row["text_unit_ids"] == ["t0", "t1", "t2", "t3"]
    assert sorted(row["description"].splitlines()) == ["d0", "d1", "d2"]
    assert "8 parallel or reversed relationships were united with the first: weights summed." in first.notes


def test_merged_relationships_are_followed_by_everything_that_named_them() -> None:
    files = old.tables_3()
    files["relationships"].append(
        {**files["relationships"][0], "id": "r9", "human_readable_id": 9, "source": "BOB", "target": "ALICE"}
    )
    files["communities"][2]["relationship_ids"] = ["r9"]
    files["text_units"][3]["relationship_ids"] = ["r9"]
    graph = graph_of({f"{name}.parquet": old.parquet(rows) for name, rows in files.items()})
    assert graph.communities is not None
    assert graph.communities["relationship_ids"].to_pylist()[2] == ["r0"]
    assert graph.tables["text_units"]["relationship_ids"].to_pylist()[3] == ["r0"]
    assert graph.tables["relationships"]["weight"].to_pylist()[0] == 5.0


def test_doubled_ids_and_titles_are_handled_and_counted() -> None:
    table = [
        {"id": "1", "title": "A", "description": "one", "text_unit_ids": ["t0"]},
        {"id": "1", "title": "A", "description": "two", "text_unit_ids": ["t1"]},
        {"id": "1", "title": "B", "description": "", "text_unit_ids": []},
        {"id": "3", "title": "B", "description": "", "text_unit_ids": []},
        {"id": "", "title": "C", "description": "", "text_unit_ids": None},
        {"id": "5", "title": "", "description": "", "text_unit_ids": None},
    ]
    rows = [{"id": "r", "source": "A", "target": "B"}, {"id": "r", "source": "B", "target": "C"}]
    graph = graph_of({"entities.parquet": old.parquet(table), "relationships.parquet": old.parquet(rows)})
    found = graph.tables["entities"].to_pylist()
    assert sorted(row["title"] for row in found) == ["5", "A", "B", "B", "C"]
    first = next(row for row in found if row["title"] == "A")
    assert (first["id"], first["description"], first["text_unit_ids"]) == ("1", "one\ntwo", ["t0", "t1"])
    assert len({row["id"] for row in graph.tables["relationships"].to_pylist()}) == 2
    assert graph.warnings == [
        "1 entity without a title is shown by id.",
        "1 entity row repeated an id and title and was united with the first.",
        "1 entity had the id of another one and got a new id: B.",
        "1 relationship had the id of another one and got a new id.",
    ]
    assert any(note.startswith("1 entity had the title") for note in graph.notes)


def test_ids_that_lead_nowhere_are_dropped_and_counted() -> None:
    files = old.tables_3()
    files["entities"][0]["text_unit_ids"] = ["t0", "lost"]
    files["relationships"][0]["text_unit_ids"] = ["lost", "t3"]
    files["text_units"][0]["entity_ids"] = ["a", "b", "gone"]
    files["text_units"][0]["document_id"] = "d9"
    files["covariates"][0]["text_unit_id"] = "lost"
    files["documents"][0]["text_unit_ids"] = ["t0", "t1", "lost"]
    graph = graph_of({f"{name}.parquet": old.parquet(rows) for name, rows in files.items()})
    assert graph.warnings == [
        "1 reference of documents to unknown text units was dropped.",
        "1 reference of entities to unknown text units was dropped.",
        "1 reference of text units to unknown entities was dropped.",
        "1 reference of relationships to unknown text units was dropped.",
    ]
    claim = graph.tables["covariates"].to_pylist()[0]
    assert claim["text_unit_id"] == "t0", "the text unit that names the claim"
    assert "1 document was made, without text, because text units name them." in graph.notes
    assert [d["id"] for d in graph.tables["documents"].to_pylist()] == ["d0", "d1", "d9"]


def test_no_relationships_at_all() -> None:
    files = old.generation_3()
    graph = graph_of({name: files[name] for name in ("entities.parquet", "text_units.parquet")})
    assert graph.tables["relationships"].num_rows == 0
    assert graph.tables["entities"].num_rows == 7


def test_a_count_of_one_has_a_sentence_of_its_own() -> None:
    for n, said in ((1, "1 edge end named no entity"), (2, "2 edge ends named no entity")):
        files = {
            "entities.csv": b"title\nA\n",
            "edges.csv": f"source,target\nA,{'A' if n == 1 else 'C'}\nA,B\n".encode(),
        }
        assert any(note.startswith(said) for note in graph_of(files).notes), n
