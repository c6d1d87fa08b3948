"""One bracket, read from its opening on: what it names, where it ends, and whether all of it was understood.

A scan that fails has looked at a few words only, or goes on behind all it has looked at: that keeps the grammar linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from communitree_workers.citing import signs
from communitree_workers.citing.around import Names, identifier_before, no_word, number_start, skip_blank
from communitree_workers.citing.signs import bare

#: A range wider than this is no range of ids.
WIDEST = 100
#: No id has more digits; a longer number is cut, to be no id of any row all the same.
_DIGITS = 18
_NESTED = 4
_OPENING = frozenset(signs.OPENING)


@dataclass
class Outcome:
    """`looks`: it looks like a reference. `whole`: nothing in it was passed over. `end`: where to go on reading."""

    end: int
    parts: list[tuple[str, list[int], bool]] = field(default_factory=list)
    looks: bool = False
    unverified: bool = False
    whole: bool = True
    bare: bool = False


class Scan:
    """Reads one bracket of a text."""

    def __init__(self, names: Names, text: str, match: re.Match[str], stop: int, *, attached: bool) -> None:
        """`match`: of its opening; `stop`: reads no further; `attached`: another reference ends where it begins."""
        self.names, self.text, self.stop, self.attached = names, text, stop, attached
        self.first, self.at = match.start(), match.end()
        opened = match[0]
        self.depth = 0 if match["loose"] else 1
        self.loose = self.depth == 0
        self.square = bool(opened) and (opened[-1] in signs.SQUARE or "cite" in opened)
        self.parts: list[tuple[str, list[int], bool]] = []
        self.head = self.loose
        self.unverified = False
        self.stray = False
        self.good = self.at  # the end of what is understood
        self.base = self.depth  # where names stand; lists are deeper
        self.word: list[str] = []  # words that may be a name of no kind known
        self.numbered = False  # the last part has its list

    def read(self) -> Outcome:
        """Return what the bracket holds."""
        retry = self.at
        if not self._opening():
            return Outcome(retry)
        start = self.at
        named = self.names.names.match(self.text, start, self.stop)
        if named is None and not self.head:
            return self._numbers(retry, start)
        if named is not None and not self.head and not self._list_follows(named.end()):
            return Outcome(retry)
        if named is None and self.loose:
            return Outcome(retry)
        self.base = self.depth
        end, closed = self._body()
        return self._judged(retry, end, closed, named)

    def _opening(self) -> bool:
        """Pass brackets inside the first, emphasis, a head and words such as "see"."""
        skipped = 0
        while skipped < 12:
            if self._skip(signs.BLANK) or self._skip(signs.DECORATION):
                pass
            elif (
                self.at < self.stop and self.text[self.at] in signs.OPENING and self.depth < _NESTED and not self.loose
            ):
                if not self.square and self.text[self.at] in signs.SQUARE:
                    return False  # (see [12]): the inner one is a reference of its own
                self.square = self.square or self.text[self.at] in signs.SQUARE
                self.depth += 1
                self.at += 1
            elif self._skip(signs.UNVERIFIED):
                self.head = self.unverified = True
            elif not self.head and (self._skip(signs.HEAD) or self._data()):
                self.head = True
            elif not self._lead():
                return True
            skipped += 1
        return True

    def _data(self) -> bool:
        match = signs.DATA.match(self.text, self.at, self.stop)
        if match is None or self.names.names.match(self.text, skip_blank(self.text, match.end())) is None:
            return False
        self.at = match.end()
        return True

    def _lead(self) -> bool:
        match = signs.LEAD.match(self.text, self.at, self.stop)
        after = match.end() if match else self.at
        if match is None or self.names.names.match(self.text, after, self.stop) is None:
            later = signs.LEAD.match(self.text, after, self.stop) if match else None
            if later is None or self.names.names.match(self.text, later.end(), self.stop) is None:
                return False
            after = later.end()
        self.at = after
        return True

    def _list_follows(self, at: int) -> bool:
        return signs.LIST.match(self.text, at, self.stop) is not None

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at, self.stop)
        if match is None or match.end() == self.at:
            return False
        self.at = match.end()
        return True

    # -- numbers without a name: [12], [^12], [R12], [#12] ------------------------------------------------------------

    def _numbers(self, retry: int, start: int) -> Outcome:
        text, own = self.text, self.names.own
        initial = self.names.initial
        match = bare(initial).match(text, start, self.stop)
        if match is None or (not self.square and not match["initial"]):
            return Outcome(retry)
        end = match.end()
        closed = 0
        while closed < self.depth and end < self.stop and text[end] in signs.CLOSING + "\\ *_^†":
            closed += text[end] in signs.CLOSING
            end += 1
        before = identifier_before(text, self.first)
        if closed < self.depth or (signs.LINK.match(text, end) and text[end + 1 : end + 2] != "#"):
            return Outcome(max(retry, end if closed else match.end()))
        if own is None or not self.names.bare:
            return Outcome(end)
        if before and not self.attached and not no_word(before):
            word = before.isalpha() and len(before) > 2 and text[end : end + 1] not in ("[", "=", "(", "_")
            return Outcome(end, looks=word)
        self.kind(own)
        for item in signs.ITEM.finditer(match[0]):
            self._range(int(item[1][:_DIGITS]), item[2])
        if self.stray:
            return Outcome(end, looks=not signs.DATE.fullmatch(match[0].strip()))
        return Outcome(end, self.parts, bare=True)

    # -- names and lists ----------------------------------------------------------------------------------------------

    def kind(self, kind: str) -> None:
        """Begin a part, unless the last one is of this kind already."""
        if not self.parts or self.parts[-1][0] != kind:
            self.parts.append((kind, [], False))

    def _add(self, id: int) -> None:
        ids = self.parts[-1][1]
        if id not in ids[-WIDEST:]:
            ids.append(id)

    def _range(self, first: int, last: str | None) -> None:
        if last is None:
            self._add(first)
            return
        end = int(last[:_DIGITS])
        if 0 <= end - first <= WIDEST:
            for id in range(first, end + 1):
                self._add(id)
        else:
            self.stray = True

    def _body(self) -> tuple[int, bool]:
        """Read names and lists up to the closing bracket; return where it ends, and whether it was closed."""
        while self.at < self.stop:
            if self._skip(signs.BLANK) or self._skip(signs.DECORATION):
                continue
            c = self.text[self.at]
            if c in signs.CLOSING:
                self.at += 1
                self.depth -= 1
                if self.depth <= 0:
                    return self.at, True
                if not self.stray:
                    self.good = self.at
            elif c in signs.OPENING:
                if not self._inner():
                    break
            elif not (self._more() or self._name() or self._skip(signs.SIGN) or self._skip(signs.SEPARATOR)):
                number = signs.NUMBER.match(self.text, self.at, self.stop)
                if number:
                    self._number(number)
                elif not self._passed(c) and not self._word():
                    break
        return self.good, False

    def _inner(self) -> bool:
        """Enter a list; pass an empty one; at any other bracket the reference is at its end."""
        if self._list_follows(self.at) and self.depth < self.base + 2:
            self.depth += 1
            self.at += 1
            return True
        pair = signs.EMPTY.match(self.text, self.at, self.stop)
        if pair is None:
            return False
        self.at, self.stray = pair.end(), True
        self.word.clear()
        return True

    def _more(self) -> bool:
        more = signs.MORE.match(self.text, self.at, self.stop) if self.parts else None
        if more is None:
            return False
        kind, ids, _ = self.parts[-1]
        self.parts[-1] = (kind, ids, True)
        self.at = self.good = more.end()
        self.numbered = True
        return True

    def _name(self) -> bool:
        name = self.names.names.match(self.text, self.at, self.stop)
        before = self.text[self.at - 1]
        if name is None or (before.isalpha() and ord(name[0][0]) < 256):
            return False
        self.kind(self.names.kind(name[0]))
        self.at, self.numbered = name.end(), False
        self.word.clear()
        return True

    def _passed(self, c: str) -> bool:
        """Pass a letter or sign that belongs to a number, and the title behind one."""
        digit = self.text[self.at + 1 : self.at + 2].isdigit()
        if c.casefold() == self.names.initial and digit:  # R12
            self.at += 1
            return True
        joined = not self.numbered and self.depth == self.base and self.text[self.at - 1].isalpha()  # Report-12
        if c not in ":：=" and not (c in "-–." and (joined or not digit)):
            return False
        self.at += 1
        title = signs.TITLE.match(self.text, self.at, self.stop) if self.numbered and c in ":：–-" else None
        if title:  # 12: The harbour
            self.at = title.end()
        return True

    def _word(self) -> bool:
        """Take a word that is no name known; False: the reference is at its end."""
        token = signs.WORD.match(self.text, self.at, self.stop)
        if self.loose:
            return False
        if token and self.depth == self.base and self.head:
            self.word.append(token[0])
        else:
            self.stray = True
        if not self.head and self.depth == self.base and not signs.REMARK.match(self.text, self.at, self.stop):
            return False  # running text
        self.at = token.end() if token else self.at + 1
        return True

    def _number(self, number: re.Match[str]) -> None:
        text = self.text
        if self.word and (not self.numbered or self.head):
            self.kind(" ".join(self.word))
            self.word.clear()
        elif not self.parts:
            self.kind(self.names.own or "")
        self.numbered = True
        first, self.at = int(number[0][:_DIGITS]), number.end()
        before = text[number.start() - 1]
        dash = signs.DASH.match(text, self.at, self.stop)
        last = signs.NUMBER.match(text, number_start(text, dash.end(), self.names)) if dash else None
        if before in "-−–" and not text[number.start() - 2].isalnum():
            self.stray = True  # a negative number is no id
            return
        if last is not None:
            self.at = last.end()
        if signs.GOES_ON.match(text, self.at, self.stop) and not signs.AFTER.match(text, self.at):
            follows = signs.SEPARATOR.match(text, self.at) or signs.MORE.match(text, self.at)
            if follows is None and text[self.at] not in "+":
                self.stray = True
                odd = signs.ODD.match(text, self.at, self.stop)
                self.at = odd.end() if odd else self.at
                return
        self._range(first, last[0] if last else None)
        after = signs.AFTER.match(text, self.at, self.stop)
        self.at = after.end() if after else self.at
        self.good = self.at

    def _judged(self, retry: int, end: int, closed: bool, named: re.Match[str] | None) -> Outcome:
        parts = [part for part in self.parts if part[1] or part[2]]
        text = self.text
        if parts and not parts[0][0]:  # numbers of no kind
            return Outcome(max(retry, end), looks=True)
        if not closed and self.loose:
            end = self.good
        elif not closed:
            end = max(self.good, retry)
        written = text[self.first : end]
        if not self.square and not self.head and parts:
            own = parts[0][0] == self.names.own or parts[0][0] == "reports"
            capital = named is not None and (named[0][0].isupper() or ord(named[0][0]) > 255)
            if any(signs.YEAR.fullmatch(n) for n in signs.NUMBER.findall(written)):
                return Outcome(max(retry, end), looks=own and len(parts) == 1 and closed)
            if not own and not capital:
                return Outcome(max(retry, end))
        if parts and self.stray and not self.head:
            return Outcome(max(retry, end), looks=True)
        if parts:
            return Outcome(end, parts, True, self.unverified, not self.stray)
        if self.loose:
            return Outcome(retry)
        looks = (self.head and (closed or named is not None)) or (named is not None and closed)
        return Outcome(max(retry, end) if looks else retry, looks=looks and _telling(written))


def _telling(written: str) -> bool:
    return any(c.isalnum() for c in written)
