"""Trees that imported tables bring: kept, mended where broken, their gaps stated."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from communitree_shared.contract.tables import ENTITIES, MASS_SCALE
from communitree_workers.cluster.adopt import Adopted, adopt
from communitree_workers.tables.check import check_tables
from communitree_workers.tables.handover import Listed
from communitree_workers.tables.io import Tables
from support.kept_trees import communities, frontier, graph, levels_count


def sound(tables: Tables, table: pa.Table) -> Adopted:
    """Adopt, and check what must hold whatever came in."""
    found = adopt(tables, table)
    assert check_tables({**tables, **found.tables, "communities": found.communities}) == []
    rows = {row["community"]: row for row in found.communities.to_pylist()}
    assert len({row["title"] for row in rows.values()}) == len(rows)
    for row in rows.values():
        members = set(row["entity_ids"])
        assert members
        assert row["size"] == len(members)
        assert row["is_leaf"] == (not row["children"])
        if row["children"]:
            assert members == {e for child in row["children"] for e in rows[child]["entity_ids"]}
        if row["parent"] >= 0:
            assert row["level"] == rows[row["parent"]]["level"] + 1
            assert row["community"] in rows[row["parent"]]["children"]
    return found


def by_number(found: Adopted) -> dict[int, dict[str, Any]]:
    return {row["community"]: row for row in found.communities.to_pylist()}


def test_levels_and_frontier_of_a_small_tree() -> None:
    """Roots {a, b, c}, {d}; then {a, b}, {c}, {d}; then {a}, {b}: level 1 shows 5, or each entity once in 3."""
    tree = communities(
        [(0, 0, -1, "abc"), (1, 0, -1, "d"), (2, 1, 0, "ab"), (3, 1, 0, "c"), (4, 1, 1, "d"), (5, 2, 2, "a"),
         (6, 2, 2, "b")]
    )  # fmt: skip
    found = sound(graph("abcd"), tree).communities
    assert [levels_count(found, n) for n in range(3)] == [2, 5, 7]
    assert [len(frontier(found, n)) for n in range(3)] == [2, 3, 4]
    for n in range(3):
        assert sorted(e for row in frontier(found, n) for e in row["entity_ids"]) == list("abcd")


def test_figures_of_a_kept_tree() -> None:
    tables = graph("ABCDEF", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    found = sound(tables, communities([(7, 0, -1, "abc"), (9, 0, -1, "de"), (11, 1, 7, "ab"), (12, 1, 7, "c")]))
    rows = by_number(found)
    assert list(rows) == [7, 9, 11, 12]
    assert rows[7]["relationship_ids"] == ["r0", "r1"]
    assert rows[7]["children"] == [11, 12]
    assert rows[12]["text_unit_ids"] == ["t-b", "t-c"], "a relationship's text is both its ends'"
    assert rows[7]["mass"] + rows[9]["mass"] == sum(found.tables[ENTITIES]["mass"].to_pylist()[:5])
    assert sum(found.tables[ENTITIES]["mass"].to_pylist()) == 6 * MASS_SCALE
    told = found.stats.as_json()
    assert told["coverage"] == {
        "entities": 5 / 6, "relationships": 3 / 4, "text_units": 5 / 6, "between_roots": 1,
    }  # fmt: skip
    assert told["levels"] == {
        "0": {"communities": 2, "leaves": 1, "entities": 5, "size_max": 3},
        "1": {"communities": 2, "leaves": 2, "entities": 3, "size_max": 2},
    }
    assert found.stats.warnings == [
        "1 of 6 entities are in no community of the kept tree: F. --recluster builds a tree that holds all.",
        "1 of 6 text units are in no community of the kept tree. --recluster builds a tree that holds all.",
    ]
    assert told["not_held"] == {"count": 1, "ids": ["f"]}


def test_children_that_miss_members_get_a_remainder_that_levels_never_shows() -> None:
    found = sound(graph("abcde"), communities([(0, 0, -1, "abcde"), (1, 1, 0, "ab"), (2, 2, 1, "a")]))
    rows = by_number(found)
    assert [(n, rows[n]["kind"], rows[n]["entity_ids"], rows[n]["level"]) for n in (3, 4)] == [
        (3, "remainder", ["c", "d", "e"], 1),
        (4, "remainder", ["b"], 2),
    ]
    assert [levels_count(found.communities, n) for n in range(3)] == [1, 2, 3]
    again = sound(graph("abcde"), found.communities)
    assert again.communities.equals(found.communities)


def test_parents_that_are_unknown_are_found_by_their_members() -> None:
    rows = [(0, 0, None, "abcd"), (1, 0, None, "ef"), (2, 1, None, "ab"), (3, 1, 99, "cd"), (4, 1, 0, "ef"),
            (5, 1, 5, "f")]  # fmt: skip
    found = sound(graph("abcdef"), communities(rows, c4={"children": [17]}))
    assert {n: row["parent"] for n, row in by_number(found).items()} == {0: -1, 1: -1, 2: 0, 3: 0, 4: 1, 5: 1}
    assert "3 communities had no usable parent and were placed by their members." in found.stats.notes


def test_parents_get_the_members_of_their_children() -> None:
    found = sound(graph("abc"), communities([(0, 0, -1, "a"), (1, 1, 0, "ab"), (2, 2, 1, "bc")]))
    assert by_number(found)[0]["entity_ids"] == ["a", "b", "c"]
    assert "3 members of children were missing from a parent and were added to it." in found.stats.notes


def test_unknown_entities_are_rebuilt_from_relationship_ends_else_dropped() -> None:
    tables = graph("abcd", [("a", "b"), ("c", "d")])
    rows = [(0, 0, -1, ["gone", "lost"]), (1, 0, -1, ["c", "gone"]), (2, 0, -1, ["lost"]), (3, 1, 2, [])]
    found = sound(tables, communities(rows, c0={"relationship_ids": ["r0", "r7"]}))
    assert {n: row["entity_ids"] for n, row in by_number(found).items()} == {0: ["a", "b"], 1: ["c"]}
    assert found.stats.notes == [
        "4 references of communities to unknown entities were dropped.",
        "1 communities have members from the ends of their relationships.",
        "2 communities without any known entity were left out.",
    ]


def test_entities_known_only_as_ends_go_where_their_relationships_are() -> None:
    tables = graph("abcdx", [("a", "b"), ("b", "x"), ("c", "d")])
    rows = [(0, 0, -1, "ab"), (1, 0, -1, "cd"), (2, 1, 0, "ab")]
    more = {"c0": {"relationship_ids": ["r0", "r1"]}, "c2": {"relationship_ids": ["r1"]}}
    found = sound(tables, communities(rows, **more))
    assert by_number(found)[0]["entity_ids"] == by_number(found)[2]["entity_ids"] == ["a", "b", "x"]
    # 0.x lists the relationships that leave a community too: then nothing says where x belongs.
    more["c1"] = {"relationship_ids": ["r1"]}
    del more["c2"]
    assert by_number(sound(tables, communities(rows, **more)))[0]["entity_ids"] == ["a", "b"]


def test_overlapping_trees_are_both_kept_and_the_doubly_held_named() -> None:
    rows = [(0, 0, -1, "abc"), (1, 1, 0, "ab"), (2, 1, 0, "c"), (3, 0, -1, "cd"), (4, 1, 3, "c"), (5, 1, 3, "d")]
    found = sound(graph("abcd"), communities(rows))
    assert list(by_number(found)) == [0, 1, 2, 3, 4, 5]
    assert found.stats.held_twice == Listed(count=1, ids=["c"])
    assert found.stats.warnings[0].startswith("1 entities are held by two communities of one level")
    assert found.stats.warnings[0].endswith("update: C. --recluster builds one tree.")


def test_nothing_to_keep() -> None:
    found = adopt(graph("ab"), communities([(0, 0, -1, "a")]).slice(0, 0))
    assert found.communities.num_rows == 0
    assert found.stats.coverage.entities == 0.0
    assert found.stats.levels == {}


@settings(max_examples=40)
@given(st.integers(0, 2**32))
@example(5377)  # two parents that overlap miss the same members
def test_any_damage_leaves_a_sound_tree_that_adopts_to_itself(seed: int) -> None:
    rng = random.Random(seed)
    letters = "abcdefgh"[: rng.randint(1, 8)]
    edges = [(rng.choice(letters), rng.choice(letters)) for _ in range(rng.randint(0, 8))]
    tables = graph(letters, edges)
    rows = []
    for number in rng.sample(range(30), rng.randint(1, 8)):
        members = rng.sample([*letters, "gone"], rng.randint(0, len(letters)))
        rows.append((number, rng.randint(0, 3), rng.choice([None, -1, -1, rng.randint(0, 30)]), members))
    more = {
        f"c{row[0]}": {"relationship_ids": rng.sample([f"r{i}" for i in range(9)], rng.randint(0, 3))} for row in rows
    }
    table = communities(rows, **more)
    found = sound(tables, table)
    numbers = set(found.communities["community"].to_pylist())
    assert {row[0] for row in rows if set(row[3]) - {"gone"}} <= numbers
    for number, _, _, members in rows:
        if number in numbers:
            assert set(members) - {"gone"} <= set(by_number(found)[number]["entity_ids"])
    order = list(range(table.num_rows))
    rng.shuffle(order)
    assert adopt(tables, table.take(order)).communities.equals(found.communities)
    assert adopt(tables, found.communities).communities.equals(found.communities)
