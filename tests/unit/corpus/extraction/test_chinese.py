import pytest

from communitree_workers.corpus.extraction.candidates import NAME
from communitree_workers.corpus.extraction.chinese import candidates


def titles(sentence):
    return [c.title for c in candidates(sentence)]


def test_names_places_and_organisations():
    found = {c.title: (c.kind, c.type) for c in candidates("王晓明在北京的清华大学工作，后来去了荣国府。")}
    assert found["王晓明"] == (NAME, "person")
    assert found["北京"] == (NAME, "place")
    assert found["清华大学"] == (NAME, "organization")
    assert found["荣国府"] == (NAME, "place")


def test_neighbouring_nouns_are_one_phrase_with_its_words():
    (found,) = [c for c in candidates("上海港务集团开会。") if "集团" in c.title]
    assert (found.title, found.parts, found.type) == ("上海港务集团", "上海 港务 集团", "organization")


def test_works_in_title_marks():
    assert "石头记" in titles("后来改名为《石头记》。")


def test_mixed_text():
    found = titles("我们用 Global Search 服务查询 GraphRAG 的报告。")
    assert "GraphRAG" in found
    assert any(title.startswith("Global Search") for title in found)


@pytest.mark.parametrize("sentence", ["这个时候他说了什么。", "第二天早晨，大家都回来了。", "。", ""])
def test_empty_words_give_nothing(sentence):
    assert titles(sentence) == []


def test_function_words_are_in_no_name() -> None:
    found = {c.title for c in candidates("宝玉不免有些伤心，打了个寒噤，觉得不值。黛玉不免有些难过。")}
    assert not {"不免有些", "打了个", "不值"} & found
    assert "宝玉" in found
