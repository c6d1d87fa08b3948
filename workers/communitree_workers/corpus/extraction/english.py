"""Names and noun phrases of an English sentence, without a model and without a tagger.

Words are classed once each by small word lists and endings; a run of content words between boundaries is a phrase.
What cannot be told from one sentence (is "Bank" a name? is "return" a noun?) is for `merging`, which sees all.
"""

from __future__ import annotations

import re
from functools import lru_cache

from communitree_workers.corpus.extraction.candidates import CODE, NAME, NOUN, START, TERM, VERB, Candidate
from communitree_workers.corpus.extraction.english_words import (
    ARTICLE,
    BE,
    BREAK,
    COMMON,
    DETERMINER,
    GENERIC,
    JOIN,
    LITERAL,
    NUMBER,
    PREPOSITION,
    PROPER,
    TITLE,
    VERBAL,
    Word,
    classify,
    is_loose,
)
from communitree_workers.corpus.extraction.lexicon import classes, words

_TOKEN = re.compile(
    r"[\"`]{1,2}[A-Za-z_][\w.]*(?:\(\))?[\"`]{1,2}"  # one quoted word: a literal
    r"|[^\W\d_](?:\.[^\W\d_])+\.?"  # U.S., e.g.
    r"|['’][sS]\b"  # a possessive parts names: Russia's Putin
    r"|\w+(?:[-.&]\w+|['’](?!s\b)\w+)*(?:\(\))?"
    r"|[^\w\s]"
)
_PLACES = words("en_places")
_ORGANIZATIONS = words("en_organizations")
_STRUCTURAL = classes("en_classes")["structural"]
_PLAIN_TITLES = frozenset({"dr", "mr", "mrs", "ms", "prof"})
#: Where only a noun can follow.
_BEFORE_NOUN = frozenset({ARTICLE, DETERMINER, PREPOSITION})
_PHRASE = frozenset({COMMON, LITERAL, GENERIC})
_OPENING = frozenset('“":‘(.')
_LONGEST_PHRASE = 3
_LONGEST_NAME = 6


def candidates(sentence: str) -> list[Candidate]:
    """Return the candidates of one sentence in order, with repetitions."""
    if sentence.isupper() and sentence.count(" ") > 2:
        sentence = sentence.lower()  # IN A SENTENCE LIKE THIS capitals mean nothing
    tokens = [classify(token) for token in _TOKEN.findall(sentence)]
    out: list[Candidate] = []
    n, i = len(tokens), 0
    fresh = True  # at the start of a sentence or quotation a capital means nothing
    before = BREAK
    while i < n:
        kind, surface, _, capital = tokens[i]
        if kind in (PROPER, TITLE) or (kind == GENERIC and capital and not fresh):
            j = _name_end(tokens, i)
            lone = j == i + 1
            ordinary = fresh and lone and kind == PROPER and j < n and tokens[j][0] in (COMMON, LITERAL)
            if not ordinary:  # "Class definitions are …" is an ordinary phrase that happens to open the sentence
                if not lone or kind == PROPER or (kind == TITLE and not fresh):
                    joined = any(word[0] == JOIN for word in tokens[i:j])  # "Tugboats of Bayline Shipping"
                    _add_name(out, tokens[i:j], START if fresh and (lone or joined) else NAME)
                before, fresh, i = PROPER, False, j
                continue
        if kind in _PHRASE or kind == PROPER:
            j = i + 1
            while j < n and tokens[j][0] in _PHRASE:
                j += 1
            _add_phrases(out, tokens[i:j], before, tokens[j][0] if j < n else BREAK)
            before, fresh, i = COMMON, False, j
            continue
        fresh = surface in _OPENING or (fresh and not surface[0].isalnum())
        before = kind
        i += 1
    return out


def _name_end(tokens: list[Word], i: int) -> int:
    """Return where a name that starts at i ends: capitalised words, joined by "of the", with a number at the end."""
    n, j = len(tokens), i + 1
    if tokens[i][0] == TITLE and j < n and tokens[j][1] == ".":
        j += 1
    while j < n:
        kind, surface, _, capital = tokens[j]
        if kind in (PROPER, TITLE) or (kind == GENERIC and capital):
            j += 1
        elif kind == NUMBER and j - i <= 2 and len(surface) <= 6:
            return j + 1
        elif kind == JOIN:
            k = j + 1 if j + 1 >= n or tokens[j + 1][0] != ARTICLE else j + 2
            if k < n and tokens[k][0] in (PROPER, TITLE):
                j = k + 1
            else:
                break
        else:
            break
    return j


