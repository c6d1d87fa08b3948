"""The tree of any corpus: whole, sound, and the same for any order of rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import COMMUNITIES, COVARIATES, ENTITIES, RELATIONSHIPS, TEXT_UNITS
from communitree_shared.errors import IntegrityError
from communitree_workers.cluster import prepared
from communitree_workers.cluster.checks import check_tree
from communitree_workers.cluster.core import build
from communitree_workers.tables.io import Tables, empty, from_rows, schema
from communitree_workers.tables.keys import community_keys
from communitree_workers.tables.mass import entity_mass
from support.graphs import clique, corpora, corpus, faults_of, rows_of, shuffled

SMALL = ClusterOptions(max_cluster_size=4)


@given(corpora(), st.sampled_from([2, 4, 10]), st.integers(0, 3))
@settings(max_examples=30)
def test_every_entity_and_text_unit_has_its_place(tables: Tables, size: int, seed: int) -> None:
    made = build(tables, ClusterOptions(max_cluster_size=size, seed=seed))
    whole = {**made.tables, COMMUNITIES: made.communities}
    assert faults_of(whole) == []
    assert check_tree(whole) == []
    assert made.stats.coverage.entities == made.stats.coverage.text_units == 1.0
    assert made.communities.schema.equals(schema(COMMUNITIES))
    given_ids = set(tables[ENTITIES]["id"].to_pylist())
    assert given_ids <= set(made.tables[ENTITIES]["id"].to_pylist())
    keys = community_keys(made.communities["entity_ids"])
    assert keys.to_pylist() == made.communities["key"].to_pylist()
    assert made.communities["community"].to_pylist() == list(range(made.communities.num_rows))
    order = [(row["level"], -row["size"]) for row in rows_of(made.communities)]
    assert order == sorted(order)


@given(corpora(), st.integers(0, 1000))
@settings(max_examples=30)
def test_row_order_and_edge_direction_change_nothing(tables: Tables, seed: int) -> None:
    one, other = build(tables, SMALL), build(shuffled(tables, seed), SMALL)
    assert one.communities.equals(other.communities)
    assert one.stats == other.stats
    for name in (ENTITIES, TEXT_UNITS):
        ordered = [t.tables[name].sort_by("id") for t in (one, other)]
        assert ordered[0].equals(ordered[1])


@given(corpora())
@settings(max_examples=10)
def test_reading_relationships_in_slices_changes_nothing(tables: Tables) -> None:
    whole = build(tables, SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "_ROWS", 3)
        assert build(tables, SMALL).communities.equals(whole.communities)


@given(corpora())
@settings(max_examples=15)
def test_mass_is_the_one_that_everyone_else_computes(tables: Tables) -> None:
    if not any(tables[ENTITIES]["text_unit_ids"].to_pylist()):
        return  # then rows stand for themselves, `document` entities or not
    made = build(tables, SMALL)
    assert made.tables[ENTITIES]["mass"].to_pylist() == entity_mass(made.tables).tolist()


@pytest.mark.slow
@given(corpora(most=60), st.integers(2, 12), st.integers(0, 2**32))
@settings(max_examples=1000)
def test_a_thousand_graphs_lose_nothing(tables: Tables, size: int, seed: int) -> None:
    made = build(tables, ClusterOptions(max_cluster_size=size, seed=seed))
    assert check_tree({**made.tables, COMMUNITIES: made.communities}) == []
    assert set(tables[ENTITIES]["id"].to_pylist()) <= set(made.tables[ENTITIES]["id"].to_pylist())


def test_nothing_at_all_gives_no_communities() -> None:
    made = build({}, ClusterOptions())
    assert made.communities.num_rows == 0
    assert made.communities.schema.equals(schema(COMMUNITIES))
    assert made.stats.levels == {}
    assert check_tree({**made.tables, COMMUNITIES: made.communities}) == []


def test_one_entity_is_a_small_tree() -> None:
    made = build(corpus(["A"]), ClusterOptions())
    assert [(row["kind"], row["entity_ids"], row["is_leaf"]) for row in rows_of(made.communities)] == [
        ("residual", ["id-A"], True)
    ]


def test_text_without_entities_is_held_by_document_entities() -> None:
    made = build(corpus([], text=[("d1", []), ("d1", []), ("d2", [])]), ClusterOptions())
    added = made.tables[ENTITIES].to_pylist()
    assert [(e["type"], e["title"], e["text_unit_ids"]) for e in added] == [
        ("document", "d1.txt [1–2]", ["t000", "t001"]),
        ("document", "d2.txt [1]", ["t002"]),
    ]
    root, *children = rows_of(made.communities)
    assert root["kind"] == "residual"
    assert root["weight"] == 3
    assert [child["kind"] for child in children] == ["documents", "documents"]
    units = made.tables[TEXT_UNITS].to_pylist()
    assert [u["entity_ids"] for u in units] == [[added[0]["id"]], [added[0]["id"]], [added[1]["id"]]]


def test_titles_are_labels_and_case_loses_nobody() -> None:
    names = ["ALICE", "BOB", "Carol", "Dave"]
    made = build(corpus(names, [(a, b, 1.0) for a, b in pairwise(names)]), ClusterOptions())
    root = rows_of(made.communities)[0]
    assert sorted(root["entity_ids"]) == sorted(f"id-{n}" for n in names)
    assert len(root["relationship_ids"]) == 3


def test_two_cliques_and_a_lone_entity() -> None:
    one, other = [f"A{i}" for i in range(6)], [f"B{i}" for i in range(5)]
    text = [("d", [*one]), ("d", other), ("e", ["C"]), ("e", ["A0"])]
    made = build(corpus([*one, *other, "C"], clique(one) + clique(other), text), ClusterOptions())
    roots = [set(row["entity_ids"]) for row in rows_of(made.communities) if row["level"] == 0]
    assert {f"id-{n}" for n in other} in roots
    assert {f"id-{n}" for n in [*one, "C"]} in roots  # nearest text unit of C's document


def test_edges_of_no_use_keep_their_community() -> None:
    names = [f"N{i}" for i in range(4)]
    for weight in (0.0, None, float("nan"), -1.0, float("-inf")):
        made = build(corpus(names, [(a, b, weight) for a, b, _ in clique(names)]), ClusterOptions())
        assert rows_of(made.communities)[0]["size"] == 4
        assert any("6 of 6 relationships have no usable weight" in w for w in made.stats.warnings)


def test_parallel_and_reversed_edges_are_added_up() -> None:
    names = ["A", "B", "C", "D"]
    light = [("A", "B", 1.0), ("C", "D", 1.0), ("B", "C", 1.0)]
    heavy = [*light, ("C", "B", 50.0)]
    options = ClusterOptions(max_cluster_size=3)
    for edges in (heavy, heavy[::-1]):
        made = build(corpus(names, edges), options)
        leaves = [set(r["entity_ids"]) for r in rows_of(made.communities) if r["is_leaf"]]
        assert any({"id-B", "id-C"} <= leaf for leaf in leaves)
        assert sum(len(r["relationship_ids"]) for r in rows_of(made.communities) if r["level"] == 0) == 4
    plain = build(corpus(names, light), options)
    assert not any({"id-B", "id-C"} <= set(r["entity_ids"]) for r in rows_of(plain.communities) if r["is_leaf"])


def test_a_star_stays_an_oversize_leaf_and_is_flagged() -> None:
    star = [("hub", f"ray{i:02d}", 1.0) for i in range(30)]
    made = build(corpus(["hub", *(f"ray{i:02d}" for i in range(30))], star), ClusterOptions())
    assert [(r["size"], r["is_leaf"], r["oversize"]) for r in rows_of(made.communities)] == [(31, True, True)]
    assert made.stats.oversize_leaves == 1
    assert made.stats.oversize_max == 31


def test_relationships_between_roots_are_counted() -> None:
    one, other = [f"A{i}" for i in range(8)], [f"B{i}" for i in range(8)]
    tables = corpus([*one, *other], [*clique(one), *clique(other), ("A0", "B0", 0.1)])
    coverage = build(tables, ClusterOptions()).stats.coverage
    assert coverage.between_roots == 1
    assert coverage.relationships == 56 / 57


def test_claims_go_where_their_entity_is() -> None:
    names = [f"N{i:02d}" for i in range(24)]
    tables = corpus(names, clique(names[:12]) + clique(names[12:]), covariates=["N00", "N13", "N00"])
    for row in rows_of(build(tables, SMALL).communities):
        expected = [c for c, n in (("c000", "N00"), ("c001", "N13"), ("c002", "N00")) if f"id-{n}" in row["entity_ids"]]
        assert row["covariate_ids"] == expected


def test_use_lcc_says_what_it_leaves_out() -> None:
    names = [f"A{i}" for i in range(6)]
    tables = corpus([*names, "X", "Y"], [*clique(names), ("X", "Y", 1.0)], [("d", names), ("d", ["X"]), ("d", [])])
    made = build(tables, ClusterOptions(use_lcc=True))
    assert made.stats.coverage.entities == 6 / 8
    assert made.stats.coverage.text_units == 1 / 3
    assert any(w.startswith("2 entities are outside the largest component, 2 text units") for w in made.stats.warnings)
    assert made.tables[ENTITIES].num_rows == 8
    whole = {**made.tables, COMMUNITIES: made.communities}
    assert check_tree(whole, whole=False) == []
    assert len(check_tree(whole)) == 2


def test_entities_and_text_units_name_each_other() -> None:
    tables = corpus(["A", "B"], text=[("d", ["A"]), ("d", ["B"])])
    units = tables[TEXT_UNITS].to_pylist()
    units[0]["entity_ids"], units[1]["entity_ids"] = ["id-B", "nobody"], []
    entities = tables[ENTITIES].to_pylist()
    entities[0]["text_unit_ids"] = ["t000", "t000", "gone"]
    made = build({**tables, ENTITIES: from_rows(ENTITIES, entities), TEXT_UNITS: from_rows(TEXT_UNITS, units)}, SMALL)
    assert made.tables[ENTITIES]["text_unit_ids"].to_pylist() == [["t000"], ["t000", "t001"]]
    assert made.tables[TEXT_UNITS]["entity_ids"].to_pylist() == [["id-A", "id-B"], ["id-B"]]
    assert len(made.stats.warnings) == 2


def test_edges_that_name_nobody_are_counted_and_hold_nothing() -> None:
    made = build(corpus(["A", "B"], [("A", "B", 1.0), ("A", "Z", 1.0)]), ClusterOptions())
    assert rows_of(made.communities)[0]["relationship_ids"] == ["r000"]
    assert any(w.startswith("1 relationships name an entity that is not in the table") for w in made.stats.warnings)


def test_an_end_id_wins_over_its_title() -> None:
    tables = corpus(["A", "B", "C"], [("A", "B", 1.0)])
    row = {**tables[RELATIONSHIPS].to_pylist()[0], "source_id": "id-C", "target_id": ""}
    made = build({**tables, RELATIONSHIPS: from_rows(RELATIONSHIPS, [row])}, ClusterOptions())
    edge = made.tables[RELATIONSHIPS].to_pylist()[0]
    assert (edge["source_id"], edge["target_id"], edge["combined_degree"]) == ("id-C", "id-B", 2)
    assert made.tables[ENTITIES]["degree"].to_pylist() == [0, 1, 1]


@pytest.mark.parametrize("name", [ENTITIES, RELATIONSHIPS, TEXT_UNITS, COVARIATES])
def test_an_id_that_stands_twice_is_refused_by_name(name: str) -> None:
    tables = corpus(["A", "B"], [("A", "B", 1.0)], [("d", ["A"])], ["A"])
    doubled = pa.concat_tables([tables[name], tables[name]])
    with pytest.raises(IntegrityError, match=f"^{name}: the id '"):
        build({**tables, name: doubled}, ClusterOptions())


def test_modularity_of_a_level_is_newmans() -> None:
    one, other = [f"A{i}" for i in range(5)], [f"B{i}" for i in range(5)]
    made = build(corpus([*one, *other], [*clique(one), *clique(other), ("A0", "B0", 1.0)]), ClusterOptions())
    roots = [r for r in rows_of(made.communities) if r["level"] == 0]
    assert len(roots) == 2
    assert made.stats.modularity["0"] == pytest.approx(20 / 21 - 2 * 0.5**2)


def test_tables_without_own_columns_are_taken() -> None:
    entities = pa.table({"id": ["1", "2"], "title": ["A", "B"]})
    relationships = pa.table({"id": ["r"], "source": ["A"], "target": ["B"]})
    made = build({ENTITIES: entities, RELATIONSHIPS: relationships}, ClusterOptions())
    assert rows_of(made.communities)[0]["size"] == 2
    assert made.tables[TEXT_UNITS].equals(empty(TEXT_UNITS))
    assert np.array_equal(made.tables[ENTITIES]["mass"], [1_000_000, 1_000_000])
