"""Chinese questions: cut by the words of the corpus, whatever stands beside them, in either script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.query.answer.notes import word_notes
from communitree_workers.query.question.words import read_words
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.text.variants import simplified
from communitree_workers.text.words import chinese_cut, terms

NAMES = ["宝玉", "黛玉", "贾府", "贾母", "贾政", "雨村", "贾瑞", "线程"]
STORY = [
    *["黛玉住在贾府。", "贾母见了黛玉。", "宝玉和黛玉一处读书。", "宝玉去见贾政。", "贾政请雨村来。"],
    *["贾雨村进京。", "贾瑞病了。", "贾母和贾政说话。", "林黛玉进贾府。", "线程之间传递数据。"],
]
LEXICON = Lexicon.build([terms(text, chinese_cut(NAMES)) for text in STORY])
TRADITIONAL = Lexicon.build([["寶玉", "黛玉"], ["寶玉", "賈母"], ["頭髮"], ["發現"], ["里"], ["裡面"]])


def named(question: str, lexicon: Lexicon = LEXICON) -> tuple[str, ...]:
    return read_words(question, lexicon).specific


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("宝玉和黛玉是什么关系？", ("宝玉", "黛玉")),
        ("宝玉与黛玉的关系如何？", ("宝玉", "黛玉")),
        ("林黛玉进贾府时发生了什么？", ("林黛玉", "黛玉", "进", "贾府")),
        ("贾母喜欢谁？", ("贾母", "喜欢")),
        ("贾政和贾雨村是怎么认识的？", ("贾政", "贾雨村", "认识")),
        ("贾瑞是怎么死的？", ("贾瑞", "死")),
        ("如何在线程之间传递数据？", ("线程", "传递数据")),
        ("賈母對黛玉的態度怎樣？", ("贾母", "黛玉", "态度")),
        ("用 GraphRAG 看宝玉和黛玉", ("graphrag", "看", "宝玉", "黛玉")),
        ("欧阳锋和宝玉", ("欧阳锋", "宝玉")),
    ],
)
def test_names_are_found_whatever_stands_beside_them(question: str, words: tuple[str, ...]) -> None:
    assert named(question) == words


@pytest.mark.parametrize(
    "question",
    [
        "全书的主题有哪些？",
        "這本書講了什麼？",
        "主要人物是誰？",
        "这本小说主要讲什么",
        "后来怎么样了？",
        "发生了什么事件？",
    ],
)
def test_a_question_that_names_nothing_is_general_with_a_lexicon_and_without(question: str) -> None:
    assert read_words(question, LEXICON).general
    assert read_words(question).general


def test_a_simplified_question_finds_what_a_traditional_corpus_has() -> None:
    assert named("宝玉和黛玉是什么关系？", TRADITIONAL) == ("寶玉", "黛玉")
    assert named("头发怎么样", TRADITIONAL) == ("頭髮",)
    assert named("发现了什么", TRADITIONAL) == ("發現",)
    assert read_words("誰是主角？").kind == "people"


def test_a_form_of_a_character_is_one_character() -> None:
    assert simplified("賈寶玉與林黛玉 and 紅樓夢") == "贾宝玉与林黛玉 and 红楼梦"


def test_a_corpus_is_cut_by_its_own_names_and_teaches_them_to_no_other() -> None:
    assert "黛玉" not in terms("宝玉和黛玉")
    assert terms("宝玉和黛玉进贾府", chinese_cut(NAMES)) == ["宝玉", "黛玉", "进", "贾府"]
    assert "黛玉" not in terms("宝玉和黛玉")


@given(st.text("宝玉和黛進贾府的是谁人物測試線程，A1 ", max_size=60))
def test_a_question_of_any_words_is_cut_into_words_of_its_own(question: str) -> None:
    plain = simplified(question).lower()
    assert all(term and term in plain for term in read_words(question, LEXICON).terms)


@pytest.mark.parametrize(
    ("statements", "held", "note"),
    [
        ((), {"孙悟空"}, "语料的所有报告都不含问题中的这些词：如来和佛祖。"),
        ((), {"孙悟空", "如来", "佛祖"}, "问题中的词语料里都有，但读过的内容中没有一处同时含有足够多的词。"),
        (("宝玉见了黛玉。",), set(), "找到的陈述都不含问题中的这些词：孙悟空、如来和佛祖。"),
        (("孙悟空和如来佛祖。",), set(), ""),
    ],
)
def test_the_words_that_are_missing_are_named(statements: tuple[str, ...], held: set[str], note: str) -> None:
    asked = read_words("宝玉和孙悟空见过如来佛祖吗？", LEXICON)
    notes = word_notes(asked, LEXICON, statements, lambda word: word in held, "zh")
    assert notes == ([note] if note else [])
