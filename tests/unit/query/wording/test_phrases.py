from __future__ import annotations

import re
import string

import pytest

from communitree_workers.query.wording.phrases import phrases, say


def test_one_is_no_plural() -> None:
    assert say("warn.silent", "en", count=1, job="j") == (
        "`ask --again j` reads 1 silent report once more, in smaller batches."
    )
    assert say("warn.missing", "en", count=1) == "1 community has no report: left out."
    assert say("warn.at_limit", "en", count=1_234).startswith("1,234 replies reached")


@pytest.mark.parametrize("key", phrases())
def test_both_languages_say_the_same_and_neither_holds_words_of_the_other(key: str) -> None:
    english, chinese = phrases()[key]
    fields = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (english, chinese)]
    assert fields[1] <= fields[0]
    assert not re.search(r"[\u4e00-\u9fff]", english)
    plain = re.sub(r"`[^`]*`|\{[^}]*\}|COMMUNITREE_\w+|GraphRAG", "", chinese)
    assert not re.search("[A-Za-z]{2}", plain)


@pytest.mark.parametrize("key", phrases())
def test_what_is_counted_has_a_word_for_one(key: str) -> None:
    bare = re.findall(r"\{(?:count|sample|rated|pruned|calls|used|n(?::,)?)\} [a-z]+s\b", phrases()[key][0])
    assert bare == []
