"""References to rows inside a text, in the form GraphRAG made known: `[Data: Reports (1, 2, +more); Sources (3)]`.

Read tolerantly (Chinese brackets and words, singular, a missing `Data:`), each part by its kind, written in one form.
`context` is the name that reports (or text units) go by in the query at hand; GraphRAG's own names always count too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from communitree_shared.contract.citing import KINDS, kind_of

#: The most ids that one reference shows.
SHOWN = 5

OPENING, CLOSING = "[【〔［", "]】〕］"
_BRACKETS = re.compile(rf"[{re.escape(OPENING)}]([^{re.escape(OPENING + CLOSING)}]*)[{re.escape(CLOSING)}]")
_HEAD = re.compile(r"\s*(?:Data|数据|引用|来源)\s*[:：]\s*", re.IGNORECASE)
_BETWEEN = re.compile(r"\s?[;；,，、]*\s?(?:and\b|和|与|以?及)?\s?", re.IGNORECASE)
_SIGNS = r"\d\s,，、;；+＋#\-–"
_MORE_WORDS = r"(?:more|更多|其他|等)"
_ITEMS = rf"(?:[{_SIGNS}和与]|以?及|and\b)*{_MORE_WORDS}?"
#: Without parentheses there must be something in a list, or any word would be a reference.
_BARE = rf"(?=[\s#]*(?:\d|[+＋]\s*{_MORE_WORDS})){_ITEMS}"
_MORE = re.compile(r"more|更多|其他|等|[+＋]", re.IGNORECASE)
_RANGE = re.compile(r"(?<!\d)(\d+)\s?[-–]\s?(\d+)")
_DIGITS = re.compile(r"\d+")
#: A range wider than this is no range of ids.
_WIDEST = 50
#: No id has more digits; a longer number is cut, to be no id of any row all the same.
_LONGEST = 18


class Part(NamedTuple):
    """Rows of one kind. `kind`: a key of `KINDS`, or the name as it is written where that is none of them."""

    kind: str
    ids: tuple[int, ...]
    more: bool


class Found(NamedTuple):
    """A reference in a text: from `start` to before `end`, brackets included."""

    start: int
    end: int
    parts: tuple[Part, ...]


def own_kind(context: str) -> str:
    """Return the kind of rows that go by the name `context`."""
    return kind_of(context) or "reports"


def find(text: str, context: str = "Reports") -> Iterator[Found]:
    """Yield the references of a text in order."""
    for match in _BRACKETS.finditer(text):
        parts = _read(match[1], context)
        if parts:
            yield Found(match.start(), match.end(), parts)


def without_references(text: str, context: str = "Reports") -> str:
    """Return a text without its references, whatever rows they name."""
    out, last = [], 0
    for found in find(text, context):
        out.append(text[last : found.start])
        last = found.end
    return "".join([*out, text[last:]]) if out else text


def ids_in(text: str, context: str = "Reports") -> list[int]:
    """Return the ids of a text's references to rows that go by the name `context`, each once, in order."""
    kind = own_kind(context)
    parts = (part for found in find(text, context) for part in found.parts if part.kind == kind)
    return list(dict.fromkeys(id for part in parts for id in part.ids))


@lru_cache(maxsize=1024)
def _read(body: str, context: str) -> tuple[Part, ...]:
    """Return the parts of what stands between two brackets; () where it is no reference."""
    known, named = _patterns(context)
    body = " ".join(body.split())  # long runs of blanks would make the patterns slow
    head = _HEAD.match(body)
    if head:
        # Behind `Data:` any name with a list is one of rows, and what stands beside a list hides nothing.
        parts = _sequence(named, body, head.end(), context) or _parts(known.finditer(body, head.end()), context)
        if parts:
            return parts
    parts = _sequence(known, body, 0, context)
    return parts if all(part.ids or part.more for part in parts) else ()


def _sequence(pattern: re.Pattern[str], body: str, at: int, context: str) -> tuple[Part, ...]:
    """Return the parts that a text consists of from `at` on; () where it holds anything else."""
    matches = []
    while at < len(body):
        match = pattern.match(body, at)
        if match is None:
            return ()
        matches.append(match)
        gap = _BETWEEN.match(body, match.end())
        at = gap.end() if gap else match.end()
    return _parts(matches, context)


def _parts(matches: Iterable[re.Match[str]], context: str) -> tuple[Part, ...]:
    out = []
    for match in matches:
        name, items = match["name"], match["inner"] or match["bare"] or ""
        out.append(Part(_kind(name, context), _numbers(items), _MORE.search(items) is not None))
    return tuple(out)


def _kind(name: str, context: str) -> str:
    bare = " ".join(name.split())
    return own_kind(context) if bare.casefold() == context.casefold() else kind_of(bare) or bare


@lru_cache(maxsize=64)
def _patterns(context: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a part with a known name, and with any."""
    own = r"\s+".join(map(re.escape, context.split()))
    names = "|".join(filter(None, [own, *(pattern for _, pattern in KINDS.values())]))
    inner = rf"[(（]\s*(?P<inner>{_ITEMS})\s*[)）]"
    known = rf"(?P<name>{names})\s*[:：]?\s*(?:{inner}|(?P<bare>{_BARE}))"
    other = rf"(?P<name>{names}|[^\W\d_][^()（）;；,，、:：\d]*?)\s*[:：]?\s*(?:{inner}|(?P<bare>{_BARE}))"
    return re.compile(known, re.IGNORECASE), re.compile(other, re.IGNORECASE)


def _numbers(text: str) -> tuple[int, ...]:
    ids: list[int] = []
    for match in _RANGE.findall(text):
        first, last = (int(number[:_LONGEST]) for number in match)
        if 0 < last - first <= _WIDEST:
            ids.extend(range(first, last + 1))
    ids += [int(number[:_LONGEST]) for number in _DIGITS.findall(text)]
    return tuple(dict.fromkeys(ids))


def reference(ids: Iterable[int], context: str = "Reports", *, shown: int = SHOWN) -> str:
    """Return a reference to these ids: at most `shown` of them and `+more`; '' without ids."""
    return bracketed([section(context, list(dict.fromkeys(ids)), shown=shown)])


def section(name: str, ids: Sequence[int], *, shown: int = SHOWN, marked: Sequence[str] = ()) -> str:
    """Return one part of a reference: at most `shown` ids, those that carry a mark, `+more`; '' without any."""
    items = [*map(str, ids[:shown]), *marked]
    more = ", +more" if len(ids) > shown else ""
    return f"{name} ({', '.join(items)}{more})" if items else ""


def bracketed(sections: Iterable[str]) -> str:
    """Return a reference of these parts; '' where there are none."""
    present = list(filter(None, sections))
    return f"[Data: {'; '.join(present)}]" if present else ""
