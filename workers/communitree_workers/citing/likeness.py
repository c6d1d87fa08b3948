"""A measure of whether a passage states a statement: numbers and names first, then its rare words.

Statements that differ in one name or number share all their words. So every number and every certain name must stand in
the passage, those that belong together side by side; of the words the rare ones decide. Where words cannot decide, the
measure says so.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from communitree_workers.citing.quantities import agrees
from communitree_workers.citing.traits import Name, Traits, stem, traits

#: Share of the weight of a statement's words that must stand in the passage: without a key, with one, with more.
_ENOUGH = (0.62, 0.5, 0.34)
#: With two names or numbers that agree, this share of the words.
_HALF = 0.5
#: So many names and numbers together are hardly another fact's.
_SIGNATURE = 3
#: Below this share nothing of the words is there.
_LITTLE = 0.2
#: A word is one of the rarest with this share of the weight of the rarest; so much of these may be missing.
_HEAVY, _MISSED = 0.7, 0.25
#: Of Chinese nouns so many, whatever their weight.
_GONE = 0.15
#: A name and a number belong together by the characters between them; words that part clauses count for more.
_STEP, _SENTENCE = 20, 200
_STEPS = re.compile(r"\band\b|\bwhile\b|[,;，、；]|和|而")
_STOPS = re.compile(r"[.!?](?=\s)|[。！？\n]")
_BETWEEN = re.compile(r"[^\W\d_]{4,}")


class Stated(Enum):
    """Whether a passage states a statement.

    `AGREES`: all of several names and numbers do, the words do not: other words, another language, or another fact.
    `MAYBE`: words cannot tell. `FOREIGN`: the passage is in another language.
    """

    YES = "yes"
    NO = "no"
    AGREES = "agrees"
    MAYBE = "maybe"
    FOREIGN = "foreign"


class Rarity:
    """How much a word tells, among the statements at hand: the fewer of them hold it, the more."""

    def __init__(self, statements: Iterable[str], frequency: Callable[[str], float] | None = None) -> None:
        """`frequency`: share of all texts that hold a word, where it is known; else that of the statements counts."""
        self._frequency = frequency
        self._count: Counter[str] = Counter()
        self._all = 0
        for statement in statements:
            self._all += 1
            found = traits(statement)
            self._count.update({*found.words, *(word for name in found.names for word in name.words)})

    def weight(self, word: str) -> float:
        """Return the bits that a word tells; at least 1."""
        if self._frequency is not None:
            share = self._frequency(word)
        else:
            share = max(self._count[word], 0.5) / max(self._all, 1)
        return 1.0 + math.log2(1.0 / min(max(share, 1e-6), 1.0))

    def count(self, name: Name) -> int:
        """Return how many statements hold a name's rarest word."""
        return min(self._count[word] for word in name.words)


def states(statement: Traits, passage: Traits, rarity: Rarity, around: Traits | None = None) -> Stated:
    """Say whether a passage states a statement.

    Args:
        statement: what may be stated.
        passage: a sentence, or a few.
        rarity: of the words, among the statements that compete for the passage.
        around: text before the passage that names what it goes on about, so that "it" and "the bank" are known.
    """
    missing = [n for n in statement.numbers if not any(agrees(n.key, other) for other in passage.numbers)]
    if around is not None and not _goes_on(statement, passage):
        around = None
    if missing and around is not None and not passage.numbers:
        shared = {n.key for n in around.numbers}
        missing = [n for n in missing if n.key not in shared]
    if not missing and passage.quotes(statement):
        return Stated.YES
    if statement.chinese != passage.chinese:
        return Stated.NO if missing else _foreign(statement, passage, rarity)
    if missing:
        return Stated.NO
    for name in statement.names:
        if name.sure and not _named(name, passage):
            known = around is not None and rarity.count(name) > 1 and _named(name, around)
            if not known:
                return Stated.NO
    if _opposed(statement, passage):
        return Stated.NO
    share, lost = coverage(statement, passage, rarity, around)
    keys = statement.keys
    if share < _LITTLE and keys == 0:
        return Stated.NO
    beside = together(statement, passage, rarity) and statement.negative == passage.negative
    heavy = _lost_heavy(statement, passage, rarity, around)
    if lost or not beside or (heavy and statement.chinese):
        return Stated.MAYBE if keys or share >= _ENOUGH[0] / 2 else Stated.NO
    if share >= _ENOUGH[min(keys, 2)] and not heavy:
        return Stated.YES
    return Stated.AGREES if keys >= _SIGNATURE or (keys == 2 and share >= _HALF) else Stated.MAYBE


