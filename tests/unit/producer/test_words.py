from __future__ import annotations

import re
import string

import pytest

from communitree.render.words import _WORDS, say


def test_one_is_no_plural() -> None:
    assert say("read.reports", False, did="read", n=1, tokens=1_234, levels="") == "read 1 report, 1,234 tokens"
    assert say("plan.calls", False, n=2) == ", 2 rating calls"
    assert say("plan.calls", True, n=1_000) == "，1,000 次评分调用"


@pytest.mark.parametrize("key", _WORDS)
def test_both_languages_say_the_same_and_neither_holds_words_of_the_other(key: str) -> None:
    english, chinese = _WORDS[key]
    fields = [{name for _, name, _, _ in string.Formatter().parse(words) if name} for words in (english, chinese)]
    assert fields[0] == fields[1]
    assert not re.search(r"[\u4e00-\u9fff]", english)
    assert not re.search("[A-Za-z]", re.sub(r"\{[^}]*\}", "", chinese))
