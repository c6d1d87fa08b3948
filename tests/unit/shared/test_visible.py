from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_shared.visible import OneLine, as_json, one_line, visible

#: What no output may hold, by the properties of characters and not by our own ranges.
NAMED = {"RLO", "LRO", "RLE", "LRE", "PDF", "LRI", "RLI", "FSI", "PDI"}


def obeyed(text: str) -> set[str]:
    """Return the characters that a terminal would obey, or that turn the text around."""
    return {
        c
        for c in text
        if (unicodedata.category(c) == "Cc" and c not in "\n\t") or unicodedata.bidirectional(c) in NAMED
    }


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("\x1b]0;owned\x07", "␛]0;owned␇"),
        ("\x1b[2J\x9b2J", "␛[2J\\x9b2J"),
        ("a\rb\r\nc\td\x7f", "a␍b\nc\td␡"),
        ("user\u202etxt.exe\u2066", "user\\u202etxt.exe\\u2066"),
        ("pay\u200bpal\ufeff\u2028", "pay\\u200bpal\\ufeff\\u2028"),
        ("\udcff \U000e0041", "\\udcff \\U000e0041"),
        ("می\u200cخواهم 👨\u200d👩 宝玉 é — ␛", "می\u200cخواهم 👨\u200d👩 宝玉 é — ␛"),
    ],
)
def test_what_is_obeyed_or_unseen_becomes_a_sign_and_all_else_stays(given_text: str, shown: str) -> None:
    assert visible(given_text) == shown
    assert visible(shown) == shown


def test_every_control_of_unicode_is_shown() -> None:
    codes = [c for c in range(sys.maxunicode + 1) if obeyed(chr(c)) or 0xD800 <= c <= 0xDFFF]
    assert len(codes) == 63 + 9 + 2048
    for code in codes:
        assert visible(chr(code)) != chr(code)
        assert not obeyed(visible(chr(code)))


@given(st.text())
def test_json_is_the_same_and_fit_to_be_printed(text: str) -> None:
    printed = as_json({text: [text, 1]})
    assert not obeyed(printed)
    assert visible(printed) == printed
    assert json.loads(printed) == {text: [text, 1]}


def test_nobody_forges_a_line_of_the_log() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLine("%(levelname)s %(message)s"))
    log = logging.Logger("test")
    log.addHandler(handler)
    log.warning("a.txt\nERROR all is lost\x1b[2J")
    try:
        raise ValueError("\x1b]52;c;aGk=\x07")
    except ValueError:
        log.exception("failed")
    said = stream.getvalue()
    assert said.startswith("WARNING a.txt␊ERROR all is lost␛[2J\nERROR failed\nTraceback")
    assert not obeyed(said)
    assert one_line("a\nb") == "a␊b"
