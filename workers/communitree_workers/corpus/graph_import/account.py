"""What the import had to do to the tables, in words for the job's result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_CHOICE = re.compile(r"\b([a-z]+)\|([a-z]+)\b")

#: So many examples are named in a sentence.
_SHOWN = 5


@dataclass
class Notes:
    """`notes`: what was done as a matter of course; `warnings`: what was damaged or lost."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, count: int, sentence: str, examples: Iterable[str] = ()) -> None:
        """Keep a sentence that begins with its count, unless the count is 0: `file|files is|are empty`."""
        if count:
            self.notes.append(f"{count:,} {numbered(count, sentence)}{named(examples)}.")

    def warn(self, count: int, sentence: str, examples: Iterable[str] = ()) -> None:
        """Keep a warning, as `note` does."""
        if count:
            self.warnings.append(f"{count:,} {numbered(count, sentence)}{named(examples)}.")


def numbered(count: int, sentence: str) -> str:
    """Return the sentence with the first of its `one|many` for a count of 1, else with the second."""
    return _CHOICE.sub(r"\1" if count == 1 else r"\2", sentence)


def named(examples: Iterable[str]) -> str:
    """Return `: a, b, c` with the first few examples, "" where there are none."""
    shown = [str(example) for example in examples]
    if not shown:
        return ""
    return ": " + ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")
