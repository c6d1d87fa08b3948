"""A JSON reader that puts right what models get wrong, and never touches what stands inside a string.

It reads objects and lists with missing or doubled commas, single, full-width or Chinese quotes, bare keys and words,
comments, wrong or missing closing brackets, unescaped quotes and back-slashes, and text that ends anywhere. Every
correction is counted. Full-width punctuation counts as punctuation outside strings only.
"""

from __future__ import annotations

import re
from typing import Any

from communitree_workers.model.replies.marks import (
    BARE_KEY,
    BARE_MEMBER,
    CLOSE,
    COLONS,
    COMMAS,
    FULL_WIDTH,
    KEY,
    NUMBER,
    OPEN,
    QUOTES,
    SPACE,
    WORDS,
)
from communitree_workers.model.replies.strings import Looks, Scanner

#: Deeper nesting is no reply but a model that repeats itself.
DEEPEST = 80


class TooDeep(Exception):
    """The brackets nest deeper than any reply does."""


class Reader(Scanner):
    """Reads one value from a position in a text. `repairs` counts corrections, `cut` says that the text ended inside,
    `broken` that it did so in the middle of a member; `unclosed` counts the brackets that were still open.

    `ended`: the model stopped by itself, so a number at the very end is whole.
    """

    def __init__(self, text: str, at: int = 0, *, ended: bool = False, looks: Looks | None = None) -> None:
        super().__init__(text, at, looks)
        self._ended = ended
        self.unclosed = 0
        self._closing: str | None = None

    def container(self) -> Any:
        """Read the object or list that begins here."""
        opener = self.text[self.at]
        if opener not in "{[":
            self.repairs += 1
        if len(self._stack) >= DEEPEST:
            raise TooDeep
        self.at += 1
        self._stack.append(OPEN[opener])
        value: Any = self._object() if OPEN[opener] == "}" else self._list()
        self._stack.pop()
        return value

    def members(self, into: dict[str, Any]) -> dict[str, Any]:
        """Read the members of an object whose braces are missing, up to the end of the text."""
        self._stack.append("}")
        self._object(into)
        self._stack.pop()
        self.repairs += 1
        return into

    # -- objects and lists

    def _object(self, into: dict[str, Any] | None = None) -> dict[str, Any]:
        out: dict[str, Any] = {} if into is None else into
        while self._next(bool(out)):
            key = self._key()
            if key is None:
                break
            named = self._colon()
            if self.at >= len(self.text):
                self.cut = self.broken = True
                break
            value, complete = self._value(in_object=True)
            if complete and (named or value is not None):
                if key in out and out[key] != value:
                    self.repairs += 1
                out[key] = value
        return out

    def _list(self) -> list[Any]:
        out: list[Any] = []
        while self._next(bool(out)):
            if BARE_MEMBER.match(self.text, self.at):
                # Members without their braces: `["a": 1, "b": 2]`.
                self.repairs += 1
                member: dict[str, Any] = {}
                key = self._key()
                self._colon()
                if key is None or self.at >= len(self.text):
                    self.cut = self.broken = True
                    break
                value, complete = self._value(in_object=False)
                if complete:
                    member[key] = value
                if out and isinstance(out[-1], dict) and not set(member) & set(out[-1]):
                    out[-1].update(member)
                else:
                    out.append(member)
                continue
            value, complete = self._value(in_object=False)
            if complete:
                out.append(value)
        return out

    def _next(self, after_value: bool) -> bool:
        """Step to the next member; False at the end of this container."""
        if self._closing is not None:
            return not self._close_with(self._closing)
        commas = 0
        while True:
            self._skip_space()
            if self.at >= len(self.text):
                self.repairs += 1
                self.cut = True
                self.unclosed += 1
                self.broken = self.broken or commas > 0
                return False
            char = self.text[self.at]
            if char in COMMAS:
                commas += 1
                if char != ",":
                    self.repairs += 1
                self.at += 1
            elif char in CLOSE:
                if commas:
                    self.repairs += 1
                if char not in "}]":
                    self.repairs += 1
                self.at += 1
                if self._close_with(CLOSE[char]):
                    return False
            elif self.text.startswith("...", self.at) or char == "…":
                self.repairs += 1
                self.at += 3 if char == "." else 1
            else:
                if after_value and commas != 1:
                    self.repairs += 1
                return True

    def _close_with(self, closer: str) -> bool:
        """Whether a closing bracket ends this container. A wrong one counts as this one's, an outer one's, or none."""
        mine = self._stack[-1]
        if closer == mine:
            self._closing = None
            return True
        self.repairs += 1
        if closer not in self._stack:
            self._closing = None
            return False
        outer_goes_on = len(self._stack) > 1 and self._stack[-2] == "}" and mine == "]"
        if self._closing is None and outer_goes_on and _follows_member(self.text, self.at):
            return True  # `[1, 2}, "b": 3`: a slip of the pen, the object goes on
        self._closing = closer
        return True

    # -- keys, colons, values

    def _key(self) -> str | None:
        while True:
            char = self.text[self.at]
            if char in QUOTES:
                return self._string(key=True, in_object=True)
            self.repairs += 1
            match = None if char in OPEN else BARE_KEY.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                return match.group().strip(SPACE)
            if char in OPEN:
                self.container()  # a nameless member: there is nothing to keep it under
            else:
                self.at += 1
            if not self._next(True):
                return None

    def _colon(self) -> bool:
        """Step over the colon; False when there is none."""
        self._skip_space()
        if self.at >= len(self.text):
            self.cut = self.broken = True
            self.repairs += 1
            return False
        char = self.text[self.at]
        if char != ":":
            self.repairs += 1
        if char not in COLONS:
            return False
        self.at += 2 if self.text.startswith(("=>", ":="), self.at) else 1
        return True

    def _value(self, *, in_object: bool) -> tuple[Any, bool]:
        """Return a value and whether there was one."""
        self._skip_space()
        if self.at >= len(self.text):
            self.cut = self.broken = True
            self.repairs += 1
            return None, False
        char = self.text[self.at]
        if char in OPEN:
            return self.container(), True
        if char in QUOTES:
            return self._strings(in_object), True
        if char in COMMAS or char in CLOSE:
            self.repairs += 1
            return None, in_object
        return self._bare(in_object)

    def _strings(self, in_object: bool) -> str:
        """A string, and any that `+` adds to it."""
        text = self._string(key=False, in_object=in_object)
        while True:
            mark = self.at
            self._skip_space()
            if self.at + 1 < len(self.text) and self.text[self.at] == "+":
                self.at += 1
                self._skip_space()
                if self.at < len(self.text) and self.text[self.at] in QUOTES:
                    self.repairs += 1
                    text += self._string(key=False, in_object=in_object)
                    continue
            self.at = mark
            return text

    def _bare(self, in_object: bool) -> tuple[Any, bool]:
        """A number, a word, or text without quotes."""
        start = self.at
        text, size = self.text, len(self.text)
        end = start
        while end < size:
            char = text[end]
            if char in "\n\r" or char in CLOSE or (char in COMMAS and self._ends_member(end, in_object)):
                break
            if char == "/" and text.startswith(("//", "/*"), end) and text[end - 1] != ":":
                break
            end += 1
        raw = text[start:end].strip(SPACE)
        self.at = end if end > start else start + 1
        if end >= size:
            self.cut = True
            self.repairs += 1
            if not self._ended and raw.lower() not in WORDS:
                self.broken = True
                return None, False  # `8` may be the beginning of `85`: no value is better than a wrong one
        plain = raw.translate(FULL_WIDTH)
        number = NUMBER.fullmatch(plain)
        if number is not None:
            if plain != raw or plain[0] in "+." or (plain.lstrip("-")[:1] == "0" and plain.lstrip("-")[1:2].isdigit()):
                self.repairs += 1
            return _to_number(plain), True
        word = raw.lower()
        if word in WORDS:
            if raw not in ("true", "false", "null"):
                self.repairs += 1
            return WORDS[word], True
        self.repairs += 1
        return (raw, True) if raw else (None, in_object)

    def _skip_space(self) -> None:
        text, size = self.text, len(self.text)
        while self.at < size:
            if text[self.at] in SPACE:
                self.at += 1
            elif text.startswith("//", self.at) or (
                text[self.at] == "#" and text[self.at - 1 : self.at] in ("", "\n", " ")
            ):
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end
                self.repairs += 1
            elif text.startswith("/*", self.at):
                end = text.find("*/", self.at)
                self.at = size if end < 0 else end + 2
                self.repairs += 1
            else:
                return


def _follows_member(text: str, at: int) -> bool:
    """Whether a comma and a key follow."""
    match = re.compile(rf"[{SPACE}]*[{COMMAS}]").match(text, at)
    return match is not None and bool(KEY.match(text, match.end()))


def _to_number(text: str) -> int | float | None:
    try:
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    except (ValueError, OverflowError):  # thousands of digits
        return None
