"""Where a damaged reply's strings end, and what stands in them.

No step here changes a string's content, beyond undoing the escapes that are escapes.
"""

from __future__ import annotations

import re

from communitree_workers.model.replies.marks import (
    ANY_CLOSER,
    CLOSE,
    COLONS,
    COMMAS,
    CUT_ESCAPE,
    CUT_KEY,
    DRIVE,
    ESCAPES,
    FOREIGN_END,
    HEX4,
    KEY,
    LATEX,
    LITERAL,
    OPEN,
    PATH,
    PLAIN,
    PROPER_KEY,
    QUOTE_SET,
    QUOTES,
    SPACE,
    WORDS,
)


class Looks:
    """How often a reading may still look ahead; shared by all readings of a text, so rubbish costs linear time."""

    def __init__(self, left: int = 8_000) -> None:
        self.left = left


class Scanner:
    """A position in a text, the brackets open around it, and what was put right on the way."""

    def __init__(self, text: str, at: int, looks: Looks | None) -> None:
        self.text = text
        self.at = at
        self.repairs = 0
        self.cut = self.broken = False
        self._looks = looks or Looks()
        self._stack: list[str] = []

    def _string(self, *, key: bool, in_object: bool) -> str:
        """Read a string. Its end is the first quote after which the text goes on as JSON does."""
        text, start = self.text, self.at
        opener = text[start]
        if opener != '"':
            self.repairs += 1
        closers = ANY_CLOSER if key else QUOTES[opener]
        if key and (proper := PROPER_KEY.match(text, start)) is not None:
            self.at = proper.end()
            return self._decode(start + 1, proper.end() - 1)
        end, inner, first = self._find_end(start, closers, key, in_object)
        if not key and (end is None or inner) and self._looks.left > 0:
            # A quote of the other kind may have closed it; its own kind then comes only with the next string.
            foreign = FOREIGN_END.search(text, start + 1, len(text) if end is None else end)
            end = foreign.start() if foreign is not None else end
        if end is None and first is not None:
            end, inner = first, inner + 1
        self.repairs += inner
        if end is None:
            self.cut = self.broken = True
            self.repairs += 1
            self.at = len(text)
            return self._decode(start + 1, _before_cut_escape(text, start + 1))
        self.at = end + 1
        return self._decode(start + 1, end)

    def _find_end(self, start: int, closers: str, key: bool, in_object: bool) -> tuple[int | None, int, int | None]:
        """Return the closing quote's position, how many quotes were passed, and the best of those if none closes."""
        text, size = self.text, len(self.text)
        at, inner, raw = start + 1, 0, False
        first: int | None = None
        passed: int | None = None
        while at < size:
            match = PLAIN.match(text, at)
            if match is not None:
                at = match.end()
                if at >= size:
                    break
            char = text[at]
            if char == "\\":
                following = text[at + 1 : at + 2]
                raw = raw or _is_raw(text, start, at)
                if raw and following and following in closers and self._ends_string(at + 2, key, in_object):
                    return at + 1, inner + 1, None
                at += 2
                continue
            if char in closers:
                self._looks.left -= 1
                if self._looks.left < 0 or self._ends_string(at + 1, key, in_object, inner > 0):
                    return at, inner, None
                passed = at if passed is None else passed
                if first is None and (key or _could_end(text, at + 1)):
                    first = at
                inner += 1
            at += 1
        if first is None and passed is not None and KEY.search(text, passed + 1, passed + 2000):
            first = passed  # other members follow: better a short string than one that swallows them
        return None, inner, first

    def _ends_string(self, at: int, key: bool, in_object: bool, doubt: bool = False) -> bool:
        """Whether what follows a quote fits the end of a string here; else the quote is a part of the text."""
        text, size = self.text, len(self.text)
        while at < size and text[at] in SPACE:
            at += 1
        if at >= size:
            return True
        char = text[at]
        if key:
            return char in COLONS or (char in CLOSE and not KEY.match(text, at))
        if char in CLOSE:
            return self._ends_container(at, doubt)
        if char in COMMAS:
            return self._ends_member(at, in_object)
        if char in COLONS:
            return False
        if text.startswith(("//", "/*"), at):
            return True
        if char == "+":
            return bool(re.compile(rf"\+[{SPACE}]*[{QUOTE_SET}]").match(text, at))
        # A missing comma: the next member, or the next string of a list on a line of its own.
        if in_object:
            return bool(KEY.match(text, at)) and char in QUOTES
        if char in OPEN:
            return True
        return (char in QUOTES or LITERAL.match(text, at) is not None) and "\n" in text[max(0, at - 8) : at]

    def _ends_container(self, at: int, doubt: bool) -> bool:
        """Whether a closing bracket after a quote closes something: what follows must fit the container around."""
        text, size = self.text, len(self.text)
        if len(self._stack) < 2:
            return not doubt or at + 1 >= size or text[at + 1] in "\r\n`"
        at += 1
        while at < size and text[at] in SPACE:
            at += 1
        if at >= size or text[at] in CLOSE or text[at] in COMMAS or text[at] in OPEN or text[at] in QUOTES:
            return True
        return text.startswith(("//", "/*"), at) or (
            LITERAL.match(text, at) is not None and "\n" in text[max(0, at - 8) : at]
        )

    def _ends_member(self, at: int, in_object: bool) -> bool:
        """Whether a comma separates members: a key must follow in an object, a value in a list."""
        text, size = self.text, len(self.text)
        while at < size and (text[at] in SPACE or text[at] in COMMAS):
            at += 1
        if at >= size or text[at] in CLOSE or text.startswith(("//", "/*", "..."), at):
            return True
        if in_object:
            return bool(KEY.match(text, at) or CUT_KEY.match(text, at))
        char = text[at]
        if char in QUOTES or char in OPEN or char.isdigit() or char in "-+.":
            return True
        word = re.compile(r"\w+").match(text, at)
        return bool(KEY.match(text, at)) or (word is not None and _stands_alone(text, word))

    def _decode(self, start: int, end: int) -> str:
        """Undo the escapes between two positions. What is no escape stays as it is, back-slash included."""
        text = self.text
        if text.find("\\", start, end) < 0:
            self.repairs += any(char < " " for char in text[start:end])
            return text[start:end]
        out: list[str] = []
        at = start
        literal_until = start
        while at < end:
            back = text.find("\\", at, end)
            if back < 0:
                out.append(text[at:end])
                break
            out.append(text[at:back])
            following = text[back + 1] if back + 1 < end else ""
            if back >= literal_until and following != "\\" and DRIVE.search(text, max(0, back - 3), back):
                literal_until = _path_end(text, back, end)
            if (
                following
                and following in ESCAPES
                and following not in "\"'\\"
                and (back < literal_until or LATEX.match(text, back + 1, end))
            ):
                self.repairs += 1
                out.append("\\")
                at = back + 1
            elif following == "u" and HEX4.match(text, back + 2, end):
                char, at = self._unicode(back, end)
                out.append(char)
            elif following and following in ESCAPES:
                if following == "'":
                    self.repairs += 1
                out.append(ESCAPES[following])
                at = back + 2
            else:
                self.repairs += 1
                out.append("\\")
                at = back + 1
        return "".join(out)

    def _unicode(self, back: int, end: int) -> tuple[str, int]:
        code = int(self.text[back + 2 : back + 6], 16)
        if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", back + 6) and HEX4.match(self.text, back + 8, end):
            low = int(self.text[back + 8 : back + 12], 16)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), back + 12
        if 0xD800 <= code < 0xE000:
            self.repairs += 1
            return "\ufffd", back + 6
        return chr(code), back + 6


