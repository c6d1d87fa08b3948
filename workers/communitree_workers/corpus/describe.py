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
_SPACE = re.compile(r"\s+")
_CJK_GAP = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")


def describe_entities(
    size: int, sentence: Ints, position: Ints, entity: Ints, spans: Spans, texts: pa.ChunkedArray
) -> list[str]:
    """Return a description for each entity: up to three sentences, those that begin with it and say something first."""
    length = (spans[2] - spans[1])[sentence]
    score = 3.0 * (position == 0) + 1.0 * (position == 1) + 2.0 * ((length > 25) & (length < 250)) - 1.0 * (length < 20)
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
    """Return for each edge the shortest telling sentence that names both ends, "" where there is none."""
    known = np.sort(sentence * max(size, 1) + entity)
    by_entity = np.lexsort((sentence, entity))
    sentences = sentence[by_entity]
    starts = np.searchsorted(entity[by_entity], np.arange(size + 1))
    counts = np.diff(starts)
    fewer = np.where(counts[a] <= counts[b], a, b)
    other = a + b - fewer
    length = spans[2] - spans[1]
    best = np.full(len(a), -1, dtype=np.int64)
    for block in range(0, len(a), 100_000):
        chosen = np.arange(block, min(block + 100_000, len(a)))
        n = counts[fewer[chosen]]
        edge = np.repeat(chosen, n)
        inner = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        where = sentences[np.repeat(starts[fewer[chosen]], n) + inner]
        probe = where * max(size, 1) + other[edge]
        at = np.minimum(np.searchsorted(known, probe), max(len(known) - 1, 0))
        hit = known[at] == probe if len(known) else np.zeros(0, dtype=bool)
        edge, where = edge[hit], where[hit]
        cost = np.where(length[where] < 25, 1_000, length[where])
        order = np.lexsort((where, cost, edge))
        firsts = order[np.unique(edge[order], return_index=True)[1]]
        best[edge[firsts]] = where[firsts]
    named = np.flatnonzero(best >= 0)
    out = [""] * len(a)
    for row, text in zip(named.tolist(), _texts(best[named], spans, texts), strict=True):
        out[row] = text
    return out


def _texts(sentence: Ints, spans: Spans, texts: pa.ChunkedArray) -> list[str]:
    """Return the cleaned text of sentences, each text unit fetched once."""
    wanted, inverse = np.unique(sentence, return_inverse=True)
    out: list[str] = []
    held, unit_text = -1, ""
    places: list[list[int]] = [column[wanted].tolist() for column in spans]
    for unit, start, end in zip(places[0], places[1], places[2], strict=True):
        if unit != held:
            held, unit_text = unit, prose(texts[unit].as_py())
        out.append(_clean(unit_text[start:end]))
    return [out[n] for n in inverse.tolist()]


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
