import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.corpus.extraction.titles import entity_id, unify


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alice", "ALICE"),
        ("Ａｌｉｃｅ", "Alice"),
        ("  New\n York ", "New York"),
        ('"Alice"', "Alice"),
        ("“红楼梦”", "红楼梦"),
        ("《红楼梦》", "红楼梦"),
        ("Russia's", "Russia"),
        ("Russia’s", "Russia"),
        ("the boys'", "the boys"),
        ("贾 宝玉", "贾宝玉"),
        ("O’Brien", "O'Brien"),
    ],
)
def test_one_thing(one, other):
    assert unify(one) == unify(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("Smith", "J. Smith"), ("cat", "cats"), ("C", "C++"), ("AB", "A B"), ("Lee Ann", "Ann Lee"), ("1.5", "15")],
)
def test_two_things(one, other):
    assert unify(one) != unify(other)


@pytest.mark.parametrize("title", ["", "  ", '""', "“”"])
def test_nothing_is_no_title(title):
    assert unify(title) == ""


@given(st.text(max_size=30))
def test_a_key_is_its_own_key(title):
    assert unify(unify(title)) == unify(title)


def test_ids_are_hashes():
    assert len(entity_id("alice")) == 32
