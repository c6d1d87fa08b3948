"""Which language a corpus is in, told from beginnings of text units all over it."""

from __future__ import annotations

from collections.abc import Iterable

from communitree_shared.languages import is_chinese
from communitree_workers.text.words import language

#: Beginnings that are read in the end, their characters, and how many are kept on the way.
_READ, _CHARACTERS, _KEPT = 20, 500, 4_000


class Samples:
    """Beginnings of texts at even distances, however many there will be."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._seen, self._step = 0, 1

    def add(self, text: str) -> None:
        """See the next text."""
        if self._seen % self._step == 0:
            self._kept.append(text[:_CHARACTERS])
        self._seen += 1
        if len(self._kept) > _KEPT:
            del self._kept[1::2]
            self._step *= 2

    def language(self) -> str:
        """Return the language of what was seen. The middle says more about a corpus than its first page."""
        step = max(1, len(self._kept) // _READ)
        return language("\n".join(self._kept[::step]))


def language_of(texts: Iterable[str | None]) -> str:
    """Return the language of texts."""
    samples = Samples()
    for text in texts:
        samples.add(text or "")
    return samples.language()


def in_another_script(text: str, code: str) -> bool:
    """Say whether a text is plainly not in the language asked for: Chinese or Japanese for another, or the reverse.

    That is all that scripts tell: French for German goes unnoticed.
    """
    asked = code.lower()
    if asked.startswith("ko"):
        return False
    return bool(text.strip()) and (language(text) == "zh") != (is_chinese(code) or asked.startswith("ja"))
