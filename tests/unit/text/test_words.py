import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.text.words import fold_plural, is_cjk, language, terms


def test_english_terms_are_folded_and_lose_stop_words():
    assert terms("The Harbor Authority's companies don't use it") == ["harbor", "authority", "company", "use"]


def test_identifiers_give_their_words():
    assert terms("sys.path and __init__") == ["sys", "path", "init"]


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_has_the_terms_that_it_has_among_others(text: str):
    mixed = terms(f"{text} é")  # not ASCII: read the long way
    assert terms(text) == mixed[:-1]
    assert mixed[-1] == "é"


def test_full_width_letters_and_case_are_one():
    assert terms("ＧＲＡＰＨ Graph") == ["graph", "graph"]


def test_chinese_terms_contain_the_words_inside_long_words():
    found = terms("上海港务集团的总工程师")
    assert {"上海", "工程", "工程师", "总工程师"} <= set(found)
    assert "的" not in found


def test_mixed_text_gives_both():
    assert {"graphrag", "主题"} <= set(terms("GraphRAG的主题"))


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        *[("cities", "city"), ("classes", "class"), ("class", "class"), ("boxes", "box"), ("status", "status")],
        *[("is", "is"), ("topics", "topic"), ("analysis", "analysis"), ("movies", "movy")],
    ],
)
def test_plurals(word, folded):
    assert fold_plural(word) == folded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What are the main themes?", "en"),
        ("主要的主题是什么？", "zh"),
        ("use GraphRAG 做 global search 的主题是什么？", "zh"),
        ("The word 道 means way in the philosophy of that time", "en"),
        ("", "en"),
        ("12345 !!", "en"),
    ],
)
def test_language(text, expected):
    assert language(text) == expected


def test_a_long_text_is_judged_by_all_its_parts():
    assert language("Preface in English. " * 100 + "正文都是中文。" * 30_000) == "zh"


def test_is_cjk():
    assert is_cjk("汉")
    assert is_cjk("の")
    assert not is_cjk("a")
    assert not is_cjk("。")


@given(st.text(max_size=300))
def test_terms_never_fail_and_are_never_empty(text):
    assert all(terms(text))
    assert language(text) in {"en", "zh"}
