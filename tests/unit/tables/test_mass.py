from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.contract.tables import ENTITIES, MASS_SCALE, RELATIONSHIPS, TEXT_UNITS
from communitree_workers.tables.io import Tables, from_rows
from communitree_workers.tables.mass import entity_mass, relationship_ends, text_unit_sets, with_mass


def graph(units: int, entities: dict[str, list[str]], edges: list[tuple[str, str, list[str]]]) -> Tables:
    return {
        TEXT_UNITS: from_rows(TEXT_UNITS, [{"id": f"t{i}", "text": "x"} for i in range(units)]),
        ENTITIES: from_rows(ENTITIES, [{"id": e, "title": e.upper(), "text_unit_ids": t} for e, t in entities.items()]),
        RELATIONSHIPS: from_rows(
            RELATIONSHIPS,
            [
                {"id": f"r{i}", "source": a.upper(), "target": b.upper(), "text_unit_ids": t}
                for i, (a, b, t) in enumerate(edges)
            ],
        ),
    }


def test_a_text_unit_is_shared_out_among_the_entities_that_have_it() -> None:
    tables = graph(2, {"a": ["t0"], "b": ["t0", "t1"], "c": []}, [])
    assert entity_mass(tables).tolist() == [MASS_SCALE // 2, MASS_SCALE + MASS_SCALE // 2, 0]


def test_relationships_bring_their_text_units_to_both_ends() -> None:
    tables = graph(2, {"a": ["t0"], "b": []}, [("a", "b", ["t1", "t1", "nowhere"])])
    entity, unit = text_unit_sets(tables)
    assert list(zip(entity.tolist(), unit.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]
    assert entity_mass(tables).sum() == 2 * MASS_SCALE


def test_without_any_text_each_entity_is_a_unit_of_its_own() -> None:
    tables = graph(0, {"a": [], "b": []}, [("a", "b", [])])
    assert entity_mass(tables).tolist() == [MASS_SCALE, MASS_SCALE]
    assert entity_mass(graph(3, {}, [])).tolist() == []


def test_ends_are_taken_by_id_then_by_title() -> None:
    tables = graph(1, {"a": [], "b": []}, [("a", "b", []), ("b", "nobody", [])])
    edges = tables[RELATIONSHIPS]
    index = edges.column_names.index("source_id")
    tables[RELATIONSHIPS] = edges.set_column(index, "source_id", [["b", ""]])
    source, target = relationship_ends(tables)
    assert (source.tolist(), target.tolist()) == ([1, 1], [1, -1])


@settings(max_examples=60)
@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_masses_add_up_to_the_text_units_that_any_entity_has_in_any_row_order(sets, random) -> None:  # type: ignore[no-untyped-def]
    tables = graph(7, {f"e{i}": [f"t{t}" for t in sorted(s)] for i, s in enumerate(sets)}, [])
    mass = entity_mass(tables)
    held = set().union(*sets)
    if held:
        assert abs(int(mass.sum()) - len(held) * MASS_SCALE) <= len(held) * len(sets)
    order = list(range(len(sets)))
    random.shuffle(order)
    shuffled = {**tables, ENTITIES: tables[ENTITIES].take(order)}
    assert with_mass(shuffled)[ENTITIES]["mass"].to_pylist() == mass[order].tolist()
