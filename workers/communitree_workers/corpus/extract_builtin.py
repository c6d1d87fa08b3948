"""Entities without a model: the candidates of each sentence of a shard of text units, and nothing decided yet.

A shard is a pure function of its text units. What becomes an entity is decided over the whole corpus, in `weigh`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from communitree_shared.options import ExtractOptions
from communitree_workers.corpus import chinese, english
from communitree_workers.corpus.candidates import Candidate
from communitree_workers.corpus.markup import prose
from communitree_workers.corpus.shards import FORMS, SENTENCES, UNITS, Shard
from communitree_workers.text.sentences import sentence_spans
from communitree_workers.text.words import CJK_RUN

#: Sentences longer than this are tables or lists that no rule cut; co-occurrence in them means little.
_LONGEST_SENTENCE = 2_000
#: With an English corpus, a sentence with a stray Chinese word is still an English sentence.
_CHINESE_SHARE = 0.2


def extract_units(units: pa.Table, options: ExtractOptions, language: str = "") -> Shard:
    """Return the candidates of these text units (columns id and text).

    `language` is the corpus's; each sentence is read by its own script, and it only decides for sentences of both.
    """
    forms: dict[Candidate, int] = {}
    rows: list[tuple[int, int, int, list[int]]] = []
    for number, text in enumerate(units["text"].to_pylist()):
        clean = prose(text)
        for start, end in sentence_spans(clean):
            if end - start > _LONGEST_SENTENCE:
                end = start + _LONGEST_SENTENCE
            sentence = clean[start:end]
            found = [forms.setdefault(c, len(forms)) for c in _candidates(sentence, language)]
            if found:
                rows.append((number, start, end, found))
    return Shard(
        pa.table([units["id"].combine_chunks()], schema=UNITS), _table(list(forms), FORMS), _table(rows, SENTENCES)
    )


def _candidates(sentence: str, language: str) -> list[Candidate]:
    if sentence.isascii():
        return english.candidates(sentence)
    chinese_characters = sum(map(len, CJK_RUN.findall(sentence)))
    if chinese_characters > (len(sentence) * _CHINESE_SHARE if language == "en" else 0):
        return chinese.candidates(sentence)
    return english.candidates(sentence)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
