"""BM25 statistics of the words of whole reports, kept with a version so that no query has to read the reports.

One inverted index in flat arrays: loads in milliseconds, scores a question by the postings of its words alone.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
_K1, _B = 1.2, 0.75


@dataclass(frozen=True)
class Lexicon:
    """`words` sorted; postings of word i are `rows`/`counts` from `starts[i]` to `starts[i + 1]`."""

    words: list[str]
    starts: IntArray
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int32]

    @classmethod
    def build(cls, documents: Iterable[Sequence[str]]) -> Lexicon:
        """Index documents given as lists of terms; one at a time is held, beside the postings as plain integers."""
        number: dict[str, int] = {}
        ids, counts, distinct, lengths = array("i"), array("i"), array("i"), array("i")
        for document in documents:
            times = Counter(document)
            ids.extend([number.setdefault(term, len(number)) for term in times])
            counts.extend(times.values())
            distinct.append(len(times))
            lengths.append(len(document))
        vocabulary = sorted(number)
        place = np.empty(len(vocabulary), dtype=np.int32)  # in the order of first sight → sorted
        place[[number[word] for word in vocabulary]] = np.arange(len(vocabulary), dtype=np.int32)
        word = place[_integers(ids)]
        order = np.argsort(word, kind="stable")  # rows ascend within a word, as they came
        frequency = np.bincount(word, minlength=len(vocabulary))
        rows = np.repeat(np.arange(len(lengths), dtype=np.int32), _integers(distinct))
        return cls(
            vocabulary,
            np.concatenate(([0], np.cumsum(frequency))).astype(np.int64),
            rows[order],
            _integers(counts)[order],
            _integers(lengths),
        )

    @property
    def number(self) -> dict[str, int]:
        """Return word → position, built once for an instance."""
        cached: dict[str, int] | None = self.__dict__.get("_number")
        if cached is None:
            cached = {word: i for i, word in enumerate(self.words)}
            object.__setattr__(self, "_number", cached)
        return cached

    @property
    def characters(self) -> frozenset[str]:
        """Return the characters of all words, gathered once for an instance."""
        cached: frozenset[str] | None = self.__dict__.get("_characters")
        if cached is None:
            cached = frozenset("".join(self.words))
            object.__setattr__(self, "_characters", cached)
        return cached

    def frequency(self, term: str) -> int:
        """Return how many documents hold a term."""
        i = self.number.get(term)
        return 0 if i is None else int(self.starts[i + 1] - self.starts[i])

    def holders(self, term: str) -> NDArray[np.int32]:
        """Return the documents that hold a term, ascending."""
        i = self.number.get(term)
        return self.rows[:0] if i is None else self.rows[self.starts[i] : self.starts[i + 1]]

    def telling(self, term: str) -> float:
        """Return how much a term tells, its inverse document frequency; most where no document holds it."""
        held = self.frequency(term)
        return float(np.log1p((len(self.lengths) - held + 0.5) / (held + 0.5)))

    def scores(self, query: Iterable[str]) -> NDArray[np.float64]:
        """Return one BM25 score a document, 0 where no term matches."""
        n = len(self.lengths)
        out = np.zeros(n, dtype=np.float64)
        mean = float(self.lengths.mean()) if n else 0.0
        for term in sorted(set(query)):
            i = self.number.get(term)
            if i is None:
                continue
            span = slice(int(self.starts[i]), int(self.starts[i + 1]))
            rows = self.rows[span]
            tf = self.counts[span].astype(np.float64)
            norm = _K1 * (1 - _B + _B * self.lengths[rows] / mean)
            out[rows] += self.telling(term) * tf * (_K1 + 1) / (tf + norm)
        return out


def _integers(values: array[int]) -> NDArray[np.int32]:
    return np.array(values, dtype=np.int32)
