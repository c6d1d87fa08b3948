"""The language that a caller asks for, by whichever of its names, in prompts and forms."""

from __future__ import annotations

import pytest

from communitree_shared.contract.options import AnswerOptions, QueryOptions, Turn
from communitree_workers.query.builtin.answer import listed
from communitree_workers.query.question.conversation import rewrite_messages
from communitree_workers.query.question.question import answer_language
from communitree_workers.query.reduce.rounds import reduce_messages
from communitree_workers.query.wording.causes import cause_in
from communitree_workers.query.wording.forms import form_of
from communitree_workers.query.wording.phrases import say


@pytest.mark.parametrize("name", ["Chinese", "中文", "zh", "zh-CN"])
def test_chinese_by_any_name_makes_a_prompt_all_chinese(name: str) -> None:
    options = QueryOptions(answer=AnswerOptions(language=name))
    language = answer_language("Who is Tiny Tim?", options)
    assert language == "zh"
    (system, _) = reduce_messages(["1. 要点"], "Who is Tiny Tim?", options.answer, name, {})
    assert "中文" in system["content"]
    assert "多个段落" in system["content"]
    assert "Chinese" not in system["content"]
    assert "paragraphs" not in system["content"]


@pytest.mark.parametrize("name", ["Chinese (Hong Kong)", "zh-Hant-HK", "繁體中文"])
def test_what_is_said_around_a_chinese_answer_is_chinese_too(name: str) -> None:
    language = answer_language("Who is Tim?", QueryOptions(answer=AnswerOptions(language=name)))
    system, user = rewrite_messages("And her?", [Turn(role="user", content="Who is Tim?")], language, {})
    assert "问题" in system["content"]
    assert user["content"].startswith("问: Who is Tim?")
    assert say("state.cancelled", language) == say("state.cancelled", "zh")
    assert cause_in(language, "deadline") == cause_in("zh", "deadline")
    assert listed(["甲", "乙"], language) == "甲和乙"


def test_other_languages_are_named_as_they_were_given() -> None:
    options = QueryOptions(answer=AnswerOptions(language="Italian"))
    assert answer_language("宝玉是谁？", options) == "Italian"
    assert answer_language("宝玉是谁？", QueryOptions()) == "zh"
    assert form_of("multiple paragraphs", "English") == "multiple paragraphs"
