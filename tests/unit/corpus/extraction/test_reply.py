import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.corpus.extraction.reply import parse_claims, parse_graph, strength_of

GOOD = {
    "entities": [{"title": "Ann", "type": "PERSON", "description": "A girl."}],
    "relationships": [{"source": "Ann", "target": "Bob", "description": "friends", "strength": 8}],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        "```json\n" + json.dumps(GOOD, indent=1) + "\n```\nThat is all.",
        '{"entities": [{"name": "Ann", "entity_type": "person", "desc": "A girl."}],'
        ' "relations": [{"from": "Ann", "to": "Bob", "relation": "friends", "weight": "8/10"}]}',
        '[{"title": "Ann", "type": "person", "description": "A girl."},'
        ' {"source": "Ann", "target": "Bob", "description": "friends", "strength": 8}]',
        '("entity"<|>Ann<|>PERSON<|>A girl.)##("relationship"<|>Ann<|>Bob<|>friends<|>8)<|COMPLETE|>',
        '("entity"<|>"Ann"<|>"person"<|>A girl.)\n("relationship"<|>Ann<|>Bob<|>friends<|>8)',
        '{"实体": 1, "entities": [{"名称": "Ann", "类型": "person", "描述": "A girl."}],'
        ' "relationships": [{"起点": "Ann", "终点": "Bob", "描述": "friends", "强度": 8}]}',
    ],
)
def test_forms_that_models_write(text):
    found = parse_graph(text)
    assert found.entities == [{"title": "Ann", "type": "person", "description": "A girl."}]
    assert found.relationships == [{"source": "Ann", "target": "Bob", "description": "friends", "strength": 8.0}]
    assert found.lost == 0


def test_a_value_that_was_read_already_is_taken():
    assert parse_graph("ignored", GOOD).entities[0]["title"] == "Ann"


def test_only_what_is_damaged_is_lost():
    value = {
        "entities": [{"title": ""}, 3, {"description": "nameless"}, "Eve", {"title": "Ann", "description": None}],
        "relationships": [{"source": "Ann"}, {"source": "Ann", "target": "Eve", "strength": None}, "x"],
    }
    found = parse_graph("", value)
    assert [e["title"] for e in found.entities] == ["Eve", "Ann"]
    assert found.relationships == [{"source": "Ann", "target": "Eve", "description": "", "strength": 1.0}]
    assert found.lost == 5


def test_damaged_tuples_lose_themselves():
    text = (
        '("entity"<|>Ann<|>person<|>A (small) girl)##("entity"<|>Bob)##(oops<|>x)##("relationship"<|>Ann<|>Bob<|>f<|>x)'
    )
    found = parse_graph(text)
    assert found.entities == [{"title": "Ann", "type": "person", "description": "A (small) girl"}]
    assert found.relationships[0]["strength"] == 1.0
    assert found.lost == 2


@pytest.mark.parametrize("text", ["", "I cannot do that.", "nothing here"])
def test_no_form_at_all_is_one_loss(text):
    found = parse_graph(text)
    assert (found.entities, found.relationships, found.lost) == ([], [], 1)


@pytest.mark.parametrize("text", ['{"entities": [], "relationships": []}', "[]", "{}"])
def test_empty_lists_are_no_loss(text):
    assert parse_graph(text).lost == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8), ("8/10", 8), ("9.5 (high)", 9.5), ("", 1), ("strong", 1), ("0", 1), ("-3", 1), ("1000", 10)],
)
def test_strength(text, value):
    assert strength_of(text) == value


def test_claims():
    text = json.dumps(
        {
            "claims": [
                {"subject": "Ann", "object": "NONE", "type": "debt", "status": "true", "description": "Owes."},
                {"subject": "Ann", "object": "Bob", "status": "maybe", "description": "Paid.", "start_date": "unknown"},
                {"subject": "Ann"},
            ]
        }
    )
    claims, lost = parse_claims(text)
    assert [(c["object"], c["status"], c["start_date"]) for c in claims] == [("", "TRUE", ""), ("Bob", "SUSPECTED", "")]
    assert lost == 1


def test_claims_as_tuples():
    text = "(ANN<|>NONE<|>DEBT<|>TRUE<|>2020-01-01<|>NONE<|>Ann owes.<|>she owes)##(ANN<|>BOB)"
    claims, lost = parse_claims(text)
    assert lost == 1
    assert claims == [
        {
            "subject": "ANN", "object": "", "type": "DEBT", "status": "TRUE", "start_date": "2020-01-01",
            "end_date": "", "description": "Ann owes.", "source_text": "she owes",
        }
    ]  # fmt: skip


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["entities", "relationships", "title", "source", "target", "x"]), inner)
    ),
    max_leaves=12,
)


@given(VALUES, st.text(alphabet='("<|>)#entity,{}[]:a \n', max_size=60))
def test_whatever_a_model_writes_is_no_crash(value, text):
    found = parse_graph(text, value)
    assert all(e["title"] for e in found.entities)
    assert all(r["source"] and r["target"] and 1 <= r["strength"] <= 10 for r in found.relationships)
    parse_claims(text, value)


def test_aliases_are_lists_of_names():
    rows = [
        {"title": "Ada Brook", "aliases": ["Captain  Brook", "Captain Brook", "", 3], "type": "person"},
        {"title": "Tom Reed", "aliases": [], "type": "person"},
        {"title": "李卫国", "别名": ["李局长"]},
    ]
    found = parse_graph("", {"entities": rows})
    assert [e.get("aliases") for e in found.entities] == [["Captain Brook"], None, ["李局长"]]
