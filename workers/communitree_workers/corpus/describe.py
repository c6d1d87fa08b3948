"""Descriptions from the sentences that mention a thing: the most telling ones, in the order of the text."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from communitree_workers.corpus.graph import Ints
from communitree_workers.corpus.markup import prose

#: text unit, start and end of each sentence
Spans = tuple[Ints, Ints, Ints]

_SENTENCES = 3
_LONGEST = 300
#: A sentence below this says little; edges are looked up in blocks of so many.
_SHORTEST = 25
_BLOCK = 100_000
_SPACE = re.compile(r"\s+")
_CJK_GAP = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")


def describe_entities(
    size: int, sentence: Ints, position: Ints, entity: Ints, spans: Spans, texts: pa.ChunkedArray
) -> list[str]:
    """Return a description for each entity: up to three sentences, those that begin with it and say something first."""
    length = (spans[2] - spans[1])[sentence]
    score = (
        3.0 * (position == 0)
        + 1.0 * (position == 1)
        + 2.0 * ((length >= _SHORTEST) & (length < 250))
        - 1.0 * (length < 20)
    )
    order = np.lexsort((sentence, -score, entity))
    entity, sentence = entity[order], sentence[order]
    fresh = np.ones(len(entity), dtype=bool)
    fresh[1:] = (entity[1:] != entity[:-1]) | (sentence[1:] != sentence[:-1])
    entity, sentence = entity[fresh], sentence[fresh]
    starts = np.flatnonzero(np.diff(entity, prepend=-1))
    rank = np.arange(len(entity)) - np.repeat(starts, np.diff(np.append(starts, len(entity))))
    entity, sentence = entity[rank < _SENTENCES], sentence[rank < _SENTENCES]
    order = np.lexsort((sentence, entity))
    entity, sentence = entity[order], sentence[order]
    found = _texts(sentence, spans, texts)
    out: list[list[str]] = [[] for _ in range(size)]
    for n, text in zip(entity.tolist(), found, strict=True):
        if text and text not in out[n]:
            out[n].append(text)
    return [_joined(parts) for parts in out]


def describe_edges(
    a: Ints, b: Ints, sentence: Ints, entity: Ints, size: int, spans: Spans, texts: pa.ChunkedArray
) -> list[str]:
    """Return for each edge the shortest telling sentence that names both ends, else two neighbours that do."""
    named = _Named(sentence, entity, size, spans)
    first = np.full(len(a), -1, dtype=np.int64)
    last = first.copy()
    for before, after in ((0, 0), (0, 1), (-1, 0)):
        for edges in np.array_split(np.flatnonzero(first < 0), len(a) // _BLOCK + 1):
            found, where = named.both(a[edges], b[edges], after + before)
            first[edges[found]], last[edges[found]] = where + before, where + after
    told = np.flatnonzero(first >= 0)
    first, last = first[told], last[told]
    out = [""] * len(a)
    joint = (spans[0][first], spans[1][first], spans[2][last])
    for row, text in zip(told.tolist(), _texts(np.arange(len(told)), joint, texts), strict=True):
        out[row] = text
    return out


class _Named:
    """Which sentence names which entity."""

    def __init__(self, sentence: Ints, entity: Ints, size: int, spans: Spans) -> None:
        self.size = max(size, 1)
        self.known = np.sort(sentence * self.size + entity)
        by_entity = np.lexsort((sentence, entity))
        self.sentences = sentence[by_entity]
        self.starts = np.searchsorted(entity[by_entity], np.arange(size + 1))
        self.counts = np.diff(self.starts)
        self.unit, self.length = spans[0], spans[2] - spans[1]

    def both(self, a: Ints, b: Ints, shift: int) -> tuple[Ints, Ints]:
        """Return the rows where a sentence names the rarer end, and the one `shift` further the other; and which."""
        if not len(a) or not len(self.known):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        fewer = np.where(self.counts[a] <= self.counts[b], a, b)
        other = a + b - fewer
        n = self.counts[fewer]
        row = np.repeat(np.arange(len(a)), n)
        inner = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        where = self.sentences[np.repeat(self.starts[fewer], n) + inner]
        there = np.clip(where + shift, 0, len(self.unit) - 1)
        probe = there * self.size + other[row]
        at = np.minimum(np.searchsorted(self.known, probe), len(self.known) - 1)
        hit = (self.known[at] == probe) & (self.unit[there] == self.unit[where]) & (there == where + shift)
        row, where, there = row[hit], where[hit], there[hit]
        cost = np.maximum(self.length[where], self.length[there])
        cost = np.where(cost < _SHORTEST, 1_000, cost)
        order = np.lexsort((where, cost, row))
        best = order[np.unique(row[order], return_index=True)[1]]
        return row[best], where[best]


def _texts(sentence: Ints, spans: Spans, texts: pa.ChunkedArray) -> list[str]:
    """Return the cleaned text of spans; each text unit is fetched once, equal spans share one string."""
    unit, start, end = (column[sentence] for column in spans)
    order = np.lexsort((end, start, unit))
    out = [""] * len(sentence)
    held, unit_text = -1, ""
    last, text = (-1, -1, -1), ""
    rows: list[list[int]] = [column[order].tolist() for column in (unit, start, end)]
    for row, *place in zip(order.tolist(), *rows, strict=True):
        if place[0] != held:
            held, unit_text = place[0], prose(texts[place[0]].as_py())
        if tuple(place) != last:
            last = (place[0], place[1], place[2])
            text = _clean(unit_text[place[1] : place[2]])
        out[row] = text
    return out


def _clean(sentence: str) -> str:
    text = _CJK_GAP.sub("", _SPACE.sub(" ", sentence)).strip()
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + "…"


def _joined(parts: list[str]) -> str:
    """Sentences side by side; one without an end, a heading, gets a full stop."""
    out = ""
    for part in parts:
        if out and out[-1].isalnum():
            out += "。" if "\u4e00" <= out[-1] <= "\u9fff" else "."
        out += part if not out or out[-1] in "。！？；…”」』" else " " + part
    return out
