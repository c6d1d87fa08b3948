"""A JSON reader that puts right what models get wrong, and never touches what stands inside a string.

It reads objects and lists with missing or doubled commas, single, full-width or Chinese quotes, bare keys and words,
comments, wrong or missing closing brackets, unescaped quotes and back-slashes, and text that ends anywhere. Every
correction is counted. Full-width punctuation counts as punctuation outside strings only.
"""

from __future__ import annotations

import re
from typing import Any

#: Deeper nesting is no reply but a model that repeats itself.
DEEPEST = 80

#: Quote → the quotes that may end a string it began. Plain ASCII quotes end only themselves.
_QUOTES = {
    '"': '"', "'": "'", "“": "”“\"", "”": "”\"", "‘": "’‘'", "’": "’'", "＂": "＂\"", "＇": "＇'", "「": "」",
    "『": "』", "`": "`", "«": "»", "„": "“”\"",
}  # fmt: skip
_ANY_CLOSER = "\"'”“’‘＂＇」』`»"
_OPEN = {"{": "}", "｛": "}", "[": "]", "［": "]", "【": "]"}
_CLOSE = {"}": "}", "｝": "}", "]": "]", "］": "]", "】": "]"}
_COMMAS = ",，、;；"
_COLONS = ":：="
_SPACE = " \t\r\n\f\v\u00a0\u3000\ufeff\u200b\u2028\u2029"

_ANY_QUOTE = "\"'“”‘’＂＇「」『』`«»"
_QUOTE_SET = "\"'“”‘’＂＇「『`«„"
_AFTER_KEY = rf"[{_SPACE}]*(?:[:：]|=>|(?=[-\d\[{{\"“]|true|false|null))"
_QUOTED_KEY = (
    r"(?:\"(?:\\.|[^\"\\\n]){0,120}\"|'(?:\\.|[^'\\\n]){0,120}'"
    rf"|[{_QUOTE_SET}][^\n{_ANY_QUOTE}]{{0,120}}[{_ANY_CLOSER}]){_AFTER_KEY}"
)
#: `"key":` or `key:` or `key：`: what must follow a comma inside an object. A quoted key may lack its colon.
_KEY = re.compile(rf"[{_SPACE}]*(?:{_QUOTED_KEY}|[^\W\d][\w \-]{{0,60}}[{_SPACE}]*[:：])")
_PROPER_KEY = re.compile(rf"\"(?:\\.|[^\"\\\n])*\"(?={_AFTER_KEY})")
_BARE_KEY = re.compile(rf"[^{_COLONS}{_COMMAS}{{}}\[\]\n]{{1,120}}")
#: A string closed by another kind of quote than it was opened with, and the member after it.
_FOREIGN_END = re.compile(rf"[”“＂’』」][{_SPACE}]*[,，][{_SPACE}]*[\"“][^\"“”]{{1,60}}[\"”][{_SPACE}]*[:：]")
#: A quoted beginning without an end before the text ends: a key that was cut off.
_CUT_KEY = re.compile(rf"[{_SPACE}]*[{_QUOTE_SET}][^{_ANY_CLOSER}\n]{{0,120}}\Z")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": None, "undefined": None, "infinity": None}
_FULL_WIDTH = {ord("０") + i: str(i) for i in range(10)} | {ord("．"): ".", ord("－"): "-", ord("＋"): "+"}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_PLAIN = re.compile(r"[^\\\"'”“’‘＂＇」』`»\x00-\x1f]+")

#: LaTeX commands whose first letter makes a valid JSON escape (`\frac` would become a form feed and "rac"). Those whose
#: rest is a word of some language count only with mathematics after them.
_MATH = r"(?= ?[_^$\\{}()\d])"
LATEX = re.compile(
    r"(?:b(?:egin|eta|ar|inom|oldsymbol|mod|ullet|ot|f)|f(?:rac|orall|lat|ootnote)"
    rf"|n(?:abla|eq|otin|ewline|oindent|(?:u|e|ot|i){_MATH})"
    r"|r(?:ight(?:arrow)?|angle|ho|m(?=\{)|ceil|floor)"
    rf"|t(?:heta|imes|ext(?:bf|it|rm|tt)?(?=\{{)|ilde|riangle|frac|(?:au|an|op|o){_MATH}))(?![A-Za-z])"
)
#: The rest of a drive path after `C:`, as one token.
_PATH = re.compile(r"(?:\\[\w.\-~$%]+)+")
_DRIVE = re.compile(r"(?:^|[^A-Za-z0-9])[A-Za-z]:$")


