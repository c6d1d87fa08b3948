"""The citations in a report's text: `[Data: Entities (1, 2); Reports (12)]`, read, checked, renumbered, removed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from communitree_workers.citing.grammar import Reference, grammar_of
from communitree_workers.report.records import LABELS

#: Numbers alone name no kind of row in a report.
_GRAMMAR = grammar_of(None)
#: A reference as it is written here.
_LABEL = "|".join(LABELS.values())
_PLAIN = re.compile(rf"\[Data: (?:{_LABEL}) \([\d,+more ]*\)(?:; (?:{_LABEL}) \([\d,+more ]*\))*\]")
#: How an unread reference begins.
_HEAD = re.compile(r"\[[^:：\n]{0,20}[:：]")

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
    for reference in _GRAMMAR.find(text):
        for kind, numbers in () if reference.unverified else _parts(reference):
            found.setdefault(kind, {}).update(dict.fromkeys(numbers))
    return {kind: list(numbers) for kind, numbers in found.items()}


def check(text: str, places: Mapping[str, Mapping[int, int]]) -> Checked:
    """Return the text with every citation checked against the evidence (`places`: kind → number → position).

    What the evidence does not hold is moved out of its `[Data: …]` into an `[Unverified: …]` behind it, so that nobody
    takes it for a source; so is what looks like a citation and is not understood. Nothing else is changed.
    """
    result = Checked(text)
    parsed = _GRAMMAR.parse(text)
    changes: list[tuple[int, int, str]] = []
    for reference in parsed.references:
        if reference.unverified:
            continue
        good: dict[str, list[int]] = {}
        bad: dict[str, list[int]] = {}
        for kind, numbers in _parts(reference):
            for number in numbers:
                (good if number in places.get(kind, {}) else bad).setdefault(kind, []).append(number)
        result.verified += sum(map(len, good.values()))
        result.unverified += sum(map(len, bad.values()))
        for kind, held in good.items():
            result.cited.setdefault(kind, {}).update((str(n), places[kind][n]) for n in held)
        written = text[reference.start : reference.end]
        if (good or bad) and (bad or not _PLAIN.fullmatch(written)):
            said = " ".join(filter(None, (block("Data", good), block("Unverified", bad))))
            changes.append((reference.start, reference.end, said))
    starts = {reference.start for reference in parsed.references}
    for unread in parsed.unread:
        result.unverified += 1
        head = _HEAD.match(text, unread.start, unread.end)
        if unread.start not in starts and head:
            changes.append((unread.start, head.end(), "[Unverified:"))
    result.text = _changed(text, changes)
    return result


def block(word: str, numbers: Mapping[str, Sequence[int]]) -> str:
    """Return a citation block, "" for none."""
    parts = [f"{LABELS.get(kind, kind)} ({', '.join(map(str, ids))})" for kind, ids in numbers.items() if ids]
    return f"[{word}: {'; '.join(parts)}]" if parts else ""


def data(**numbers: Sequence[int]) -> str:
    """Return `[Data: …]` for these numbers."""
    return block("Data", numbers)


def renumber(text: str, change: Callable[[str, int], int]) -> str:
    """Return the text with each cited number replaced by `change(kind, number)`."""
    changes = []
    for reference in _GRAMMAR.find(text):
        if reference.unverified:
            continue
        parts = []
        for kind, ids, more in reference.parts:
            own = _OWN.get(kind, kind)
            numbers = [str(change(own, number)) for number in ids] + ["+more"] * more
            parts.append(f"{LABELS.get(own, own)} ({', '.join(numbers)})")
        changes.append((reference.start, reference.end, f"[Data: {'; '.join(parts)}]"))
    return _changed(text, changes)


def remove(text: str) -> str:
    """Return the text without its citations: in a parent's prompt they would name rows that are not there."""
    kept, at = [], 0
    for reference in _GRAMMAR.find(text):
        kept.append(text[at : reference.start].rstrip())
        at = reference.end
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


#: Kind as the grammar names it → as evidence does.
_OWN = {"sources": "text_units"}


def _parts(reference: Reference) -> list[tuple[str, tuple[int, ...]]]:
    return [(_OWN.get(kind, kind), ids) for kind, ids, _ in reference.parts]


def _changed(text: str, changes: list[tuple[int, int, str]]) -> str:
    out, at = [], 0
    for start, end, said in sorted(changes):
        out += [text[at:start], said]
        at = end
    return "".join([*out, text[at:]])
