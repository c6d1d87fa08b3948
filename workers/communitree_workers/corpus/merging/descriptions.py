"""Descriptions from the sentences that mention a thing: the most telling ones, in the order of the text."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pyarrow as pa

from communitree_workers.corpus.extraction.markup import prose
from communitree_workers.corpus.merging.graph import Ints, unique_pairs
from communitree_workers.tables.columns import blocks

#: text unit, start and end of each sentence
Spans = tuple[Ints, Ints, Ints]

_SENTENCES = 3
_LONGEST = 300
#: A sentence below this says little.
_SHORTEST = 25
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+")
#: Texts that are Python objects at a time, and sentences that are tried for edges at a time.
_BLOCK, _PROBES = 100_000, 2_000_000
_SPACE = re.compile(r"[\s|]+")
_CJK_GAP = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")


def describe(
    size: int, mentions: tuple[Ints, Ints, Ints], a: Ints, b: Ints, spans: Spans, texts: pa.ChunkedArray
) -> tuple[pa.Array, pa.Array]:
    """Return a description for each of `size` entities and each edge (a, b).

    `mentions`: sentence, position in it, and entity. An entity has up to three sentences, those that begin with it and
    say something first; an edge has the shortest telling sentence that names both ends, else two neighbours that do.
    """
    sentence, position, entity = mentions
    owner, chosen = _of_entities(sentence, position, entity, spans)
    edge, first, last = _of_edges(a, b, *unique_pairs(sentence, entity, size), size, spans)
    start = np.concatenate([chosen, first])
    end = np.concatenate([chosen, last])
    place, found = _texts((spans[0][start], spans[1][start], spans[2][end]), texts)
    told = np.full(len(a), len(found) - 1, dtype=np.int64)
    told[edge] = place[len(chosen) :]
    return _joined(found, place[: len(chosen)], owner, size), found.take(pa.array(told))


def _of_entities(sentence: Ints, position: Ints, entity: Ints, spans: Spans) -> tuple[Ints, Ints]:
    """Return (entity, sentence) of the sentences that describe entities, in the order of both."""
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
    return entity[order], sentence[order]


def _of_edges(a: Ints, b: Ints, sentence: Ints, entity: Ints, size: int, spans: Spans) -> tuple[Ints, Ints, Ints]:
    """Return the edges that are told of, and the first and last sentence that does."""
    named = _Named(sentence, entity, size, spans)
    first = np.full(len(a), -1, dtype=np.int64)
    last = first.copy()
    for before, after in ((0, 0), (0, 1), (-1, 0)):
        untold = np.flatnonzero(first < 0)
        for part in blocks(np.minimum(named.counts[a[untold]], named.counts[b[untold]]), _PROBES):
            edges = untold[part]
            found, where = named.both(a[edges], b[edges], after + before)
            first[edges[found]], last[edges[found]] = where + before, where + after
    told = np.flatnonzero(first >= 0)
    return told, first[told], last[told]


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


def _texts(places: Spans, texts: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Return the number of each place's text, and the cleaned texts of all distinct places, an empty one at the end.

    A sentence tells of several things: its text is there once. Each text unit is fetched once, and few texts are Python
    objects at a time.
    """
    order = np.lexsort(places[::-1])
    fresh = np.zeros(len(order), dtype=bool)
    fresh[:1] = True
    for column in places:
        fresh[1:] |= np.diff(column[order]) != 0
    number = np.empty_like(order)
    number[order] = np.cumsum(fresh) - 1
    order = order[fresh]
    made: list[pa.Array] = []
    held, unit_text = -1, ""
    for block in range(0, len(order), _BLOCK):
        out = []
        rows = [column[order[block : block + _BLOCK]].tolist() for column in places]
        for unit, start, end in zip(*rows, strict=True):
            if unit != held:
                held, unit_text = unit, prose(texts[unit].as_py())
            out.append(_clean(unit_text[start:end]))
        made.append(pa.array(out, pa.large_string()))
    return number, pa.concat_arrays([*made, pa.array([""], pa.large_string())])


def _clean(sentence: str) -> str:
    text = _CJK_GAP.sub("", _SPACE.sub(" ", _HEADING.sub("", sentence))).strip()
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + "…"


def _joined(found: pa.Array, place: Ints, owner: Ints, size: int) -> pa.Array:
    """Return for each owner (0 to size − 1; `owner` ascends) its different texts, numbers in `found`, side by side."""
    bounds = np.searchsorted(owner, np.arange(size + 1))
    made: list[pa.Array] = [pa.array([], pa.large_string())]
    for block in range(0, size, _BLOCK):
        edges = bounds[block : block + _BLOCK + 1].tolist()
        parts = found.take(pa.array(place[edges[0] : edges[-1]])).to_pylist()
        joined = [
            _side_by_side(list(dict.fromkeys(t for t in parts[start - edges[0] : end - edges[0]] if t)))
            for start, end in itertools.pairwise(edges)
        ]
        made.append(pa.array(joined, pa.large_string()))
    return pa.concat_arrays(made)


def _side_by_side(parts: list[str]) -> str:
    """Sentences side by side; one without an end, a heading, gets a full stop."""
    out = ""
    for part in parts:
        if out and out[-1].isalnum():
            out += "。" if "\u4e00" <= out[-1] <= "\u9fff" else "."
        out += part if not out or out[-1] in "。！？；…”」』" else " " + part
    return out
