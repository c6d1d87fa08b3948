"""Words of a text, for search: normalised, without stop-words, English and Chinese in one pass.

English has a tokeniser of our own with plural folding; Chinese is cut by rjieba in its search mode, so that a query
for 工程 finds 总工程师 too; `chinese_cut` makes it know a corpus's own names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

import rjieba

from communitree_shared.languages import CJK as CJK
from communitree_shared.languages import CJK_RUN as CJK_RUN
from communitree_shared.languages import language as language
from communitree_workers.text.stopwords import CHINESE, ENGLISH

_RUNS = re.compile(rf"([{CJK}]+)|([^\W_{CJK}]+(?:['’][^\W_{CJK}]+)*)")
#: The same for text that is plain ASCII, and in lower case already.
_PLAIN_RUNS = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")

#: A name counts as this frequent in rjieba's dictionary (of 60 million words): enough for 和 + 黛玉 to beat 和黛玉.
_NAME_FREQUENCY = 20_000
_LONGEST_NAME = 6


def is_cjk(character: str) -> bool:
    """Say whether a character belongs to a script written without spaces (Han or kana)."""
    return CJK_RUN.fullmatch(character) is not None


@lru_cache(maxsize=65_536)
def fold_plural(word: str) -> str:
    """Return a lower-case English word without a plural ending (Harman's S-stemmer, words of four letters and more)."""
    if len(word) < 4 or not word.endswith("s") or not word.isascii():
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith(("us", "ss", "is")):
        return word
    return word[:-1]


#: Cuts a run of Chinese characters into words.
Cut = Callable[[str], list[str]]


def chinese_cut(names: Iterable[str]) -> Cut:
    """Return rjieba's search mode with a corpus's own names: 和黛玉 and 进贾府 are then no words.

    Its dictionary holds such accidents, and it guesses more of them around each name that it does not know. Names of
    two to six Chinese characters count; without any it is the shared dictionary.
    """
    own = {name for name in names if 2 <= len(name) <= _LONGEST_NAME and CJK_RUN.fullmatch(name)}
    if not own:
        return rjieba.cut_for_search
    jieba = rjieba.Jieba()  # 0.1 s; the shared one must not learn a corpus's names
    for name in sorted(own):
        jieba.add_word(name, max(_NAME_FREQUENCY, jieba.suggest_freq(name)), None)
    return jieba.cut_for_search


def terms(text: str, cut: Cut = rjieba.cut_for_search) -> list[str]:
    """Return the search terms of a text in order, with repetitions.

    NFKC and case are folded, possessives and plurals cut, stop-words left out. A Chinese run gives the words of `cut`
    (rjieba's search mode, if no other is given), single characters included unless they are stop-words.
    """
    if text.isascii():  # no script but one, and nothing to normalise: a tenth of the time
        return [term for word in _PLAIN_RUNS.findall(text.lower()) for term in _FOLDED[word]]
    out: list[str] = []
    for match in _RUNS.finditer(unicodedata.normalize("NFKC", text)):
        chinese, word = match.groups()
        if chinese is not None:
            out.extend(w for w in cut(chinese) if w not in CHINESE)
            continue
        out.extend(_FOLDED[word.casefold().replace("’", "'")])
    return out


class _Folded(dict[str, tuple[str, ...]]):
    """Word in lower case → its terms: none for a stop-word, two where an apostrophe divides it. Full, it forgets."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= 100_000:
            self.clear()
        whole = word[:-2] if word.endswith("'s") else word
        found = self[word] = tuple(fold_plural(part) for part in whole.split("'") if part not in ENGLISH)
        return found


_FOLDED = _Folded()
