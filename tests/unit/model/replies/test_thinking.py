"""Thinking is taken off where models think, and text that speaks of its marks survives."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.model.replies.thinking import ELEMENTS, END_MARKS, MARKS, WRAPPERS, Ear, spoken

ANSWER = "The harbour was built in 1931. [Data: Reports (1)]\n\nIt is deep."
DRAFT = 'The user wants themes. Draft: {"points": [{"description": "DRAFT", "score": 99}]}. No, wrong.'

THOUGHTS = {
    **{name: f"<{name}>\n{DRAFT}\n</{name}>\n\n" for name in ELEMENTS},
    **{mark: f"{mark}\n{DRAFT}\n{close}\n" for mark, close in MARKS.items() if not mark.startswith("<details")},
    "details": f'<details type="reasoning" done="true">\n{DRAFT}</details>\n',
    "upper case": f"<THINK>{DRAFT}</THINK>",
    "attributes": f'<think lang="en">{DRAFT}</think>',
    "empty": "<think>\n\n</think>\n\n",
    "twice": f"<think>{DRAFT}</think>\n<think>{DRAFT}</think>",
    "quoted inside": f"<think>I must close `</think>` first. {DRAFT}</think>",
    "only the closing": f"{DRAFT}\n</think>\n\n",
    "only the closing, in its line": f"{DRAFT}</think>\n\n",
    "only the closing, no line break": f"{DRAFT}</think>",
    "only the closing, of Kimi": f"{DRAFT}\n◁/think▷",
    "final response": f"{DRAFT}\n[BEGIN FINAL RESPONSE]\n",
    "harmony": f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
    "harmony with a comment": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>commentary<|message|>Now I answer."
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>"
    ),
    "harmony without its ends": f"<|channel|>analysis<|message|>{DRAFT}<|channel|>final<|message|>",
    "harmony without its tokens": f"analysis{DRAFT}assistantfinal",
    "harmony, final alone": "<|channel|>final<|message|>",
    "harmony, no channel": "<|start|>assistant<|message|>",
    "then the answer's own tag": f"<think>{DRAFT}</think>\n<answer>\n",
    "solution": f"<|begin_of_thought|>{DRAFT}<|end_of_thought|>\n\n<|begin_of_solution|>\n",
}


@pytest.mark.parametrize("name", THOUGHTS)
def test_thinking_is_taken_off(name: str) -> None:
    found = spoken(f"\n{THOUGHTS[name]}{ANSWER}")
    assert found.text == ANSWER
    assert not found.unfinished
    assert found.thought == (DRAFT in THOUGHTS[name] or name == "empty")


@pytest.mark.parametrize("mark", END_MARKS)
def test_marks_of_the_end_are_taken_off(mark: str) -> None:
    assert spoken(f"{ANSWER}{mark}").text == ANSWER
    assert spoken(f"{ANSWER}{mark}\n{mark}\n").text == ANSWER + ""
    assert spoken(f"The token {mark} ends a turn.").text == f"The token {mark} ends a turn."


@pytest.mark.parametrize(
    "raw", [f"<think>{DRAFT}", f"[THINK]{DRAFT}", f"<|channel|>analysis<|message|>{DRAFT}", f"<think>{DRAFT}</thin"]
)
def test_an_opening_without_an_end_leaves_nothing(raw: str) -> None:
    found = spoken(raw)
    assert (found.text, found.thought, found.unfinished) == ("", True, True)


@pytest.mark.parametrize(
    "text",
    [
        "R1 writes <think> and </think> around its reasoning.",
        "R1 writes <think>like this</think>\nand then answers.",
        "The closing tag `</think>` was missing.\nSo the text leaked.",
        "它在答案前写“</think>”。之后才是答案。",
        "```\nreasoning\n</think>\nanswer\n```\nThat is the format.",
        '{"description": "It closes with\n</think>\nand goes on.", "score": 5}',
        '{"description": "<think>no</think>"}',
        "The glossary:\n</think> ends a block\n<think> begins one",
        "<thinker> is no mark.",
        "<b>Bold</b> & [THINKING] about it [1]",
        "a < b, and c <- d; analysis follows.",
        "Analysis: the assistantfinal token is no word.",
        "Here is my response: no.",
        "<",
        "[Data: Reports (1, 2)]",
    ],
)
def test_text_that_speaks_of_marks_survives(text: str) -> None:
    found = spoken(text)
    assert found.text == text
    assert not found.thought


def heard(raw: str, cuts: list[int]) -> tuple[str, str]:
    """Return what was told in the end, and the text at the close."""
    ear, told = Ear(), ""
    for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        piece = ear.hear(raw[start:stop])
        told = piece if ear.restarted else told + piece
    return told, ear.close().text


_MARKS = [*(f"<{name}>" for name in ELEMENTS[:3]), *(f"</{name}>" for name in ELEMENTS[:3]), *MARKS, *MARKS.values()]
_HARMONY = ["<|channel|>", "analysis", "final", "<|message|>", "<|start|>", "assistant", "assistantfinal"]
_TEXT = ["`", '"', "\n", " ", ".", "{", "```\n", "<", "[", "◁", "word", "好。", "</", "<th"]
_BITS = st.sampled_from([*_MARKS, *END_MARKS, *WRAPPERS, *_HARMONY, *_TEXT])


@given(st.lists(_BITS, max_size=14).map("".join), st.integers(0, 2**32))
@settings(max_examples=600)
def test_any_cutting_tells_the_same(raw: str, seed: int) -> None:
    rng = random.Random(seed)
    cuts = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(12)))
    whole = spoken(raw).text
    told, text = heard(raw, cuts)
    assert text == whole
    assert heard(raw, list(range(1, len(raw))))[1] == whole
    # What was told before the end is a beginning of it, unless the end itself showed it to be thinking.
    assert whole.startswith(told) or spoken(raw).thought


_OPENED = [name for name in THOUGHTS if not any(word in name for word in ("closing", "final response", "tokens"))]


@pytest.mark.parametrize("name", _OPENED)
def test_nothing_of_opened_thinking_is_ever_told(name: str) -> None:
    raw = THOUGHTS[name] + ANSWER
    ear = Ear()
    told = ""
    for char in raw:
        told += ear.hear(char)
        assert not ear.restarted
        assert ANSWER.startswith(told)
    assert len(told) > len(ANSWER) - 3


def test_a_closing_that_was_never_opened_makes_the_text_begin_again() -> None:
    ear = Ear()
    told = ear.hear(f"{DRAFT}\n</thi")
    assert told == f"{DRAFT}\n"
    rest = ear.hear(f"nk>\n\n{ANSWER}")
    assert ear.restarted
    assert rest == ANSWER


def test_a_long_stream_takes_no_time() -> None:
    ear, started = Ear(), time.process_time()
    for _ in range(20_000):
        ear.hear("a word [1] ")
    assert ear.close().text.startswith("a word")
    assert time.process_time() - started < 3.0
