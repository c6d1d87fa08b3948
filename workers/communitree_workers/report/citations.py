"""The citations in a report's text: `[Data: Entities (1, 2); Reports (12)]`, read, checked, renumbered, removed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from communitree_workers.report.records import LABELS

#: What models write for each kind, in the languages they drift into; matched case-folded.
_SPELLINGS = {
    "entities": ("entities", "entity", "实体"),
    "relationships": ("relationships", "relationship", "关系"),
    "claims": ("claims", "claim", "covariates", "covariate", "声明", "主张", "论断", "断言"),
    "text_units": ("sources", "source", "text units", "text unit", "texts", "text", "来源", "文本", "原文"),
    "reports": ("reports", "report", "communities", "community", "sub-communities", "报告", "子报告", "社区"),
}
_KIND = {word: kind for kind, words in _SPELLINGS.items() for word in words}
_WORDS = "|".join(sorted((re.escape(word) for word in _KIND), key=len, reverse=True))

_BLOCK = re.compile(r"[\[【]\s*(?:Data|数据|資料|来源数据)\s*[:：]\s*([^\[\]【】]*)[\]】]", re.IGNORECASE)
_ANY_BLOCK = re.compile(rf"{_BLOCK.pattern}|\[Unverified:[^\[\]]*\]", re.IGNORECASE)
_PART = re.compile(rf"({_WORDS})\s*[(（]([^()（）]*)[)）]", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_NUMBERS_ONLY = re.compile(r"[\s\d,，、;；+more等]*", re.IGNORECASE)

Numbers = Mapping[str, Sequence[int]]


@dataclass
class Checked:
    """A text whose citations were checked. `cited` maps kind → number → position among the evidence's numbers."""

    text: str
    verified: int = 0
    unverified: int = 0
    cited: dict[str, dict[str, int]] = field(default_factory=dict)


def cited(text: str) -> dict[str, list[int]]:
    """Return the numbers that a text cites, by kind, each once, in the order in which they appear."""
    found: dict[str, dict[int, None]] = {}
    for block in _BLOCK.finditer(text):
        for kind, numbers in _parts(block.group(1)):
            found.setdefault(kind, {}).update(dict.fromkeys(numbers))
    return {kind: list(numbers) for kind, numbers in found.items()}


def check(text: str, places: Mapping[str, Mapping[int, int]]) -> Checked:
    """Return the text with every citation checked against the evidence (`places`: kind → number → position).

    What the evidence does not hold is moved out of its `[Data: …]` into an `[Unverified: …]` behind it, so that nobody
    takes it for a source; nothing else is changed.
    """
    result = Checked(text)

    def judge(match: re.Match[str]) -> str:
        good: dict[str, list[int]] = {}
        bad: dict[str, list[int]] = {}
        parts = _parts(match.group(1))
        for kind, numbers in parts:
            for number in numbers:
                (good if number in places.get(kind, {}) else bad).setdefault(kind, []).append(number)
        result.verified += sum(map(len, good.values()))
        result.unverified += sum(map(len, bad.values()))
        for kind, numbers in good.items():
            result.cited.setdefault(kind, {}).update((str(n), places[kind][n]) for n in numbers)
        plain = match.group(0).startswith("[Data:") and all(f"{LABELS[kind]} (" in match.group(1) for kind, _ in parts)
        if not parts or (not bad and plain):
            return match.group(0)
        return " ".join(filter(None, (block("Data", good), block("Unverified", bad))))

    result.text = _BLOCK.sub(judge, text)
    return result


def block(word: str, numbers: Mapping[str, Sequence[int]]) -> str:
    """Return a citation block, "" for none."""
    parts = [f"{LABELS[kind]} ({', '.join(map(str, ids))})" for kind, ids in numbers.items() if ids]
    return f"[{word}: {'; '.join(parts)}]" if parts else ""


def data(**numbers: Sequence[int]) -> str:
    """Return `[Data: …]` for these numbers."""
    return block("Data", numbers)


def renumber(text: str, change: Callable[[str, int], int]) -> str:
    """Return the text with each cited number replaced by `change(kind, number)`."""

    def part(match: re.Match[str]) -> str:
        kind = _KIND[match.group(1).casefold()]
        return match.group(1) + match.group(0)[len(match.group(1)) :].replace(
            match.group(2), _NUMBER.sub(lambda n: str(change(kind, int(n.group()))), match.group(2))
        )

    return _BLOCK.sub(lambda match: _PART.sub(part, match.group(0)), text)


def remove(text: str) -> str:
    """Return the text without its citations: in a parent's prompt they would name rows that are not there."""
    if "[" not in text and "【" not in text:
        return text
    kept = []
    at = 0
    for match in _ANY_BLOCK.finditer(text):
        kept.append(text[at : match.start()].rstrip())
        at = match.end()
    return "".join([*kept, text[at:]])


def places(numbers: Numbers) -> dict[str, dict[int, int]]:
    """Return, for each kind, the position of each number."""
    return {kind: {number: at for at, number in enumerate(ids)} for kind, ids in numbers.items()}


def tally(checked: Sequence[Checked]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return the counts `verified` and `unverified`, and what is cited, of several texts together."""
    counts: Counter[str] = Counter({"verified": 0, "unverified": 0})
    together: dict[str, dict[str, int]] = {}
    for one in checked:
        counts.update(verified=one.verified, unverified=one.unverified)
        for kind, numbers in one.cited.items():
            together.setdefault(kind, {}).update(numbers)
    return dict(counts), together


def _parts(inside: str) -> list[tuple[str, list[int]]]:
    return [
        (_KIND[match.group(1).casefold()], [int(n) for n in _NUMBER.findall(match.group(2))])
        for match in _PART.finditer(inside)
    ]