class TooDeep(Exception):
    """The brackets nest deeper than any reply does."""


class Looks:
    """How often a reading may still look ahead; shared by all readings of a text, so rubbish costs linear time."""

    def __init__(self, left: int = 8_000) -> None:
        self.left = left


class Reader:
    """Reads one value from a position in a text. `repairs` counts corrections, `cut` says that the text ended inside.

    `ended`: the model stopped by itself, so a number at the very end is whole.
    """

    def __init__(self, text: str, at: int = 0, *, ended: bool = False, looks: Looks | None = None) -> None:
        self.text = text
        self._looks = looks or Looks()
        self._ended = ended
        self.at = at
        self.repairs = 0
        self.cut = False
        self._stack: list[str] = []
        self._closing: str | None = None

    def container(self) -> Any:
        """Read the object or list that begins here."""
        opener = self.text[self.at]
        if opener not in "{[":
            self.repairs += 1
        if len(self._stack) >= DEEPEST:
            raise TooDeep
        self.at += 1
        self._stack.append(_OPEN[opener])
        value: Any = self._object() if _OPEN[opener] == "}" else self._list()
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
            if _looks_bare_member(self.text, self.at) and self._stack[-1] == "]":
                # Members without their braces: `["a": 1, "b": 2]`.
                self.repairs += 1
                member: dict[str, Any] = {}
                key = self._key()
                self._colon()
                if key is None or self.at >= len(self.text):
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
                return False
            char = self.text[self.at]
            if char in _COMMAS:
                commas += 1
                if char != ",":
                    self.repairs += 1
                self.at += 1
            elif char in _CLOSE:
                if commas:
                    self.repairs += 1
                if char not in "}]":
                    self.repairs += 1
                self.at += 1
                if self._close_with(_CLOSE[char]):
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
            if char in _QUOTES:
                return self._string(key=True, in_object=True)
            self.repairs += 1
            match = None if char in _OPEN else _BARE_KEY.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                return match.group().strip(_SPACE)
            if char in _OPEN:
                self.container()  # a nameless member: there is nothing to keep it under
            else:
                self.at += 1
            if not self._next(True):
                return None

    def _colon(self) -> bool:
        """Step over the colon; False when there is none."""
        self._skip_space()
        if self.at >= len(self.text):
            self.cut = True
            self.repairs += 1
            return False
        char = self.text[self.at]
        if char != ":":
            self.repairs += 1
        if char not in _COLONS:
            return False
        self.at += 2 if self.text.startswith(("=>", ":="), self.at) else 1
        return True

    def _value(self, *, in_object: bool) -> tuple[Any, bool]:
        """Return a value and whether there was one."""
        self._skip_space()
        if self.at >= len(self.text):
            self.cut = True
            self.repairs += 1
            return None, False
        char = self.text[self.at]
        if char in _OPEN:
            return self.container(), True
        if char in _QUOTES:
            return self._strings(in_object), True
        if char in _COMMAS or char in _CLOSE:
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
                if self.at < len(self.text) and self.text[self.at] in _QUOTES:
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
            if char in "\n\r" or char in _CLOSE or (char in _COMMAS and self._ends_member(end, in_object)):
                break
            if char == "/" and text.startswith(("//", "/*"), end) and text[end - 1] != ":":
                break
            end += 1
        raw = text[start:end].strip(_SPACE)
        self.at = end if end > start else start + 1
        if end >= size:
            self.cut = True
            self.repairs += 1
            if not self._ended and raw.lower() not in _WORDS:
                return None, False  # `8` may be the beginning of `85`: no value is better than a wrong one
        plain = raw.translate(_FULL_WIDTH)
        number = _NUMBER.fullmatch(plain)
        if number is not None:
            if plain != raw or plain[0] in "+." or (plain.lstrip("-")[:1] == "0" and plain.lstrip("-")[1:2].isdigit()):
                self.repairs += 1
            return _to_number(plain), True
        word = raw.lower()
        if word in _WORDS:
            if raw not in ("true", "false", "null"):
                self.repairs += 1
            return _WORDS[word], True
        self.repairs += 1
        return (raw, True) if raw else (None, in_object)

    # -- strings

    def _string(self, *, key: bool, in_object: bool) -> str:
        """Read a string. Its end is the first quote after which the text goes on as JSON does."""
        text, start = self.text, self.at
        opener = text[start]
        if opener != '"':
            self.repairs += 1
        closers = _ANY_CLOSER if key else _QUOTES[opener]
        if key and (proper := _PROPER_KEY.match(text, start)) is not None:
            self.at = proper.end()
            return self._decode(start + 1, proper.end() - 1)
        end, inner, first = self._find_end(start, closers, key, in_object)
        if not key and (end is None or inner) and self._looks.left > 0:
            # A quote of the other kind may have closed it; its own kind then comes only with the next string.
            foreign = _FOREIGN_END.search(text, start + 1, len(text) if end is None else end)
            end = foreign.start() if foreign is not None else end
            if end is None and first is None:
                end, inner, first = self._find_end(start, _ANY_CLOSER.replace(opener, ""), key, in_object)
        if end is None and first is not None:
            end, inner = first, inner + 1
        self.repairs += inner
        if end is None:
            self.cut = True
            self.repairs += 1
            end = len(text)
        self.at = min(len(text), end + 1)
        return self._decode(start + 1, end)

    def _find_end(self, start: int, closers: str, key: bool, in_object: bool) -> tuple[int | None, int, int | None]:
        """Return the closing quote's position, how many quotes were passed, and the best of those if none closes."""
        text, size = self.text, len(self.text)
        at, inner, raw = start + 1, 0, False
        first: int | None = None
        passed: int | None = None
        while at < size:
            match = _PLAIN.match(text, at)
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
        if first is None and passed is not None and _KEY.search(text, passed + 1, passed + 2000):
            first = passed  # other members follow: better a short string than one that swallows them
        return None, inner, first

    def _ends_string(self, at: int, key: bool, in_object: bool, doubt: bool = False) -> bool:
        """Whether what follows a quote fits the end of a string here; else the quote is a part of the text."""
        text, size = self.text, len(self.text)
        while at < size and text[at] in _SPACE:
            at += 1
        if at >= size:
            return True
        char = text[at]
        if key:
            return char in _COLONS or (char in _CLOSE and not _KEY.match(text, at))
        if char in _CLOSE:
            return self._ends_container(at, doubt)
        if char in _COMMAS:
            return self._ends_member(at, in_object)
        if char in _COLONS:
            return False
        if text.startswith(("//", "/*"), at):
            return True
        if char == "+":
            return bool(re.compile(rf"\+[{_SPACE}]*[{_QUOTE_SET}]").match(text, at))
        # A missing comma: the next member, or the next string of a list on a line of its own.
        if in_object:
            return bool(_KEY.match(text, at)) and char in _QUOTES
        return char in _OPEN or (char in _QUOTES and "\n" in text[max(0, at - 8) : at])

    def _ends_container(self, at: int, doubt: bool) -> bool:
        """Whether a closing bracket after a quote closes something: what follows must fit the container around."""
        text, size = self.text, len(self.text)
        if len(self._stack) < 2:
            return not doubt or at + 1 >= size or text[at + 1] in "\r\n`"
        at += 1
        while at < size and text[at] in _SPACE:
            at += 1
        return at >= size or text[at] in _CLOSE or text[at] in _COMMAS or text[at] in _OPEN or text[at] in _QUOTES

    def _ends_member(self, at: int, in_object: bool) -> bool:
        """Whether a comma separates members: a key must follow in an object, a value in a list."""
        text, size = self.text, len(self.text)
        while at < size and (text[at] in _SPACE or text[at] in _COMMAS):
            at += 1
        if at >= size or text[at] in _CLOSE or text.startswith(("//", "/*", "..."), at):
            return True
        if in_object:
            return bool(_KEY.match(text, at) or _CUT_KEY.match(text, at))
        char = text[at]
        if char in _QUOTES or char in _OPEN or char.isdigit() or char in "-+.":
            return True
        word = re.compile(r"\w+").match(text, at)
        return bool(_KEY.match(text, at)) or (word is not None and _stands_alone(text, word))

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
            if back >= literal_until and following != "\\" and _DRIVE.search(text, max(start, back - 3), back):
                literal_until = _path_end(text, back, end)
            if (
                following
                and following in _ESCAPES
                and following not in "\"'\\"
                and (back < literal_until or LATEX.match(text, back + 1, end))
            ):
                self.repairs += 1
                out.append("\\")
                at = back + 1
            elif following == "u" and _HEX4.match(text, back + 2, end):
                char, at = self._unicode(back, end)
                out.append(char)
            elif following and following in _ESCAPES:
                if following == "'":
                    self.repairs += 1
                out.append(_ESCAPES[following])
                at = back + 2
            else:
                self.repairs += 1
                out.append("\\")
                at = back + 1
        return "".join(out)

    def _unicode(self, back: int, end: int) -> tuple[str, int]:
        code = int(self.text[back + 2 : back + 6], 16)
        if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", back + 6) and _HEX4.match(self.text, back + 8, end):
            low = int(self.text[back + 8 : back + 12], 16)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), back + 12
        if 0xD800 <= code < 0xE000:
            self.repairs += 1
            return "\ufffd", back + 6
        return chr(code), back + 6

    def _skip_space(self) -> None:
        text, size = self.text, len(self.text)
        while self.at < size:
            if text[self.at] in _SPACE:
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