def _could_end(text: str, at: int) -> bool:
    """Whether a comma, a closing bracket or the text's end follows a quote."""
    rest = text[at : at + 40].lstrip(SPACE)
    return not rest or rest[0] in COMMAS or rest[0] in CLOSE


def _before_cut_escape(text: str, start: int) -> int:
    """Return the end of a cut-off text without an escape that was cut in two."""
    escape = CUT_ESCAPE.search(text, max(start, len(text) - 12))
    if escape is None:
        return len(text)
    before = text[start : escape.start()]
    doubled = (len(before) - len(before.rstrip("\\"))) % 2 == 1
    return len(text) if doubled else escape.start()


def _is_raw(text: str, start: int, at: int) -> bool:
    """Whether a back-slash shows that this string's back-slashes are not escaped."""
    following = text[at + 1 : at + 2]
    if following in ESCAPES or (following == "u" and HEX4.match(text, at + 2)):
        return following != "\\" and bool(DRIVE.search(text, max(start, at - 3), at))
    return True


def _path_end(text: str, at: int, end: int) -> int:
    """Return the end of the Windows path whose first back-slash is here; `at` when it is text and a line break.

    A path shows by a back-slash that is no escape, by a file name's ending, or by two folders in small letters
    (`C:\\temp\\new`); "Plan B:" and a line break is none.
    """
    path = PATH.match(text, at, end)
    if path is None:
        return at
    parts = path.group().split("\\")[1:]
    shows = (
        any(part[0] not in "bfnrtu" for part in parts)
        or re.search(r"\w\.\w{1,5}$", parts[-1]) is not None
        or (len(parts) > 1 and all(part[1:2].islower() for part in parts))
    )
    return path.end() if shows else at


def _stands_alone(text: str, word: re.Match[str]) -> bool:
    following = text[word.end() : word.end() + 1]
    return word.group().lower() in WORDS and (
        not following or following in COMMAS or following in CLOSE or following in SPACE
    )
