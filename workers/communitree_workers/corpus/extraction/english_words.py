"""The class of an English word, told from the word alone: by short lists, endings and letter case."""

from __future__ import annotations

import re
from functools import lru_cache

from communitree_workers.corpus.extraction.lexicon import classes, words
from communitree_workers.text.stopwords import ENGLISH
from communitree_workers.text.words import fold_plural

#: Class, surface without quotes, lower case with the plural folded, capitalised (of a literal: stands alone).
Word = tuple[int, str, str, bool]

#: BREAK ends a phrase, and so do ARTICLE to NUMBER; the others can be part of one.
BREAK, ARTICLE, DETERMINER, PREPOSITION, VERBAL, BE, JOIN, NUMBER, COMMON, PROPER, LITERAL, TITLE, GENERIC = range(13)

IDENTIFIER = re.compile(r"__?[^\W_]\w*|\w*[^\W_]_[^\W_]\w*|[a-z]\w*\.\w[\w.]*|[\w.]+\(\)|[a-z]+[A-Z]\w*")
_UPPER_CAMEL = re.compile(r"(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}\w*|\w*[._()]\w*")

_CLASSES = classes("en_classes")
_FUNCTION = {
    word: kind
    for kind, label in ((PREPOSITION, "prepositions"), (DETERMINER, "determiners"), (VERBAL, "verbal"), (BE, "be"))
    for word in _CLASSES[label]
} | dict.fromkeys(_CLASSES["articles"], ARTICLE)
_JOINS, _ABBREVIATIONS = _CLASSES["joins"], _CLASSES["abbreviations"]
_LY_NOUNS, _LOOSE_NOUNS = _CLASSES["ly_nouns"], _CLASSES["loose_nouns"]
_LOOSE_ENDINGS = ("ed", "able", "ible", "ous", "ful", "less", "ive", "ical", "ish", "est")


def _verb_forms() -> frozenset[str]:
    forms = set()
    for verb in words("en_verbs"):
        stem = verb[:-1] if verb.endswith("e") else verb
        forms |= {verb, stem + "ed", stem + "ing", verb + verb[-1] + "ed", verb + verb[-1] + "ing"}
        if verb.endswith("y") and verb[-2:-1] not in "aeou":
            forms |= {verb[:-1] + "ies", verb[:-1] + "ied"}
        forms.add(verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"))
    return frozenset(forms)


_VERBS = _verb_forms()
_GENERIC = words("en_generic")
_TITLES = words("en_persons")


@lru_cache(maxsize=200_000)
def classify(token: str) -> Word:
    """Return the class of a token; the same token has the same class everywhere."""
    first = token[0]
    if first in '"`' and len(token) > 2:
        inner = token.strip('"`').removesuffix("()")
        alone = token.endswith(("()", '()"', "()`")) or IDENTIFIER.fullmatch(inner) or _UPPER_CAMEL.fullmatch(inner)
        if len(inner) < 2 or _is_noise(inner) or inner.casefold() in _GENERIC:
            return BREAK, token, token, False
        return LITERAL, inner, inner.casefold(), bool(alone)
    if first.isdigit():
        return NUMBER, token, token, False
    if not (first.isalpha() or first == "_"):
        return (JOIN if token == "&" else BREAK), token, token, False
    surface = token.replace("’", "'")
    if IDENTIFIER.fullmatch(surface) and surface.rstrip(".") not in _ABBREVIATIONS:
        surface = surface.removesuffix("()")
        if _is_noise(surface):
            return BREAK, token, token, False
        return LITERAL, surface, surface.casefold(), True
    return _word(surface, surface.casefold(), first.isupper())


def _is_noise(identifier: str) -> bool:
    """Say whether an identifier is an example's (`a.x`) or two sentences without a space (`convention.It`)."""
    first, dot, last = identifier.partition(".")
    return bool(dot) and (len(first) < 2 or (last[:1].isupper() and last.casefold() in ENGLISH))


def _word(surface: str, lower: str, capital: bool) -> Word:
    if lower in _JOINS:
        return JOIN, surface, lower, capital
    if lower in ENGLISH or lower.split("'")[0] in ENGLISH:
        return _FUNCTION.get(lower, BREAK), surface, lower, capital
    if capital and lower.rstrip(".") in _TITLES:
        return TITLE, surface, lower, True
    if lower.endswith("ly") and lower not in _LY_NOUNS:
        return BREAK, surface, lower, capital
    folded = fold_plural(lower)
    if lower.rstrip(".") in _GENERIC or folded in _GENERIC:
        return GENERIC, surface, folded, capital
    if lower in _VERBS or len(lower) < 2 or (len(lower) == 2 and not surface.isupper()):
        return BREAK, surface, lower, capital
    if not capital and any(c.isdigit() for c in lower):
        return BREAK, surface, lower, False
    return (PROPER if capital else COMMON), surface, folded, capital


def is_loose(word: str) -> bool:
    """Say whether a word is a participle or adjective rather than the head of a phrase, by its ending."""
    return word.endswith(_LOOSE_ENDINGS) and len(word) > 4 and not word.endswith("eed") and word not in _LOOSE_NOUNS
