"""Orders, ends and weights read from tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from communitree_shared.contract.tables import ENTITIES, WEIGHT_SCALE
from communitree_workers.cluster import canonical
from communitree_workers.tables.io import from_rows
from support.graphs import corpus


def test_entities_are_ordered_by_normal_title_then_id() -> None:
    rows = [
        {"id": "2", "title": "e\u0301"},
        {"id": "1", "title": "é"},
        {"id": "3", "title": "z"},
        {"id": "0", "title": None},
    ]
    order = canonical.entity_order({ENTITIES: from_rows(ENTITIES, rows)})
    assert [rows[i]["id"] for i in order] == ["0", "3", "1", "2"]  # z before é, whose two forms are one title


def test_equal_numbers_are_ordered_by_id() -> None:
    table = pa.table({"id": ["c", "a", "b"], "human_readable_id": [1, 1, 0]})
    assert canonical.numbered_order(table, "relationships").tolist() == [2, 1, 0]


def test_an_end_in_another_normal_form_finds_its_entity() -> None:
    tables = corpus(["caf\u00e9", "b"], [("cafe\u0301", "b", 1.0)])
    source, target, by_id = canonical.relationship_members(tables, pa.array(["x", "y"]), pa.array(["caf\u00e9", "b"]))
    assert (source.tolist(), target.tolist(), by_id) == ([0], [1], False)


def test_unusable_weights_count_a_tenth_of_the_median() -> None:
    weights, floored = canonical.fixed_weights(pa.array([2.0, 4.0, 6.0, 0.0, -1.0, float("nan"), float("inf"), None]))
    assert weights.tolist() == [2_000_000, 4_000_000, 6_000_000, *[400_000] * 5]
    assert floored == 5


def test_huge_and_tiny_weights_keep_their_proportion_or_a_place() -> None:
    weights, floored = canonical.fixed_weights(pa.array([1e12, 5e11, 1e-12]))
    assert weights[0] == 2 * weights[1]
    assert weights[2] == 1
    assert floored == 0
    assert int(weights[0]) * 5_000_000 < 2**63


@given(st.lists(st.floats(0.001, 1000), min_size=1), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_order(values: list[float], rng: object) -> None:
    fixed, _ = canonical.fixed_weights(pa.array(values))
    backwards, _ = canonical.fixed_weights(pa.array(values[::-1]))
    assert fixed.sum() == backwards.sum()
    assert np.allclose(fixed / WEIGHT_SCALE, values, atol=1 / WEIGHT_SCALE)


def test_text_units_stand_by_document_and_number() -> None:
    tables = corpus([], text=[("d2", []), ("d1", []), ("d2", []), ("", []), ("d1", [])])
    tables["documents"] = tables["documents"].slice(0, 1)  # d2 is known, d1 is not: it comes after
    order, document, names = canonical.unit_order(tables)
    assert order.tolist() == [0, 2, 1, 4, 3]
    assert document.tolist() == [0, 0, 1, 1, -1]
    assert names == ["d2", "d1"]