def _could_end(text: str, at: int) -> bool:
    """Whether a comma, a closing bracket or the text's end follows a quote."""
    rest = text[at : at + 40].lstrip(_SPACE)
    return not rest or rest[0] in _COMMAS or rest[0] in _CLOSE


def _is_raw(text: str, start: int, at: int) -> bool:
    """Whether a back-slash shows that this string's back-slashes are not escaped."""
    following = text[at + 1 : at + 2]
    if following in _ESCAPES or (following == "u" and _HEX4.match(text, at + 2)):
        return following != "\\" and bool(_DRIVE.search(text, max(start + 1, at - 3), at))
    return True


def _path_end(text: str, at: int, end: int) -> int:
    """Return the end of the Windows path whose first back-slash is here; `at` when it is text and a line break.

    A path shows by a back-slash that is no escape, by a file name's ending, or by two folders in small letters
    (`C:\\temp\\new`); "Plan B:" and a line break is none.
    """
    path = _PATH.match(text, at, end)
    if path is None:
        return at
    parts = path.group().split("\\")[1:]
    shows = (
        any(part[0] not in "bfnrtu" for part in parts)
        or re.search(r"\w\.\w{1,5}$", parts[-1]) is not None
        or (len(parts) > 1 and all(part[1:2].islower() for part in parts))
    )
    return path.end() if shows else at


def _looks_bare_member(text: str, at: int) -> bool:
    return text[at] in _QUOTES and bool(
        re.compile(rf"[{_QUOTE_SET}][^\n\"“”＂,，]{{1,60}}[{_ANY_CLOSER}][{_SPACE}]*[:：]").match(text, at)
    )


def _follows_member(text: str, at: int) -> bool:
    """Whether a comma and a key follow."""
    match = re.compile(rf"[{_SPACE}]*[{_COMMAS}]").match(text, at)
    return match is not None and bool(_KEY.match(text, match.end()))


def _stands_alone(text: str, word: re.Match[str]) -> bool:
    following = text[word.end() : word.end() + 1]
    return word.group().lower() in _WORDS and (
        not following or following in _COMMAS or following in _CLOSE or following in _SPACE
    )


def _to_number(text: str) -> int | float | None:
    try:
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    except (ValueError, OverflowError):  # thousands of digits
        return None
