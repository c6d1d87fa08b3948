from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_shared.errors import BadInput
from communitree_workers.model.replies.reading import parse_json, read
from support.damaged import DAMAGES, damaged, prefix_of, text


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_strings_come_back_as_written(damage: str) -> None:
    for seed in range(25):
        value, raw = damaged(random.Random(f"{seed}{damage}"), damage)
        got, repairs = parse_json(raw)
        assert got == value, raw
        if damage in ("fence", "think", "prose", "full-width brackets", "closed too often"):
            assert repairs > 0


def test_a_cut_reply_gives_what_came_before_and_says_so() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        value, raw = damaged(rng, "none")
        reading = read(raw[: rng.randrange(raw.index('"') + 1, len(raw))])
        assert reading.repairs > 0
        assert prefix_of(reading.value, value)


@given(st.text(alphabet=st.sampled_from("{}[]\":,'\\ \nab1“”，：`<>/tru.u"), max_size=80))
@settings(max_examples=150)
def test_rubbish_raises_only_bad_input(rubbish: str) -> None:
    try:
        value, _ = parse_json(rubbish)
    except BadInput:
        return
    assert isinstance(value, (dict, list))


#: Without what JSON escapes with a letter: `"\\bf"` is read as LaTeX on purpose.
_CHARS = st.characters(exclude_categories=["Cs"], exclude_characters="\b\f\n\r\t")
_SCALARS = st.text(_CHARS) | st.integers(-(2**53), 2**53) | st.booleans() | st.none()


_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(_CHARS, max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(_CHARS, max_size=8), _VALUES, max_size=3))
@settings(max_examples=60)
def test_valid_json_is_read_as_it_is(value: object) -> None:
    assert parse_json(json.dumps(value)) == (value, 0)
    assert parse_json(json.dumps(value, ensure_ascii=False)) == (value, 0)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (r'{"a": "\frac{1}{2} of \alpha, \(x\), \beta"}', {"a": r"\frac{1}{2} of \alpha, \(x\), \beta"}),
        (r'{"a": "$x \to \infty$, \nu_1, \theta"}', {"a": r"$x \to \infty$, \nu_1, \theta"}),
        (r'{"a": "C:\temp\new", "b": "C:\\temp\\new"}', {"a": r"C:\temp\new", "b": r"C:\temp\new"}),
        (r'{"a": "in C:\Users\nora\table.txt now\nnext"}', {"a": "in C:\\Users\\nora\\table.txt now\nnext"}),
        (r'{"a": "C:\dir\", "b": "x"}', {"a": "C:\\dir\\", "b": "x"}),
        (r'{"a": "Plan B:\nWe go on.\tan end\nnot here"}', {"a": "Plan B:\nWe go on.\tan end\nnot here"}),
        (r'{"a": "\\frac{1}{2}", "b": "\\\\server\\share"}', {"a": r"\frac{1}{2}", "b": r"\\server\share"}),
        (r'{"a": "it\'s"}', {"a": "it's"}),
        ('{"a": "half \\ud83d of a pair"}', {"a": "half \ufffd of a pair"}),
    ],
)
def test_back_slashes_keep_their_meaning(raw: str, value: object) -> None:
    assert parse_json(raw)[0] == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (
            '{"a": "He said "hello" to her, and "bye"", "b": "no"}',
            {"a": 'He said "hello" to her, and "bye"', "b": "no"},
        ),
        ('{"a": "the set {"x"} is", "b": 1}', {"a": 'the set {"x"} is', "b": 1}),
        ("{'a': 'it's fine', 'b': None}", {"a": "it's fine", "b": None}),
        (
            "{“title”：“诸葛亮”，“rating”：８，“summary”：“他说：“好”，然后走了。”}",
            {"title": "诸葛亮", "rating": 8, "summary": "他说：“好”，然后走了。"},
        ),
        ('{"标题"："曹操，字孟德"，"评分"：7.5}', {"标题": "曹操，字孟德", "评分": 7.5}),
        ('{"a": "标题”, "b": "x", "c": 1}', {"a": "标题", "b": "x", "c": 1}),
        ('{"a": 1, "b": [1, 2}, "c": 3}', {"a": 1, "b": [1, 2], "c": 3}),
        ('{"points": [{"a": 1, "b": 2], "c": 3}', {"points": [{"a": 1, "b": 2}], "c": 3}),
        ('{"a": 1}, "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('"points": [{"d": "x"}], "n": 3,', {"points": [{"d": "x"}], "n": 3}),
        ('{"score": "8/10", "r": 8/10, "p": 85%}', {"score": "8/10", "r": "8/10", "p": "85%"}),
        ('{\\"a\\": \\"b\\"}', {"a": "b"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"answer": "{\\"points\\": []}"}', {"points": []}),
        ('{"a" 1, "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "x", ...}', {"a": "x"}),
        ('x [1] y {z} {"t": [1]}', {"t": [1]}),
        ('no: {"a": 1}.\n</think>\n{"a": 2}', {"a": 2}),
    ],
)
def test_what_models_get_wrong(raw: str, value: object) -> None:
    got, repairs = parse_json(raw)
    assert got == value
    assert repairs > 0


def test_a_number_at_the_very_end_counts_only_when_the_model_ended_by_itself() -> None:
    assert parse_json('{"a": 1, "score": 8')[0] == {"a": 1}
    assert parse_json('{"a": 1, "score": 8', ended=True)[0] == {"a": 1, "score": 8}


@pytest.mark.parametrize(
    ("raw", "slip"),
    [
        ('{"points": [{"d": "x", "score": 5}]', True),
        ('{"answer": "x"', True),
        ('{"rating": 8', True),
        ('{"points": [{"d": "x", "score": 5}', False),
        ('{"points": [{"d": "x", "score": 5}],', False),
        ('{"points": [], "title": "x', False),
        ('{"points": [], "title":', False),
        ('{"points": [], "title"', False),
        ('[{"a": 1}', True),
    ],
)
def test_a_last_bracket_that_is_missing_is_told_from_a_cut(raw: str, slip: bool) -> None:
    reading = read(raw, ended=True)
    assert reading.cut
    assert reading.slip is slip


@pytest.mark.parametrize(
    "raw", ["", "   ", "I cannot help with that.", "5", '"text"', '<think>{"a": 2}', "[" * 4000, '{"a":' * 4000]
)
def test_nothing_to_read(raw: str) -> None:
    with pytest.raises(BadInput):
        parse_json(raw)


@pytest.mark.parametrize("unit", ['"x"y', '{"a":"x', '["a', "“x”y", '{"a":1} x ', '\\"', "{:", '"', "C:\\t"])
def test_long_rubbish_takes_no_time(unit: str) -> None:
    started = time.process_time()
    for prefix in ('{"a": "', '[{"points": ['):
        try:
            read(prefix + unit * (10_000 // len(unit)))
        except BadInput:
            continue
    assert time.process_time() - started < 3.0


def test_texts_hold_what_looks_like_json() -> None:
    """The texts of the property tests would be worth little without quotes, brackets and tags in them."""
    joined = "".join(text(random.Random(seed)) for seed in range(200))
    assert all(mark in joined for mark in ('"', "”", "{", "]", "</think>", "```", "\\frac", "：", "//"))
