"""Entities without a model: the candidates of each sentence of a shard of text units, and nothing decided yet.

A shard is a pure function of its text units. What becomes an entity is decided over the whole corpus, in `merging`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from communitree_shared.contract.options import ExtractOptions
from communitree_workers.corpus.extraction import chinese, english
from communitree_workers.corpus.extraction.candidates import Candidate
from communitree_workers.corpus.extraction.markup import prose
from communitree_workers.corpus.extraction.shards import FORMS, SENTENCES, UNITS, Shard
from communitree_workers.text.sentences import sentence_spans
from communitree_workers.text.words import CJK_RUN

#: Part of a shard's identity: a new version extracts again.
VERSION = "builtin-4"
#: Gives the candidates of each span of a text, in order.
Reader = Callable[[str, Sequence[tuple[int, int]]], Iterable[list[Candidate]]]

#: Sentences longer than this are tables or lists that no rule cut; co-occurrence in them means little.
_LONGEST_SENTENCE = 2_000
#: With an English corpus, a sentence with a stray Chinese word is still an English sentence.
_CHINESE_SHARE = 0.2


def extract_units(units: pa.Table, options: ExtractOptions, language: str = "") -> Shard:
    """Return the candidates of these text units (columns id and text).

    `language` is the corpus's; each sentence is read by its own script, and it only decides for sentences of both.
    """

    def candidates(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[list[Candidate]]:
        for start, end in spans:
            sentence = text[start:end]
            chosen = chinese if is_chinese(sentence, language) else english
            yield chosen.candidates(sentence)

    return shard_of(units, candidates)


def shard_of(units: pa.Table, candidates: Reader) -> Shard:
    """Return the shard of these text units (columns id and text), with what `candidates` finds in their sentences."""
    forms: dict[Candidate, int] = {}
    rows: list[tuple[int, int, int, list[int]]] = []
    for number, text in enumerate(units["text"].to_pylist()):
        clean = prose(text)
        spans = [(start, min(end, start + _LONGEST_SENTENCE)) for start, end in sentence_spans(clean)]
        for (start, end), sentence in zip(spans, candidates(clean, spans), strict=True):
            found = [forms.setdefault(c, len(forms)) for c in sentence]
            if found:
                rows.append((number, start, end, found))
    return Shard(
        pa.table([units["id"].combine_chunks()], schema=UNITS), _table(list(forms), FORMS), _table(rows, SENTENCES)
    )


def is_chinese(sentence: str, language: str) -> bool:
    """Say whether a sentence is to be read as Chinese, in a corpus of this language."""
    if sentence.isascii():
        return False
    characters = sum(map(len, CJK_RUN.findall(sentence)))
    return characters > (len(sentence) * _CHINESE_SHARE if language == "en" else 0)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