def _foreign(statement: Traits, passage: Traits, rarity: Rarity) -> Stated:
    """Say whether a passage in another language states a statement whose numbers it has: by names left as they are."""
    sure = [name for name in statement.names if name.sure]
    kept = [name for name in sure if _named(name, passage)]
    own = {word for name in sure for word in name.words}
    others = [name for name in passage.names if name.sure and own.isdisjoint(name.words)]
    if kept and others and len(kept) < len(sure):
        return Stated.NO
    whole = len(kept) == len(sure) and statement.keys >= _SIGNATURE and together(statement, passage, rarity)
    return Stated.AGREES if whole else Stated.FOREIGN


def _goes_on(statement: Traits, passage: Traits) -> bool:
    """Say whether a passage may leave out what is known from before: it names nothing else than the statement does."""
    own = {word for name in statement.names for word in name.words}
    return all(not own.isdisjoint(name.words) for name in passage.names)


def coverage(statement: Traits, passage: Traits, rarity: Rarity, around: Traits | None = None) -> tuple[float, bool]:
    """Return the share of the weight of a statement's words that a passage has; whether a possible name is lost."""
    total = found = 0.0
    for word in statement.words:
        weight = rarity.weight(word)
        total += weight
        if passage.has(word):
            found += weight
        elif around is not None and around.has(word):
            found += weight / 2
            total -= weight / 2
    lost = any(
        not name.sure and not _named(name, passage) and not (around is not None and _named(name, around))
        for name in statement.names
    )
    return (found / total if total else 1.0), lost


def _lost_heavy(statement: Traits, passage: Traits, rarity: Rarity, around: Traits | None) -> bool:
    """Say whether too much of the rarest words is missing: names that no spelling shows are among them."""
    weights = {word: rarity.weight(word) for word in statement.words if word in statement.nouns}
    top = max(weights.values(), default=0.0)
    heavy = {word: weight for word, weight in weights.items() if weight >= _HEAVY * top}
    lost = sum(
        weight for word, weight in heavy.items()
        if not passage.has(word) and not (around is not None and around.has(word))
    )  # fmt: skip
    if statement.chinese:
        gone = [word for word in weights if not passage.has(word) and not (around is not None and around.has(word))]
        if len(gone) >= _GONE * len(weights) and gone:
            return True
    return lost > _MISSED * sum(heavy.values())


def _named(name: Name, passage: Traits) -> bool:
    """Say whether a name stands in a passage: whole, or a part of it that is no part of another name there."""
    words = name.words
    held = [word for word in words if passage.has(word)]
    if len(held) == len(words) or (held and held[0] == words[0] and ord(words[0][0]) > 0x2E7F):
        return True  # of a Chinese name, what ends it may be left out
    if not held or len(words) == 1:
        return False
    mine = set(words)
    return any(set(other.words) <= mine and set(other.words) & set(held) for other in passage.names)


def _opposed(statement: Traits, passage: Traits) -> bool:
    """Say whether the passage has only the opposite of a word of direction: rose, fell."""
    other = passage.sides
    return any((pair, 1 - side) in other and (pair, side) not in other for pair, side in statement.sides)


def together(statement: Traits, passage: Traits, rarity: Rarity) -> bool:
    """Say whether what belongs together stands together: not Y of one fact beside the year of another."""
    mine = [name for name in statement.names if _named(name, passage)]
    own = {word for name in mine for word in name.words}
    foreign = [name for name in passage.names if own.isdisjoint(name.words)]
    if not _in_one_place(statement, passage, mine):
        return False
    if not mine or not foreign:
        return _in_order(statement, passage, mine)
    rarest = min(rarity.count(name) for name in mine)
    keys = {word for name in mine if rarity.count(name) == rarest for word in name.words}
    return _beside_its_numbers(statement, passage, keys) and _beside_its_names(statement, passage, keys, own)


