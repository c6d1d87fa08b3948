"""Every broken rule is found, and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from communitree_shared.contract.options import ClusterOptions
from communitree_shared.contract.tables import COMMUNITIES, ENTITIES, TEXT_UNITS
from communitree_workers.cluster.checks import check_tree
from communitree_workers.cluster.core import build
from communitree_workers.tables.io import Tables, from_rows
from support.graphs import clique, corpus

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound() -> Tables:
    groups = [[f"{letter}{i:02d}" for i in range(20)] for letter in "AB"]
    edges = [
        (a, b, 1.0 + int(a[1:]) * int(b[1:]) % 7) for g in groups for a, b, _ in clique(g) if int(a[1:] + b[1:]) % 3
    ]
    names = [name for group in groups for name in group]
    text = [("d", names[:5]), ("d", names[5:]), ("e", []), ("e", [])]
    made = build(corpus(names, edges, text, ["A00"]), ClusterOptions(max_cluster_size=8))
    tables = {**made.tables, COMMUNITIES: made.communities}
    assert check_tree(tables) == []
    assert {0, 1} <= set(made.communities["level"].to_pylist())
    return tables


def inner(rows: Rows) -> dict[str, Any]:
    return next(row for row in rows if row["children"])


def child(rows: Rows) -> dict[str, Any]:
    return next(row for row in rows if row["level"] == 1)


def lose_a_member(rows: Rows) -> None:
    row = child(rows)
    row["entity_ids"] = row["entity_ids"][1:]


def gain_a_member(rows: Rows) -> None:
    one, other = [row for row in rows if row["level"] == 0 and row["children"]][:2]
    child_of = next(row for row in rows if row["parent"] == one["community"])
    child_of["entity_ids"] = [*child_of["entity_ids"], other["entity_ids"][0]]


def borrow_a_relationship(rows: Rows) -> None:
    row = child(rows)
    other = next(r for r in rows if r["level"] == 1 and r["parent"] != row["parent"])
    row["relationship_ids"] = [*row["relationship_ids"], other["relationship_ids"][0]]


def set_to(pick: Callable[[Rows], dict[str, Any]], **values: Any) -> Callable[[Rows], None]:
    return lambda rows: pick(rows).update(values)


FAULTS: list[tuple[str, Callable[[Rows], None]]] = [
    ("communities with the same number", set_to(child, community=0)),
    ("communities whose parent does not exist", set_to(child, parent=999)),
    ("roots that are not on level 0", set_to(inner, level=1)),
    ("communities that are not one level below", set_to(child, level=2)),
    ("communities with a child that does not exist", set_to(inner, children=[999])),
    ("communities with a child that names another parent", lambda rows: inner(rows)["children"].append(0)),
    ("children listed twice", lambda rows: inner(rows)["children"].append(inner(rows)["children"][0])),
    ("communities that their parent does not list", lambda rows: inner(rows)["children"].pop()),
    ("entities that are twice on level 0", lambda rows: inner(rows)["entity_ids"].append(inner(rows)["entity_ids"][0])),
    ("communities with entity_ids that do not exist", lambda rows: child(rows)["entity_ids"].append("nobody")),
    ("communities with relationship_ids that do not", lambda rows: child(rows)["relationship_ids"].append("none")),
    ("communities with text_unit_ids that do not exist", lambda rows: child(rows)["text_unit_ids"].append("none")),
    ("communities with covariate_ids that do not exist", lambda rows: child(rows)["covariate_ids"].append("none")),
    ("members of a parent that no child has", lose_a_member),
    ("members of a child that its parent does not have", gain_a_member),
    ("communities with a wrong size", set_to(child, size=1)),
    ("communities with a wrong is_leaf", set_to(inner, is_leaf=True)),
    ("communities with a wrong weight", set_to(child, weight=77)),
    ("communities with a wrong mass", set_to(child, mass=1)),
    (
        "communities on level 1 with a relationship whose ends",
        borrow_a_relationship,
    ),
    ("text_units that no root holds", lambda rows: [r.update(text_unit_ids=[]) for r in rows] and None),
]


@pytest.mark.parametrize(("says", "spoil"), FAULTS, ids=[says for says, _ in FAULTS])
def test_a_broken_rule_is_named(sound: Tables, says: str, spoil: Callable[[Rows], None]) -> None:
    rows = sound[COMMUNITIES].to_pylist()
    spoil(rows)
    found = check_tree({**sound, COMMUNITIES: from_rows(COMMUNITIES, rows)})
    assert any(fault.startswith(says) for fault in found), found


def test_an_entity_that_no_root_holds_is_named(sound: Tables) -> None:
    more = from_rows(ENTITIES, [*sound[ENTITIES].to_pylist(), {"id": "left-out", "title": "?"}])
    assert check_tree({**sound, ENTITIES: more}) == ["entities that no root holds: 1, the first is left-out."]
    assert check_tree({**sound, ENTITIES: more}, whole=False) == []


def test_tables_without_text_units_are_checked_as_well(sound: Tables) -> None:
    tables = {name: table for name, table in sound.items() if name != TEXT_UNITS}
    assert [fault.split(":")[0] for fault in check_tree(tables)] == ["communities with text_unit_ids that do not exist"]
