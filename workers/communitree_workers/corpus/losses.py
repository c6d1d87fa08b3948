"""What a corpus job has to say about what it did not use: files, replies, rows. A line each, for its warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from communitree_shared.contract.messages import LeftOut
from communitree_shared.contract.results import LeftOutGroup
from communitree_workers.corpus.reading.documents import Problem

_SHOWN = 20
#: Of each reason: in the result, and in the line of a warning.
_EXAMPLES, _IN_LINE = 20, 3

#: Count in the merge's statistics → what it means, for one and for several.
_SENTENCES: dict[str, tuple[str, str]] = {
    "lost": (
        "1 row of the model's replies was damaged and is lost",
        "{n} rows of the model's replies were damaged and are lost",
    ),
    "failed_calls": (
        "1 gleaning or request for claims failed; what the text unit gave before is kept",
        "{n} gleanings or requests for claims failed; what the text units gave before is kept",
    ),
    "holes": (
        "1 part of a text unit gave nothing: what the model refused there, or could not end",
        "{n} parts of text units gave nothing: what the model refused there, or could not end",
    ),
    "loops": (
        "1 relationship of a thing with itself was left out",
        "{n} relationships of a thing with itself were left out",
    ),
    "unnamed_ends": (
        "1 end of a relationship or claim was no entity of its reply and became one, without a description",
        "{n} ends of relationships or claims were no entities of their replies and became some, without descriptions",
    ),
    "strays": (
        "1 result belongs to no text unit, or to one that has a result",
        "{n} results belong to no text unit, or to one that has a result",
    ),
    "descriptions_cut": (
        "1 description was longer than the limit and lost its last parts",
        "{n} descriptions were longer than the limit and lost their last parts",
    ),
}


def of_merge(stats: Mapping[str, Any]) -> list[str]:
    """Return the lines about what the merge met."""
    return [_sentence(name, int(stats[name])) for name in _SENTENCES if stats.get(name)]


def grouped(problems: Iterable[Problem]) -> list[LeftOutGroup]:
    """Return what the readers met by reason, the first of each as examples: what is lost first, duplicates last."""
    by_reason: dict[str, list[Problem]] = {}
    for problem in problems:
        by_reason.setdefault(problem.reason, []).append(problem)
    groups = [
        LeftOutGroup(
            reason=reason,
            count=len(members),
            kept=sum(p.kept for p in members),
            examples=[example(p) for p in members[:_EXAMPLES]],
        )
        for reason, members in by_reason.items()
    ]
    return sorted(groups, key=lambda g: (g.reason == "duplicate", g.kept == g.count, g.reason))


def example(problem: Problem) -> str:
    """Return a problem as a line: where it is and what it is."""
    place = f", row {problem.row}" if problem.row is not None else ""
    return f"{problem.source}{place}: {problem.message}"


def of_files(groups: Iterable[LeftOutGroup]) -> list[str]:
    """Return a line for each reason: how many there are of it, and the first in full."""
    return [_group(group) for group in groups]


def _group(group: LeftOutGroup) -> str:
    if group.count == 1:
        return group.examples[0]
    shown = group.examples[:_IN_LINE]
    more = f"; and {group.count - len(shown):,} more" if group.count > len(shown) else ""
    return f"{group.count:,} × {group.reason.replace('_', ' ')}: {'; '.join(shown)}{more}"


def of_left_out(left_out: Sequence[LeftOut], *, by_rule: bool = False) -> list[str]:
    """Return the lines about files that never came: warnings, or the notes on what a rule leaves out."""
    return [entry.line(_SHOWN) for entry in left_out if entry.by_rule is by_rule]


def _sentence(name: str, n: int) -> str:
    one, several = _SENTENCES[name]
    return one if n == 1 else several.format(n=f"{n:,}")
