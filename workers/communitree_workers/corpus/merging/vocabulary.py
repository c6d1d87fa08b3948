"""Which candidates of a corpus become entities, and which candidate stands for which entity.

Decided over the whole corpus by counts alone: a word is a name where it is mostly capitalised, a common noun where it
stands after articles and prepositions often enough. What is too rare on its own falls back on the longest part of it
that is an entity; in Chinese, characters glued to a name by the tagger come off first.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import rjieba
from numpy.typing import NDArray

from communitree_workers.corpus.extraction.candidates import CODE, KINDS, NAME, NOUN, START, TERM, VERB
from communitree_workers.corpus.extraction.lexicon import words
from communitree_workers.tables.columns import positions
from communitree_workers.text.words import is_cjk

Ints = NDArray[np.int64]

#: A corpus of fewer text units keeps phrases of several words that occur once.
_SMALL = 40
#: Share of a lone common word's occurrences that must stand where only a noun can.
_NOUN_SHARE = 0.25
#: A name is so many times as frequent as itself with a character glued on by accident.
_ACCIDENT = 6
#: Candidates that are Python objects at a time.
_SLICE = 50_000


@dataclass(frozen=True)
class Forms:
    """The candidates of a corpus by key, in the order of keys, counts by kind (n × KINDS).

    `keys` and `parts` are string columns: a million of them are Python objects a slice at a time.
    """

    keys: pa.Array
    parts: pa.Array
    types: Sequence[str]
    counts: NDArray[np.int64]
    text_units: int


def choose(forms: Forms) -> tuple[Ints, list[str]]:
    """Return for each key the number of the key that stands for it (-1: none), and the entity types of the keys."""
    counts = forms.counts.copy()
    target = np.arange(len(forms.keys), dtype=np.int64)
    types = list(forms.types)
    for here, there in _mended(forms, counts.sum(axis=1)):
        target[here] = there
        counts[there] += counts[here]
        counts[here] = 0
        if types[here] == "person":
            types[there] = "person"
    kept = np.zeros(len(forms.keys), dtype=bool)
    for start in range(0, len(target), _SLICE):
        keys, parts = (column.slice(start, _SLICE).to_pylist() for column in (forms.keys, forms.parts))
        counted = zip(keys, parts, counts[start : start + _SLICE].tolist(), strict=True)
        for n, (key, part, row) in enumerate(counted, start):
            if target[n] == n:
                kept[n], types[n] = _verdict(key, part, types[n], row, forms.text_units)
    out = np.flatnonzero(~kept & (target == np.arange(len(target))))
    for start in range(0, len(out), _SLICE):
        rows = out[start : start + _SLICE]
        target[rows] = _fallbacks(forms, rows, kept)
    # A mended form follows its target, which may itself have fallen back or out.
    moved = np.flatnonzero((target >= 0) & (target != np.arange(len(target))))
    target[moved] = target[target[moved]]
    return target, types


def _verdict(key: str, parts: str, what: str, counts: list[int], text_units: int) -> tuple[bool, str]:
    """Say whether a candidate is an entity, and of which type."""
    total = sum(counts) - counts[VERB]
    several = " " in parts
    rare = 1 if several and text_units <= _SMALL else 2
    common = counts[NOUN] + counts[TERM]
    if counts[CODE] > total / 2:
        return total >= 2 and len(key) > 1, "code"
    named = counts[NAME] > 0 and counts[NAME] >= common
    if is_cjk(key[-1]):
        if named:
            needed = 2 if what != "person" or rjieba.has_word(key) or key[0] in _SURNAMES else 3
            return total >= needed and len(key) > 1, what if what != "term" else "name"
        return len(key) > 1 and (total >= 2 if several else (total >= 3 and rjieba.has_word(key)) or total >= 5), "term"
    if counts[START] == total and several:
        return total >= 2, what
    if named:
        return (total >= rare and len(key) > 2) or (total >= 3 and len(key) == 2), "name" if what in (
            "term",
            "code",
        ) else what
    if several:
        return total >= 2, "term"
    return total >= 3 and len(key) > 2 and counts[NOUN] >= max(
        1.0, _NOUN_SHARE * (common + counts[VERB])
    ) and key not in _SOFT, "term"


def _fallbacks(forms: Forms, rows: Ints, kept: NDArray[np.bool_]) -> Ints:
    """Return for each row the longest run of its words that is an entity, the rightmost of equals; -1 for none."""
    runs = [_runs(parts) for parts in forms.parts.take(pa.array(rows)).to_pylist()]
    place = np.repeat(np.arange(len(rows)), [len(one) for one in runs])
    found = positions(pa.array([run for one in runs for run in one], forms.keys.type), forms.keys)
    good = np.flatnonzero(found >= 0)
    good = good[kept[found[good]]]
    owner, first = np.unique(place[good], return_index=True)
    target = np.full(len(rows), -1, dtype=np.int64)
    target[owner] = found[good[first]]
    return target


def _runs(parts: str) -> list[str]:
    """Return the runs of words of a phrase that are shorter than it, the longest first and from the right."""
    pieces = parts.split(" ")
    joint = "" if is_cjk(parts[-1]) else " "
    return [
        joint.join(pieces[at : at + size])
        for size in range(len(pieces) - 1, 0, -1)
        for at in range(len(pieces) - size, -1, -1)
    ]


class _Spelled:
    """The keys that are not plain ASCII, as Python objects, and where any key stands."""

    def __init__(self, forms: Forms) -> None:
        self._all = forms.keys
        rows = np.flatnonzero(~pc.string_is_ascii(forms.keys).to_numpy(zero_copy_only=False))
        at = pa.array(rows)
        #: (number, key, parts) of each.
        self.rows = list(
            zip(rows.tolist(), forms.keys.take(at).to_pylist(), forms.parts.take(at).to_pylist(), strict=True)
        )
        self._index = {key: n for n, key, _ in self.rows}

    def find(self, key: str) -> int:
        """Return the number of a key, or -1."""
        if not key.isascii():
            return self._index.get(key, -1)
        n = bisect.bisect_left(range(len(self._all)), key, key=lambda n: self._all[n].as_py())
        return n if n < len(self._all) and self._all[n].as_py() == key else -1


def _mended(forms: Forms, totals: Ints) -> list[tuple[int, int]]:
    """Return (form, form it stands for) of Chinese names: characters glued on, surnames added, a final 儿."""
    final: dict[int, int] = {}
    spelled = _Spelled(forms)
    full_names = _by_given_name(spelled, forms.types)
    surnamed: dict[int, list[int]] = {}
    for n, key, parts in spelled.rows:
        if not is_cjk(key[0]) or len(key) < 3 or " " in parts:
            continue
        person = forms.types[n] == "person"
        best = _without_glue(key, n, spelled, totals, full_names) if person or not rjieba.has_word(key) else -1
        if best >= 0:
            final[n] = best
        elif person and (key[0] in _SURNAMES or key[:2] in _SURNAMES):
            name = key[2:] if key[:2] in _SURNAMES else key[1:]
            given = spelled.find(name)
            if given >= 0 and len(name) > 1 and (forms.types[given] == "person" or not rjieba.has_word(name)):
                surnamed.setdefault(given, []).append(n)
    for given, full in sorted(surnamed.items()):
        full = [n for n in full if totals[n] > 1 or len(full) == 1]
        if len(full) == 1 and given not in final:  # two persons with one given name stay apart
            here, there = (full[0], given) if totals[given] >= totals[full[0]] else (given, full[0])
            final[here] = there
    resolved = []
    for here in sorted(final):
        there, steps = final[here], 0
        while there in final and steps < 4:  # 黛玉道 → 黛玉 → 林黛玉
            there, steps = final[there], steps + 1
        if there != here:
            resolved.append((here, there))
    return resolved


def _by_given_name(spelled: _Spelled, types: Sequence[str]) -> dict[str, int]:
    """Return the one full name of each given name that only one surname stands before."""
    found: dict[str, list[int]] = {}
    for n, key, _ in spelled.rows:
        if types[n] == "person" and len(key) == 3 and key[0] in _SURNAMES and key[2] not in _EDGES:
            found.setdefault(key[1:], []).append(n)
    return {given: full[0] for given, full in found.items() if len(full) == 1}


def _without_glue(key: str, n: int, spelled: _Spelled, totals: Ints, full_names: dict[str, int]) -> int:
    """Return the commonest form inside a form that is the same name without what the tagger glued to it, or -1."""
    best = -1
    for left in (0, 1, 2):
        for right in (0, 1, 2):
            core = key[left : len(key) - right]
            if left + right == 0 or len(core) < 2:
                continue
            m = spelled.find(core)
            if m < 0:
                m = full_names.get(core, -1)  # 子兴道 is 冷子兴, though 子兴 never stands alone
            if m < 0 or m == n:
                continue
            glue = set(key[:left] + key[len(key) - right :])
            known = totals[m] + (totals[full_names[core]] if full_names.get(core, m) != m else 0)
            plain = glue <= _EDGES and known * 3 >= totals[n]
            # What follows a name is glued on more often than what stands before it: 贾珍 尤氏, but 凤姑娘.
            rare = totals[m] >= 10 and (totals[n] <= 2 or (left == 0 and totals[n] * _ACCIDENT <= totals[m]))
            accident = rare and left + right == 1 and (left == 0 or key[0] not in _SURNAMES)
            if (plain or accident) and (best < 0 or totals[m] > totals[best]):
                best = m
    return best


_SOFT = words("en_soft")
_EDGES = words("zh_edges")
_SURNAMES = frozenset(c for entry in words("zh_surnames") for c in ([entry] if len(entry) == 2 else entry))
assert KINDS == 6
