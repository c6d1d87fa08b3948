"""Documents → text units: windows of tokens, whole sentences where that is wanted, offsets into the document kept.

A document is worked on in blocks of about a million characters, so that one of 200 MB needs no more than its text and
its units. A block ends where its last full unit ends, and the next begins there: units do not show where blocks meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from communitree_shared.contract.options import ReadOptions
from communitree_shared.tokens import encoding
from communitree_workers.corpus.disk.large_text import LargeText
from communitree_workers.corpus.reading.documents import Document
from communitree_workers.text.sentences import sentence_spans

Ints = NDArray[np.int64]

_BLOCK = 1_000_000


def text_units(document: Document, options: ReadOptions) -> list[dict[str, Any]]:
    """Return the text units of a document as rows: id, text, n_tokens, document_id, start, end.

    `document.text[start:end]` is the unit's text, after its metadata lines where `prepend_metadata` is set. Units
    are at most `chunk_tokens` long (one character may be longer than a tiny limit) and share at most `chunk_overlap`.
    """
    return list(iter_text_units(document, options))


def iter_text_units(document: Document, options: ReadOptions) -> Iterator[dict[str, Any]]:
    """Yield what `text_units` returns, a unit at a time."""
    header = _header(document, options) if options.prepend_metadata else ""
    enc = encoding(options.encoding_model)
    for start, end, n_tokens in _windows(document.text, options, len(enc.encode_ordinary(header))):
        body = document.text[start:end]
        if not body or body.isspace():
            continue
        text = header + body
        digest = hashlib.sha256(f"{document.id}\n{start}\n{text}".encode()).hexdigest()[:32]
        yield {
            "id": digest,
            "text": text,
            "n_tokens": len(enc.encode_ordinary(text)) if header else n_tokens,
            "document_id": document.id,
            "start": start,
            "end": end,
        }


def _header(document: Document, options: ReadOptions) -> str:
    """Metadata as lines, cut so that at least half of a unit is text."""
    lines = {"title": document.title, **document.metadata}
    header = "".join(f"{name}: {' '.join(value.split())}\n" for name, value in lines.items())
    enc = encoding(options.encoding_model)
    ids = enc.encode_ordinary(header)
    if len(ids) <= options.chunk_tokens // 2:
        return header + "\n"
    return enc.decode_bytes(ids[: options.chunk_tokens // 2 - 1]).decode("utf-8", "ignore") + "\n\n"


def _windows(text: str | LargeText, options: ReadOptions, header_tokens: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and tokens of each unit's body."""
    limit = options.chunk_tokens - header_tokens
    overlap = min(options.chunk_overlap, limit // 2)
    position = 0
    while position < len(text):
        block = text[position : position + _BLOCK]
        last = position + len(block) == len(text)
        starts, ends, firsts, stops = _atoms(block, limit, overlap, options)
        if not len(starts):
            position += len(block)
            continue
        following = position + len(block)
        packed = _packed(block, firsts, stops, starts, ends, limit, overlap, options.encoding_model)
        for i, j, begin_next, n_tokens in packed:
            if j == len(starts) and not last:
                # The block ran out before the unit was full: the next block starts with this unit.
                following = position + int(starts[i])
                break
            yield position + int(starts[i]), position + int(ends[j - 1]), n_tokens
            following = position + int(starts[begin_next]) if begin_next < len(starts) else position + len(block)
        position = following


def _packed(
    block: str, firsts: Ints, stops: Ints, starts: Ints, ends: Ints, limit: int, overlap: int, model: str
) -> Iterator[tuple[int, int, int, int]]:
    """Yield first atom, atom after the last, first atom of the next unit, and tokens."""
    enc = encoding(model)
    n, i, reached = len(starts), 0, 0
    while i < n:
        j = max(i + 1, reached + 1, int(np.searchsorted(stops, firsts[i] + limit, side="right")))
        # Tokens of a part are not exactly the part of the tokens: count, and give back what is too much. A unit always
        # goes further than the one before; if it cannot, it overlaps less.
        while (n_tokens := len(enc.encode_ordinary(block[starts[i] : ends[j - 1]]))) > limit and j > i + 1:
            if j > reached + 1:
                j -= 1
            else:
                i += 1
        if j == n:
            yield i, j, n, n_tokens
            return
        back = int(np.searchsorted(firsts, stops[j - 1] - overlap, side="left"))
        following = min(max(back, i + 1), j)
        yield i, j, following, n_tokens
        i, reached = following, j


def _atoms(block: str, limit: int, overlap: int, options: ReadOptions) -> tuple[Ints, Ints, Ints, Ints]:
    """Return what units are made of, sentences or tokens: start and end in characters, first token and token after."""
    bounds = _token_bounds(block, options.encoding_model)
    if options.chunking == "tokens":
        edges, first = np.unique(bounds, return_index=True)
        return edges[:-1], edges[1:], first[:-1], first[1:]
    spans = np.asarray(sentence_spans(block), dtype=np.int64).reshape(-1, 2)
    firsts = _tokens_at(bounds, spans[:, 0])
    stops = np.searchsorted(bounds, spans[:, 1], side="left")
    long = np.flatnonzero(stops - firsts > limit)
    if not len(long):
        return spans[:, 0], spans[:, 1], firsts, stops
    return _with_pieces(
        block, spans, firsts, stops, set(long.tolist()), bounds, max(16, min(limit // 8, overlap or limit))
    )


def _with_pieces(
    block: str, spans: Ints, firsts: Ints, stops: Ints, long: set[int], bounds: Ints, step: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Cut sentences that are longer than a unit into pieces of at most `step` tokens, at white space or commas."""
    out: list[tuple[int, int, int, int]] = []
    for k, (start, end) in enumerate(spans.tolist()):
        if k not in long:
            out.append((start, end, int(firsts[k]), int(stops[k])))
            continue
        token = int(firsts[k])
        while start < end:
            stop = min(token + step, int(stops[k]))
            while stop < int(stops[k]) and int(bounds[stop]) <= start:
                stop += 1
            cut = _soft_cut(block, start, min(int(bounds[stop]), end)) if stop < int(stops[k]) else end
            stop = int(np.searchsorted(bounds, cut, side="left"))
            out.append((start, cut, token, stop))
            start, token = cut, int(_tokens_at(bounds, cut))
    columns = np.asarray(out, dtype=np.int64)
    return columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3]


def _tokens_at(bounds: Ints, starts: Ints | int) -> Ints:
    """Return the token in which each character begins: of a character of several tokens the first."""
    return np.minimum(np.searchsorted(bounds, starts), np.searchsorted(bounds, starts, side="right") - 1)


def _soft_cut(block: str, start: int, cut: int) -> int:
    for position in range(cut, start + (cut - start) * 3 // 4, -1):
        if block[position - 1] in " \n\t\u3000,，、;；:：":
            return position
    return cut


def _token_bounds(text: str, model: str) -> Ints:
    """Return the character offset where each token starts, and the text's length; inside a character, its start."""
    enc = encoding(model)
    ids = np.asarray(enc.encode_ordinary(text), dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum(_token_lengths(model)[ids])))
    if text.isascii():
        return offsets
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    character = np.cumsum((raw & 0xC0) != 0x80, dtype=np.int64) - 1
    return np.concatenate((character, [len(text)]))[offsets]


@cache
def _token_lengths(model: str) -> Ints:
    enc = encoding(model)
    lengths = np.zeros(enc.n_vocab, dtype=np.int64)
    for token in range(enc.n_vocab):
        try:
            lengths[token] = len(enc.decode_single_token_bytes(token))
        except KeyError:
            continue
    return lengths