def _in_one_place(statement: Traits, passage: Traits, mine: Sequence[Name]) -> bool:
    """Say whether one sentence has the names and numbers, and those that add one speak of nothing else."""
    stops = [match.end() for match in _STOPS.finditer(passage.text)]
    if not stops:
        return True
    own = {word for name in mine for word in name.words}
    holds: list[set[str]] = [set() for _ in range(len(stops) + 1)]
    strange = [False] * len(holds)
    for number in passage.numbers:
        at = bisect(stops, number.start)
        held = {n.key for n in statement.numbers if agrees(n.key, number)}
        holds[at] |= held
        strange[at] |= not held
    for name in passage.names:
        at = bisect(stops, name.start)
        held = own.intersection(name.words)
        holds[at] |= held
        strange[at] |= not held
    wanted = set.union(*holds)
    best = max(holds, key=len)
    adding: set[str] = set().union(*(held for held, odd in zip(holds, strange, strict=True) if not odd))
    return wanted <= best | adding


def _beside_its_numbers(statement: Traits, passage: Traits, keys: set[str]) -> bool:
    """Say whether a number of the statement is the nearest to its rarest name, or this name the nearest to it."""
    if not statement.numbers:
        return True
    own = {i for i, n in enumerate(passage.numbers) if any(agrees(m.key, n) for m in statement.numbers)}
    if len(own) == len(passage.numbers):
        return True
    mine = {i for i, name in enumerate(passage.names) if not keys.isdisjoint(name.words)}
    if not mine:
        return True
    names = [(name.start, name.end) for name in passage.names]
    numbers = [(n.start, n.end) for n in passage.numbers]
    return any(_nearest(passage.text, names[i], numbers) in own for i in mine) or any(
        _nearest(passage.text, numbers[i], names) in mine for i in own
    )


def _nearest(text: str, one: tuple[int, int], others: Sequence[tuple[int, int]]) -> int:
    """Return which of the others stands nearest, in the same clause if there is one: a comma is a step away."""
    best, place = math.inf, -1
    for i, (start, end) in enumerate(others):
        between = text[end : one[0]] if end <= one[0] else text[one[1] : start]
        if len(between) < best:
            cost = len(between) + _STEP * len(_STEPS.findall(between)) + _SENTENCE * len(_STOPS.findall(between))
            if cost < best:
                best, place = cost, i
    return place


def _beside_its_names(statement: Traits, passage: Traits, keys: set[str], own: set[str]) -> bool:
    """Say whether another name of the statement stands beside its rarest one, a list of other names left aside."""
    others = own - keys
    if not others:
        return True
    places = [i for i, name in enumerate(passage.names) if not keys.isdisjoint(name.words)]
    said = set(statement.words)
    for i in places:
        for step in (-1, 1):
            near, k = passage.names[i], i + step
            while 0 <= k < len(passage.names):
                name = passage.names[k]
                if not others.isdisjoint(name.words):
                    return True
                between = passage.text[min(near.end, name.end) : max(near.start, name.start)]
                if any(stem(word) in said for word in _BETWEEN.findall(between)):
                    break  # what the statement says is said of another here
                near, k = name, k + step
    return not places


def _in_order(statement: Traits, passage: Traits, mine: Sequence[Name]) -> bool:
    """Say whether two names stand in the same order: X sued Y is not Y sued X, but is Y was sued by X."""
    if len(mine) != 2 or statement.chinese or mine[0].words == mine[1].words:
        return True
    first, second = (_places(passage, name) for name in mine)
    if not first or not second or statement.passive != passage.passive:
        return True
    if min(first) < max(second):
        return True
    between = statement.text[mine[0].end : mine[1].start]
    return _BETWEEN.search(between) is None


def _places(passage: Traits, name: Name) -> list[int]:
    return [other.start for other in passage.names if not set(other.words).isdisjoint(name.words)]
