"""One code for all names of a language."""

from __future__ import annotations

import pytest

from communitree_shared.contract.results import Answer
from communitree_shared.languages import is_chinese, language_code
from communitree_shared.ledger.ends import CANCELLED_BY_CALLER, without_result


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *[(name, "zh") for name in ("zh", "Chinese", "中文", "zh-CN", "zh_CN", "ZH-Hans", " 简体中文 ")],
        *[(name, "zh-hant") for name in ("zh-TW", "繁體中文", "Traditional Chinese")],
        *[(name, "en") for name in ("English", "英文", "en", "en-US")],
        *[("", ""), ("Italian", "Italian"), ("法语", "fr")],
    ],
)
def test_a_language_has_one_code_by_whichever_name(name: str, code: str) -> None:
    assert language_code(name) == code
    assert is_chinese(name) == code.startswith("zh")


@pytest.mark.parametrize("name", ["Chinese (Hong Kong)", "zh-Hant-TW", "繁體字", "華語", "简体字"])
def test_chinese_is_known_by_names_that_are_on_no_list(name: str) -> None:
    assert language_code(name) == name
    assert is_chinese(name)


@pytest.mark.parametrize(
    ("question", "language", "text", "warning"),
    [
        ("宝玉是谁？", "", "在写出答案之前已取消。", "由提问者取消。"),
        ("Who is Tim?", "中文", "在写出答案之前已取消。", "由提问者取消。"),
        ("Who is Tim?", "", "Cancelled before an answer was written.", CANCELLED_BY_CALLER),
    ],
)
def test_a_cancelled_question_says_so_in_its_language(question: str, language: str, text: str, warning: str) -> None:
    request = {"kind": "query", "question": question, "options": {"answer": {"language": language}}}
    answer = without_result("j", "cancelled", CANCELLED_BY_CALLER, {}, request)
    assert isinstance(answer, Answer)
    assert (answer.answer, answer.account.warnings) == (text, [warning])
