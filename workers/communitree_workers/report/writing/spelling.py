"""How a name is written in a report: as its graph spells it, or, where the graph shouts all names, as the text does.

GraphRAG's prompts ask for names in capitals. What then tells `API` from `ADAM` is the text, and where it does not hold
the name, the entity's type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_SHOUTED = re.compile("[A-Z]{2}")
_LOWER = re.compile("[a-z]")
_SIGNED = re.compile(r"[\d_]")
_INNER = re.compile(r"[-(/&.][a-z]")
_VOWEL = re.compile("[AEIOUY]")
_HAN = re.compile("[\u3400-\u9fff]")
#: Letters of the longest name that is an acronym although no text says so.
_SHORT = 3
#: Letters of the longest word of a name of several acronyms, as in `REST API`.
_LONGEST_ACRONYM = 4
#: A lower-case spelling may be so many times as frequent as one in capitals: `api` also stands in addresses and code.
_IN_CODE = 3
_PLURALS = ("", "s", "es")
_SMALL = {"a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "with"}


class Spelling:
    """The spellings of one community's evidence.

    Args:
        text: the prose of the evidence.
        types: the names of its entities, with their types; "" where that is not known.
    """

    def __init__(self, text: str = "", types: Mapping[str, str] | None = None) -> None:
        self._text, self._types = text, dict(types or {})
        #: A graph that has lower-case letters in some names keeps the spelling of all.
        self._cased = any(map(_LOWER.search, self._types))
        self._upper = ""
        self._known: dict[str, str] = {}

    def readable(self, name: str) -> str:
        """Return a name as one reads it."""
        if not _SHOUTED.search(name) or name != name.upper():
            return name
        if name not in self._known:
            self._known[name] = self._settled(name)
        return self._known[name]

    def readable_all(self, names: Iterable[str]) -> list[str]:
        """Return names as one reads them, without those that only vary or extend an earlier one.

        That is `Python interpreter` after `Python`, but not `Portal` after `Port`.
        """
        out: list[str] = []
        for name in map(self.readable, names):
            if name and not any(_inside(kept, name) or _inside(name, kept) for kept in out):
                out.append(name)
        return out

    def _settled(self, name: str) -> str:
        several = " " in name
        if self._cased and (not several or _SIGNED.search(name)):
            return name
        found = self._spelled(name)
        mixed = Counter({s: n for s, n in found.items() if s != name and not s.islower()}).most_common(1)
        capitals, lower = found[name], sum(n for s, n in found.items() if s.islower())
        if mixed and (several or mixed[0][1] >= capitals):
            return mixed[0][0]
        if capitals and not several:
            if capitals > lower or (capitals > 1 and capitals * _IN_CODE >= lower):
                return name
        elif capitals and (_SIGNED.search(name) or max(map(len, name.split())) <= _LONGEST_ACRONYM):
            return name
        if self._cased or not name.isascii():
            return name
        if several:
            first, *others = name.split(" ")
            joined = " ".join([self._word(first, capitals), *(self._inner(word, capitals) for word in others)])
            return _INNER.sub(lambda match: match.group().upper(), joined)
        return self._alone(name, known=bool(found))

    def _alone(self, name: str, *, known: bool) -> str:
        """Return a name of one word that the text has not in capitals, or not at all."""
        if len(name) <= _SHORT and not known:
            kind = self._types.get(name, "").casefold()
            if not _VOWEL.search(name) or (kind and kind != "person"):
                return name
        return _INNER.sub(lambda match: match.group().upper(), name.capitalize())

    def _inner(self, word: str, capitals: int) -> str:
        return word.lower() if word.lower() in _SMALL else self._word(word, capitals)

    def _word(self, word: str, capitals: int) -> str:
        """Return a word of a name of several as the text writes it elsewhere."""
        if len(word) < 3 and "." in word:
            return word
        found = self._spelled(word)
        found[word] -= capitals  # the name itself
        mixed = Counter({s: n for s, n in found.items() if not s.islower()}).most_common(1)
        return mixed[0][0] if mixed and mixed[0][1] > 0 else word.capitalize()

    def _spelled(self, name: str) -> Counter[str]:
        """Return the spellings of a name in the text, whatever their case, and how often each stands there."""
        found: Counter[str] = Counter()
        upper = self._upper = self._upper or _upper(self._text)
        at = upper.find(name)
        while at >= 0:
            end = at + len(name)
            if not (_joined(upper[at - 1 : at], name[0]) or _joined(name[-1], upper[end : end + 1])):
                found[self._text[at:end]] += 1
            at = upper.find(name, end)
        return found


def _upper(text: str) -> str:
    """Return a text in capitals, of the same length: where a letter has no single capital, it stays."""
    upper = text.upper()
    return upper if len(upper) == len(text) else "".join(c if len(c.upper()) > 1 else c.upper() for c in text)


def _joined(left: str, right: str) -> bool:
    """Say whether two neighbours are letters of one word. Chinese has no spaces: a Latin name ends where it begins."""
    return left.isalnum() and right.isalnum() and not (_HAN.match(left) or _HAN.match(right))


def _inside(part: str, whole: str) -> bool:
    """Say whether a name stands in another, as words of it, be they plural; in Chinese, as characters of it."""
    part, whole = part.casefold(), whole.casefold()
    at = whole.find(part)
    while at >= 0:
        if not _joined(whole[at - 1 : at], part[0]):
            ends = (at + len(part + plural) for plural in _PLURALS if whole.startswith(plural, at + len(part)))
            if not all(_joined(whole[end - 1], whole[end : end + 1]) for end in ends):
                return True
        at = whole.find(part, at + 1)
    return False
