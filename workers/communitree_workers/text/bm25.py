"""BM25 over a fixed list of documents (Robertson and Zaragoza 2009), numpy, deterministic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class Bm25:
    """An index of documents given as lists of terms.

    `idf` is ln(1 + (N − n + 0.5) / (n + 0.5)): never negative, so that a common term cannot push a match down.
    """

    def __init__(self, documents: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        self.size = len(documents)
        vocabulary: dict[str, int] = {}
        term_ids: list[int] = []
        rows: list[int] = []
        counts: list[int] = []
        lengths = np.zeros(self.size, dtype=np.float64)
        for row, document in enumerate(documents):
            lengths[row] = len(document)
            for term, n in Counter(document).items():
                term_ids.append(vocabulary.setdefault(term, len(vocabulary)))
                rows.append(row)
                counts.append(n)
        ids = np.asarray(term_ids, dtype=np.int64)
        order = np.argsort(ids, kind="stable")
        frequency = np.bincount(ids, minlength=len(vocabulary)) if len(ids) else np.zeros(0, dtype=np.int64)
        self._vocabulary = vocabulary
        self._starts = np.concatenate(([0], np.cumsum(frequency)))
        self._rows = np.asarray(rows, dtype=np.int64)[order]
        self._idf = np.log1p((self.size - frequency + 0.5) / (frequency + 0.5))
        tf = np.asarray(counts, dtype=np.float64)[order]
        mean = float(lengths.mean()) if self.size else 0.0
        norm = k1 * (1 - b + b * lengths / mean) if mean else np.full(self.size, k1)
        self._weights = tf * (k1 + 1) / (tf + norm[self._rows]) if len(tf) else tf

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term; the highest possible one for an unknown term."""
        index = self._vocabulary.get(term)
        if index is None:
            return float(np.log1p((self.size + 0.5) / 0.5))
        return float(self._idf[index])

    def scores(self, query_terms: Iterable[str]) -> NDArray[np.float64]:
        """Return one score a document, 0 where no term matches; a repeated query term counts as often."""
        out = np.zeros(self.size, dtype=np.float64)
        # Sorted, so that the order of the query's words cannot change the last bit of a sum.
        for term, times in sorted(Counter(query_terms).items()):
            index = self._vocabulary.get(term)
            if index is None:
                continue
            span = slice(self._starts[index], self._starts[index + 1])
            out[self._rows[span]] += times * self._idf[index] * self._weights[span]
        return out
