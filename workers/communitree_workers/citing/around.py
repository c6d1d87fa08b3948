"""What stands around a number or a bracket: the word before it, blanks, a name or sign before the next number."""

from __future__ import annotations

import re
from typing import Protocol

from communitree_workers.citing import signs

_IDENTIFIER = re.compile(r"[^\s]{1,40}\Z")


class Names(Protocol):
    """What a scan needs to know of its grammar."""

    own: str | None
    bare: bool
    initial: str
    names: re.Pattern[str]

    def kind(self, name: str) -> str:
        """Return the kind that a name stands for."""


def identifier_before(text: str, at: int) -> str:
    """Return the word that stands directly before `at`, without white space between; "" where there is none."""
    if not at or not (text[at - 1].isalnum() or text[at - 1] in "_])"):
        return ""
    match = _IDENTIFIER.search(text, max(0, at - 40), at)
    return match[0].rstrip("_*") if match else ""


def number_start(text: str, at: int, names: Names) -> int:
    """Return where a number begins behind `#`, a name or the names' initial: `Reports 12 to Report 14`."""
    name = names.names.match(text, at)
    at = skip_blank(text, name.end()) if name else at
    sign = signs.SIGN.match(text, at)
    at = sign.end() if sign else at
    if names.initial and text[at : at + 1].casefold() == names.initial and text[at + 1 : at + 2].isdigit():
        at += 1
    return at


def skip_blank(text: str, at: int) -> int:
    """Return where the blanks from `at` on end."""
    match = signs.BLANK.match(text, at)
    return match.end() if match else at


def no_word(before: str) -> bool:
    """Chinese has no blanks between words: a reference stands directly behind one."""
    return ord(before[-1]) > 0x2E7F or (before[-1] == ")" and not signs.CALL.search(before))
