from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.report import citations

KIND = st.sampled_from(["entities", "relationships", "claims", "text_units", "reports"])
CITED = st.dictionaries(KIND, st.lists(st.integers(0, 999), min_size=1, max_size=5, unique=True), max_size=4)


@given(CITED, CITED, st.text(st.sampled_from("ab. 汉"), max_size=9))
def test_what_is_written_is_read_back(first: dict[str, list[int]], second: dict[str, list[int]], text: str) -> None:
    written = f"{text}{citations.data(**first)} and {citations.data(**second)}{text}"
    merged = {k: list(dict.fromkeys(first.get(k, []) + second.get(k, []))) for k in {**first, **second}}
    assert citations.cited(written) == merged
    assert citations.cited(citations.remove(written)) == {}
    assert "[" not in citations.remove(written)


@given(CITED, CITED)
def test_checked_citations_are_those_of_the_evidence(cited: dict[str, list[int]], known: dict[str, list[int]]) -> None:
    checked = citations.check(f"Said. {citations.data(**cited)}", citations.places(known))
    good = {k: [n for n in ids if n in known.get(k, [])] for k, ids in cited.items()}
    assert citations.cited(checked.text) == {k: ids for k, ids in good.items() if ids}
    assert checked.verified == sum(map(len, good.values()))
    assert checked.verified + checked.unverified == sum(map(len, cited.values()))
    assert checked.text.startswith("Said. ")
    for kind, numbers in checked.cited.items():
        assert all(known[kind][at] == int(number) for number, at in numbers.items())


@given(CITED)
def test_renumbering(cited: dict[str, list[int]]) -> None:
    moved = citations.renumber(f"In 1950 (7). {citations.data(**cited)}", lambda kind, n: n + len(kind))
    assert citations.cited(moved) == {kind: [n + len(kind) for n in ids] for kind, ids in cited.items()}
    assert moved.startswith("In 1950 (7).")


def test_spellings_and_more() -> None:
    text = "a [Data: Entities (1, +more, 2); Relationship (3)] b 【数据：实体（4）；来源（5）】 c [data: Community (6)]"
    assert citations.cited(text) == {"entities": [1, 2, 4], "relationships": [3], "text_units": [5], "reports": [6]}
    assert citations.remove(text) == "a b c"


def test_a_verified_block_stays_as_it_was_written() -> None:
    text = "So. [Data: Entities (1, 2, +more); Sources (3)]"
    assert citations.check(text, {"entities": {1: 0, 2: 1}, "text_units": {3: 0}}).text == text


def test_other_brackets_are_left_alone() -> None:
    text = "An array[3] [see page 4] (2012) [12]"
    checked = citations.check(text, {})
    assert (checked.text, checked.verified, checked.unverified) == (text, 0, 0)


def test_what_is_not_understood_is_marked_and_counted() -> None:
    checked = citations.check("So. [Data: Entities (four)] [see Entities (4)]", {"entities": {4: 0}})
    assert checked.text == "So. [Unverified: Entities (four)] [Data: Entities (4)]"
    assert (checked.verified, checked.unverified) == (1, 1)
    assert citations.cited(checked.text) == {"entities": [4]}


def test_a_range_is_of_its_numbers() -> None:
    checked = citations.check("So. [Data: Entities (1-3)]", {"entities": {1: 0, 3: 1}})
    assert checked.text == "So. [Data: Entities (1, 3)] [Unverified: Entities (2)]"
