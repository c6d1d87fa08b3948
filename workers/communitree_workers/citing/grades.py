"""Grades of citations: whether the text of the cited report says what the citing sentence says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from communitree_workers.citing.likeness import Rarity, Stated, coverage, states
from communitree_workers.citing.passages import Passage
from communitree_workers.citing.traits import Traits, traits
from communitree_workers.text.sentences import sentence_spans

Grade = Literal["supported", "related", "unsupported", "unknown"]
#: The best grade first.
ORDER: tuple[Grade, ...] = ("supported", "related", "unsupported", "unknown")
#: A report that is cited with others for one sentence supports it with this share of its words.
_SHARE = 0.25
#: A sentence with fewer words and no key says nothing that could be checked.
_FEWEST = 2


@dataclass(frozen=True)
class Evidence:
    """A cited report: its title, and its texts (summary, each finding) without references."""

    title: str
    texts: tuple[str, ...]


class _Read(NamedTuple):
    sentences: tuple[Traits, ...]
    texts: tuple[Traits, ...]
    title: Traits
    whole: Traits
    rarity: Rarity


@lru_cache(maxsize=1024)
def _read(evidence: Evidence) -> _Read:
    pieces = [text[a:b] for text in evidence.texts for a, b in sentence_spans(text)]
    return _Read(
        tuple(map(traits, pieces)),
        tuple(map(traits, evidence.texts)),
        traits(evidence.title),
        traits("\n".join([evidence.title, *evidence.texts])),
        Rarity(pieces),
    )


def grade(passage: Passage, evidence: Evidence | None, others: Sequence[Evidence] = ()) -> Grade:
    """Return the grade of a citation.

    Args:
        passage: the part of the answer that cites; several sentences are supported when each is.
        evidence: the cited report; None: there is none with this id.
        others: reports that the same passage cites besides.
    """
    if evidence is None:
        return "unknown"
    read = _read(evidence)
    around = traits(passage.around)
    grades = [_sentence(traits(s), read, around, others) for s in passage.sentences]
    told = [g for g in grades if g is not None]
    if not told:
        return "related"
    if all(g == "supported" for g in told):
        return "supported"
    return "unsupported" if all(g == "unsupported" for g in told) else "related"


def together(grades: Sequence[Grade]) -> Grade:
    """Return the grade of a row that several passages cite: supported where each is, unsupported where one is."""
    if grades and all(one == "supported" for one in grades):
        return "supported"
    return "unsupported" if "unsupported" in grades else "related"


def _sentence(sentence: Traits, read: _Read, around: Traits, others: Sequence[Evidence]) -> Grade | None:
    if not sentence.keys and len(sentence.words) < _FEWEST:
        return None
    best = Stated.NO
    for text in (*read.sentences, *read.texts):
        found = states(sentence, text, read.rarity, read.title)
        if found in (Stated.YES, Stated.AGREES):
            return "supported"
        if found is not Stated.NO:
            best = found
    if others:
        shared = _together(sentence, read, others)
        if shared is not None:
            return shared
    del around
    return "unsupported" if best is Stated.NO else "related"


def _together(sentence: Traits, read: _Read, others: Sequence[Evidence]) -> Grade | None:
    """Return the grade where reports are cited together: what one says is part of what all of them say."""
    joined = traits(" ".join([read.whole.text, *(_read(other).whole.text for other in others)]))
    share, _ = coverage(sentence, read.whole, read.rarity)
    own = {n.key for n in sentence.numbers} & {n.key for n in read.whole.numbers}
    named = any(all(read.whole.has(word) for word in name.words) for name in sentence.names if name.sure)
    missing = {n.key for n in sentence.numbers} - {n.key for n in joined.numbers}
    lost = [n for n in sentence.names if n.sure and not all(joined.has(word) for word in n.words)]
    if share < _SHARE or not (own or named or not sentence.keys):
        return None
    return "related" if missing or lost else "supported"
