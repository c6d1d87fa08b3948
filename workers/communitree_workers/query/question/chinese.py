"""Cuts the Chinese of a question by the words that a corpus has: its reports' words first, then the dictionary's.

A cut by the dictionary alone glues a name to what stands beside it (和黛玉, 贾母喜|欢), and then the corpus seems not
to have it. Of all ways to cut, the likeliest is taken: each word costs by how few reports hold it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice, product

import rjieba

from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.text.stopwords import CHINESE
from communitree_workers.text.variants import TRADITIONAL, simplified

#: The most characters of a word.
_LONGEST = 8
#: What joins or follows names and is no part of one; no negations or quantities, which change what a word means.
_GLUE = frozenset("和与跟同及在于从向对把被给让是的了着过得地之而且或也都又就才吗呢吧啊去来进到时说道问见")
#: Costs beyond that of a word in a single report: a word of the dictionary alone, a character that is no word.
_UNHEARD, _NO_WORD = 2.0, 5.0
#: A part of a name is searched, too, when so many times as many reports hold it: 黛玉 beside 林黛玉.
_BETTER_KNOWN = 2
#: The most spellings of a word that are tried.
_SPELLINGS = 16


class Cutter:
    """Cuts for one corpus. `general` says which words, in simplified characters, name nothing in any corpus."""

    def __init__(self, lexicon: Lexicon, general: Callable[[str], bool]) -> None:
        self.lexicon, self.general = lexicon, general
        self._rare = math.log(len(lexicon.lengths) + 1)

    def cut(self, run: str) -> list[str]:
        """Return the words of a run of Chinese characters in order, spelled as the corpus spells them.

        A name is followed by its better known part, where it has one. Neighbouring characters that the corpus does not
        know stay together: they may be a name.
        """
        plain = simplified(run)
        forms = self._forms(run, plain)
        costs, starts, words = [0.0], [0], [""]  # of the best cut up to each character: its last word
        for end in range(1, len(run) + 1):
            tried = []
            for start in range(max(0, end - _LONGEST), end):
                word = self._spelled(forms[start:end])
                tried.append((costs[start] + self._cost(word, plain[start:end]), start, word))
            cost, start, word = min(tried)
            costs.append(cost)
            starts.append(start)
            words.append(word)
        found: list[str] = []
        end = len(run)
        while end:
            found.append(words[end])
            end = starts[end]
        return self._named(found[::-1])

    def _forms(self, run: str, plain: str) -> list[str]:
        """Return for each character the forms that the corpus has: simplified or traditional; else the simplified."""
        known = self.lexicon.characters
        return [
            "".join(form for form in dict.fromkeys((given, easy, *TRADITIONAL.get(easy, ""))) if form in known) or easy
            for given, easy in zip(run, plain, strict=True)
        ]

    def _spelled(self, forms: list[str]) -> str:
        """Return the word of these characters that the corpus has: 頭髮, not 頭發; else the first one."""
        ways = ["".join(way) for way in islice(product(*forms), _SPELLINGS)]
        return next((way for way in ways if self.lexicon.frequency(way)), ways[0])

    def _cost(self, word: str, plain: str) -> float:
        """Return the cost of a word, about −ln of how likely it is; infinite for what is none."""
        if plain in CHINESE or self.general(plain):
            return 1 + self._rare / 2
        held = self.lexicon.frequency(word)
        if len(word) == 1:
            return 1 + self._rare - math.log(held) if held else 1 + self._rare + _NO_WORD
        if not held and not rjieba.has_word(plain):
            return math.inf
        if len(word) > 2 or not rjieba.has_word(plain):
            for rest, end in ((word[1:], plain[0]), (word[:-1], plain[-1])):
                if end in _GLUE and self.lexicon.frequency(rest) > held:
                    return math.inf
        return 1 + self._rare - math.log(held) if held else 1 + self._rare + _UNHEARD

    def _named(self, words: list[str]) -> list[str]:
        out: list[str] = []
        strange = False  # whether the last word was a character that the corpus does not know
        for word in words:
            plain = simplified(word)
            known = len(word) > 1 or self.lexicon.frequency(word) or plain in CHINESE or plain in _GLUE
            if not known and strange:
                out[-1] += word
            else:
                out.append(word)
            strange = not known
        return [part for word in out if simplified(word) not in CHINESE for part in (word, *self._parts(word))]

    def _parts(self, word: str) -> list[str]:
        """Return the longest beginning or end of a name that far more reports hold than the name, if there is one."""
        held = self.lexicon.frequency(word)
        if len(word) < 3:
            return []
        for size in range(len(word) - 1, 1, -1):
            for part in (word[-size:], word[:size]):
                if self.lexicon.frequency(part) > _BETTER_KNOWN * held:
                    return [part]
        return []
