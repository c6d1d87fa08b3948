"""What became of each point in an answer: stated, only named, not stated, or unknown where words cannot decide."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from communitree_workers.citing.likeness import Rarity, Stated, states
from communitree_workers.citing.passages import Passage
from communitree_workers.citing.traits import Traits, normalised, traits
from communitree_workers.text.sentences import sentence_spans

State = Literal["stated", "named", "not stated", "unknown"]
#: Why a point is not stated: an earlier round left it out; a passage that cites others states it; neither.
Reason = Literal["", "condensed", "elsewhere", "unused"]

#: A sentence is explained when points that it states have this share of its words.
_EXPLAINED = 0.6
#: A list of titles has at most so many words besides the titles.
_BESIDES = 6
_LEAD = re.compile(r"\s*\**([^:：\n.。]{2,60}?)\**\s?[:：]\**\s")


@dataclass(frozen=True)
class Claim:
    """A point. `ids`: the rows it rests on; `titles`: these rows' titles."""

    text: str
    ids: tuple[int, ...]
    titles: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What became of a point; `passage`: the one that states or names it."""

    state: State
    reason: Reason = ""
    passage: int | None = None


def point_states(claims: Sequence[Claim], parts: Sequence[Passage], condensed: Collection[int] = ()) -> list[Outcome]:
    """Return what became of each point.

    Args:
        claims: the points that were used.
        parts: the answer's passages.
        condensed: positions of points that an earlier round of the reduce left out, see `lost_in`.
    """
    rarity = Rarity(claim.text for claim in claims)
    texts = [_Text.of(part) for part in parts]
    said = [
        [_stated(claim, texts[n], rarity) if _cites(claim, part) else Stated.NO for n, part in enumerate(parts)]
        for claim in claims
    ]
    signs = [_signature(claim) for claim in claims]
    for i in range(len(claims)):
        for n, found in enumerate(said[i]):
            if found is Stated.AGREES:
                same = any(j != i and signs[j] == signs[i] and _cites(claims[j], parts[n]) for j in range(len(claims)))
                said[i][n] = Stated.MAYBE if same else Stated.YES
    explained = [_explained(n, text, claims, said) for n, text in enumerate(texts)]
    return [_outcome(i, claims[i], said[i], explained, texts, parts, rarity, condensed) for i in range(len(claims))]


def lost_in(claims: Sequence[Claim], parts: Sequence[Passage]) -> list[int]:
    """Return the positions of points that a condensed text surely does not state."""
    return [i for i, outcome in enumerate(point_states(claims, parts)) if outcome.state == "not stated"]


class _Text(NamedTuple):
    sentences: tuple[Traits, ...]
    whole: Traits
    around: Traits

    @classmethod
    def of(cls, part: Passage) -> _Text:
        sentences = tuple(traits(sentence) for sentence in part.sentences)
        whole = sentences[0] if len(sentences) == 1 else traits(part.text)
        return cls(sentences, whole, traits(part.around))


def _cites(claim: Claim, part: Passage) -> bool:
    return not set(claim.ids).isdisjoint(part.ids)


def _stated(claim: Claim, text: _Text, rarity: Rarity) -> Stated:
    """Say whether a passage states a point: in one sentence, or in its sentences together."""
    whole = traits(claim.text)
    found = _in(whole, text, rarity)
    if found in (Stated.YES, Stated.AGREES, Stated.FOREIGN):
        return found
    spans = sentence_spans(claim.text)
    if len(spans) > 1:
        each = [_in(traits(claim.text[a:b]), text, rarity) for a, b in spans]
        told = sum(one is Stated.YES for one in each)
        if told == len(each) or (told * 2 > len(each) and each[0] is Stated.YES and found is not Stated.NO):
            return Stated.YES
        if told or Stated.MAYBE in each:
            return Stated.MAYBE
    return found


def _in(statement: Traits, text: _Text, rarity: Rarity) -> Stated:
    best = Stated.NO
    options = [*text.sentences, text.whole] if len(text.sentences) > 1 else [text.whole]
    for option in options:
        found = states(statement, option, rarity, text.around)
        if found is Stated.YES:
            return found
        if found is not Stated.NO and best is not Stated.AGREES:
            best = found
    return best


def _signature(claim: Claim) -> frozenset[str]:
    """Return the numbers and names by which a point can be told from others, whatever its words are."""
    own = traits(claim.text)
    return frozenset({q.key for q in own.numbers} | {word for name in own.names for word in name.words})


def _explained(n: int, text: _Text, claims: Sequence[Claim], said: Sequence[Sequence[Stated]]) -> bool:
    words = {*text.whole.words, *(q.key for q in text.whole.numbers)}
    for name in text.whole.names:
        words.update(name.words)
    held: set[str] = set()
    for claim, of in zip(claims, said, strict=True):
        if of[n] is Stated.YES:
            mine = traits(claim.text)
            held |= mine.known | {q.key for q in mine.numbers}
            held |= {word for word in words if mine.has(word)}
    return bool(words) and len(words & held) >= _EXPLAINED * len(words)


def _outcome(
    i: int,
    claim: Claim,
    said: Sequence[Stated],
    explained: Sequence[bool],
    texts: Sequence[_Text],
    parts: Sequence[Passage],
    rarity: Rarity,
    condensed: Collection[int],
) -> Outcome:
    for n, found in enumerate(said):
        if found is Stated.YES:
            return Outcome("stated", "", n)
    for n, part in enumerate(parts):
        if _cites(claim, part) and Stated.FOREIGN not in said and _only_titles(claim, part):
            return Outcome("named", "", n)
    for n, found in enumerate(said):
        if found is Stated.FOREIGN or (found is Stated.MAYBE and not explained[n]):
            return Outcome("unknown", "", n)
    for n, part in enumerate(parts):
        if _cites(claim, part) and _only_titles(claim, part):
            return Outcome("named", "", n)
    if i in condensed:
        return Outcome("not stated", "condensed")
    for n, part in enumerate(parts):
        if not _cites(claim, part) and _stated(claim, texts[n], rarity) is Stated.YES:
            return Outcome("not stated", "elsewhere", n)
    return Outcome("not stated", "unused")


def _only_titles(claim: Claim, part: Passage) -> bool:
    """Say whether a passage holds a title of the point's rows, or what the point begins with, and little else."""
    lead = _LEAD.match(claim.text)
    titles = [normalised(t).casefold() for t in (*claim.titles, *([lead[1]] if lead else ())) if len(t.strip()) > 1]
    for sentence in part.sentences:
        text = normalised(sentence).casefold()
        if any(title in text for title in titles):
            rest = [w for w in traits(sentence).words if not any(w in title for title in titles)]
            items = len(re.split(r"[,，、;；]|\band\b|和", text))
            if len(rest) <= _BESIDES or items >= 3:
                return True
    return False