def _add_name(out: list[Candidate], run: list[Word], kind: int) -> None:
    titled = run[0][0] == TITLE and len(run) > 1
    parts = [word[1] for word in run if word[1] != "."]
    if titled and run[0][2].rstrip(".") in _PLAIN_TITLES:
        parts = parts[1:]
    if not 0 < len(parts) <= _LONGEST_NAME:
        return
    if len(parts) > 1 and parts[0].casefold() in _STRUCTURAL and all(_is_number(part) for part in parts[1:]):
        return
    lower = [word[1].casefold() for word in run]
    if (lower[-1] in _ORGANIZATIONS and not parts[-1].isupper()) or (lower[0] in _ORGANIZATIONS and len(run) > 2):
        what = "organization"
    elif lower[-1] in _PLACES and len(run) > 1:
        what = "place"
    else:
        what = "person" if titled else "name"
    title = " ".join(parts)
    key = title.casefold() if len(parts) > 1 else run[-1][2]
    out.append(Candidate(key, title, kind, what, key))


def _add_phrases(out: list[Candidate], run: list[Word], before: int, after: int) -> None:
    """Add the phrases of a run: verbs and empty words come off its edges, identifiers stand alone."""
    if run[0][0] != LITERAL and (before == VERBAL or (before == BE and run[0][1].endswith("ing"))):
        if run[0][0] == COMMON and before == VERBAL:
            out.append(Candidate(run[0][2], run[0][1].lower(), VERB, "term", run[0][2]))
        run, before = run[1:], BREAK
    if run and run[-1][0] == COMMON:
        verb = run[-1][1].endswith("ing") or len(run) > 1 or before not in _BEFORE_NOUN
        if (after == ARTICLE and verb) or (after in (DETERMINER, VERBAL) and len(run) > 1 and _verb_like(run)):
            run = run[:-1]
    start = 0
    for at, word in enumerate(run):
        if word[0] == LITERAL and word[3]:
            piece = run[start:at]
            _add_phrase(out, piece[:-1] if len(piece) > 1 and _verb_like(piece) else piece, before)
            out.append(Candidate(word[2], word[1], CODE, "code", word[2]))
            start, before = at + 1, BREAK
        elif at > start and word[1].endswith("ing") and at + 1 < len(run) and _is_plural(run[at - 1]):
            _add_phrase(out, run[start:at], before)  # "citizens blocking tanks"
            start, before = at + 1, BREAK
    _add_phrase(out, run[start:], before)


def _add_phrase(out: list[Candidate], run: list[Word], before: int) -> None:
    if run:
        phrase = _phrase(tuple(run), before in _BEFORE_NOUN, before == PREPOSITION)
        if phrase is not None:
            out.append(phrase)


@lru_cache(maxsize=200_000)
def _phrase(run: tuple[Word, ...], noun: bool, preposition: bool) -> Candidate | None:
    """Return the phrase of a run without the empty words at its edges; `noun`: only a noun can stand there."""
    first, last = 0, len(run)
    while last > first and (run[last - 1][0] == GENERIC or (run[last - 1][0] == COMMON and is_loose(run[last - 1][2]))):
        last -= 1
    first = max(first, last - _LONGEST_PHRASE)
    while first < last and run[first][0] == GENERIC:
        first += 1
    run = run[first:last]
    if not run or any(word[0] == GENERIC for word in run):
        return None
    if len(run) == 1 and run[0][0] == LITERAL:
        return Candidate(run[0][2], run[0][1], CODE, "code", run[0][2])
    title = " ".join([word[1] if word[1][1:] != word[1][1:].lower() else word[1].lower() for word in run])
    key = " ".join([*[word[1].casefold() for word in run[:-1]], run[-1][2]])
    sure = len(run) > 1 or (noun and not (preposition and key.endswith("ing")))
    return Candidate(key, title, NOUN if sure else TERM, "term", key)


def _is_number(part: str) -> bool:
    return part[0].isdigit() or len(part) == 1


def _is_plural(word: Word) -> bool:
    return word[0] in (COMMON, PROPER) and word[1].endswith("s") and word[2] != word[1].lower()


def _verb_like(run: list[Word]) -> bool:
    """Say whether the last word of a run may be a verb form: "the suite terminates it", not "the class that"."""
    return run[-1][1].endswith(("s", "ed", "ing")) and not run[-2][1].endswith("s")
