"""References to rows inside a text, in the form GraphRAG made known: `[Data: Reports (1, 2, +more); Sources (3)]`.

Read tolerantly (Chinese brackets and words, singular, a missing `Data:`), written in one form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: The most ids that one reference shows.
SHOWN = 5

_SECTION = r"(?:Reports?|Sources?|Text\s*units?|Communit(?:y|ies)|报告|社区报告|社区|来源|文本单元|文本|原文|资料)"
_LIST = r"[\d\s,，、;；+＋#\-–]*(?:more|更多|其他|等)?"
_BODY = rf"{_SECTION}\s*[:：]?\s*(?:[(（]\s*{_LIST}\s*[)）]|{_LIST})"
#: A whole reference, brackets included.
REFERENCE = re.compile(
    rf"[\[【〔［]\s*(?:(?:Data|数据|引用|来源)\s*[:：]\s*)?{_BODY}(?:\s*[;；,，、]?\s*(?:and|和|以及)?\s*{_BODY})*\s*[\]】〕］]",
    re.IGNORECASE,
)
_PART = re.compile(rf"({_SECTION})\s*[:：]?\s*[(（]?\s*({_LIST})", re.IGNORECASE)
_SOURCES = re.compile(r"sources?|text\s*units?|来源|文本单元|文本|原文|资料", re.IGNORECASE)
_MORE = re.compile(r"more|更多|其他|等|[+＋]", re.IGNORECASE)
_RANGE = re.compile(r"(\d+)\s*[-–]\s*(\d+)")
_HEAD = re.compile(r"^(?:Data|数据|引用)\s*[:：]\s*", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
#: A range wider than this is no range of ids.
_WIDEST = 50


def parts_of(reference: str) -> list[tuple[str, list[int], bool]]:
    """Return `(kind, ids, more)` of each part of a reference; kind is `reports` or `sources`."""
    body = reference.strip("[]【】〔〕［］ ")
    body = _HEAD.sub("", body)
    out = []
    for match in _PART.finditer(body):
        kind = "sources" if _SOURCES.fullmatch(match[1]) else "reports"
        out.append((kind, _numbers(match[2]), _MORE.search(match[2]) is not None))
    return out


def _numbers(text: str) -> list[int]:
    ids: list[int] = []
    for first, last in _RANGE.findall(text):
        if 0 < int(last) - int(first) <= _WIDEST:
            ids.extend(range(int(first), int(last) + 1))
    ids += [int(number) for number in _DIGITS.findall(text)]
    return list(dict.fromkeys(ids))


def ids_in(text: str) -> list[int]:
    """Return the ids of all references in a text, each once, in order."""
    found = [id for match in REFERENCE.finditer(text) for _, ids, _ in parts_of(match.group()) for id in ids]
    return list(dict.fromkeys(found))


def reference(ids: Iterable[int], context: str = "Reports", *, shown: int = SHOWN, marked: Sequence[str] = ()) -> str:
    """Return a reference to these ids: at most `shown` of them and `+more`; '' without ids."""
    numbers = list(dict.fromkeys(ids))
    items = [*map(str, numbers[:shown]), *marked]
    if not items:
        return ""
    more = ", +more" if len(numbers) > shown else ""
    return f"[Data: {context} ({', '.join(items)}{more})]"
