from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.text.sentences import sentence_spans


def sentences(text):
    return [text[a:b] for a, b in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Smith met Dr. Jones. They spoke.", ["Mr. Smith met Dr. Jones.", "They spoke."]),
        ("It cost 3.5 million, e.g. in May. Then it fell.", ["It cost 3.5 million, e.g. in May.", "Then it fell."]),
        ("He said “Light will win.” Then he left.", ["He said “Light will win.”", "Then he left."]),
        ("A line\nthat wraps. Next.", ["A line\nthat wraps.", "Next."]),
        ("Heading\n\nText here.", ["Heading", "Text here."]),
        (
            "# Guide\n## Lessons\nIt deletes at night.\n## Root",
            ["# Guide", "## Lessons", "It deletes at night.", "## Root"],
        ),
        ("# 指南\n它在夜里删除。\n## 原因\n缓存是冷的。", ["# 指南", "它在夜里删除。", "## 原因", "缓存是冷的。"]),
        ("- one item\n- another item", ["- one item", "- another item"]),
        ("他笑道：“走罢。”于是去了。后来呢？", ["他笑道：“走罢。”", "于是去了。", "后来呢？"]),
        ("第一回　　却说雨村。　　又说", ["第一回", "却说雨村。", "又说"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


@given(st.text(alphabet="aB .。！\n\u3000”1-", max_size=200))
def test_spans_cover_all_that_is_no_white_space_once_and_in_order(text):
    spans = sentence_spans(text)
    assert all(a < b for a, b in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    assert all(text[a:b] == text[a:b].strip() for a, b in spans)
    covered = {i for a, b in spans for i in range(a, b)}
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered
