"""The built-in model at query time: map, rate and rewrite without a network. `extractive_answer.py` has the reduce.

It gives the same JSON as a model would, so that everything behind it is the same code. Deterministic. Scores are on
one scale for all batches: how much of the question's words a statement has, or how much text a theme has behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import rjieba

from communitree_shared.contract.options import AnswerOptions, Turn
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.builtin.passages import Matcher, Passage, ReadRow, join, read_rows, statements
from communitree_workers.query.question.words import QuestionWords, read_words
from communitree_workers.query.view.kinds import KINDS
from communitree_workers.query.view.lexicon import Lexicon
from communitree_workers.query.wording.length import words
from communitree_workers.text.variants import simplified
from communitree_workers.text.words import is_cjk

#: A statement needs this share of the question's words, weighed, to be about it: one of two that weigh alike.
_ENOUGH = 0.48
_SENTENCES = 3
#: The most statements of one report that answer a question about something in particular.
_PER_REPORT = 3
_NAMES = 12
#: The least weight of a word of the question.
_LEAST = 0.05
#: What all unknown words of a Chinese question weigh, as a share of the known ones.
_UNKNOWN = 0.5
#: What a verb weighs beside a name.
_VERB = 0.8
_NAME_TAGS = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})


def question_matcher(asked: QuestionWords, lexicon: Lexicon | None) -> Matcher:
    """Return what finds a question's words, each weighed by how telling it is; all alike without a lexicon.

    Words the corpus does not know weigh the most. Of a Chinese question they weigh half of the known ones together at
    most, and nothing is missed for want of them: its verbs and particles are words, too, and one that no report has
    must not hide the names that they have. Nor must 喜欢 hide what is said of 贾母: verbs weigh less than the names
    beside them. A part of a longer word (黛玉 beside 林黛玉) hardly counts by itself; it stands for the whole.
    """
    if lexicon is None:
        return Matcher(dict.fromkeys(asked.specific, 1.0), _ENOUGH)
    n = len(lexicon.lengths)
    parts = {term: asked.parts(term) for term in asked.specific}
    inside = {part for found in parts.values() for part in found}
    held = {term: max(lexicon.frequency(word) for word in (term, *parts[term])) for term in asked.specific}
    known = {t: _LEAST if t in inside else max(_LEAST, 1 - h / (n + 1)) for t, h in held.items() if h or t in inside}
    unknown = {term: 1.2 for term in held if term not in known}
    share = 1.0
    if known and asked.language == "zh":
        kinds = {term: _kind(term) for term in known if term not in inside}
        if "name" in kinds.values():
            known.update({term: known[term] * _VERB for term, kind in kinds.items() if kind == "verb"})
        whole = sum(known.values())
        unknown = {term: min(weight, _UNKNOWN * whole / len(unknown)) for term, weight in unknown.items()}
        share = whole / (whole + sum(unknown.values()))
    return Matcher({term: round({**known, **unknown}[term], 4) for term in asked.specific}, share * _ENOUGH)


def _kind(word: str) -> str:
    """Return `name` for a Chinese name or a word that no dictionary has, `verb` for verbs and the like, else ''."""
    plain = simplified(word)
    if not is_cjk(plain[0]):
        return ""
    if not rjieba.has_word(plain):
        return "name"
    tag = rjieba.tag(plain)[0][1]
    return "name" if tag in _NAME_TAGS else "verb" if tag[0] in "vad" else ""


def map_reply(batch: Batch, question: str, options: AnswerOptions, lexicon: Lexicon | None = None) -> dict[str, Any]:
    """Return the map reply for a batch, in the shape that `map.map_schema` asks of a model.

    `lexicon`: the corpus's; without it all words of the question weigh the same.
    """
    asked = read_words(question, lexicon)
    rows = read_rows(batch)
    if asked.general and asked.kind:
        points = _names(batch, rows, asked) or _themes(rows)
    elif asked.general:
        points = _themes(rows)
    else:
        points = _statements(rows, question_matcher(asked, lexicon))
    points.sort(key=lambda p: (-p["score"], p["reports"], p["description"]))
    return {"points": _within(points, options.map_max_length), "overview": []}


def _within(points: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    out, left = [], limit
    for point in points:
        cost = words(point["description"])
        if cost <= left:
            out.append(point)
            left -= cost
    return out


def _point(text: str, score: float, *reports: int) -> dict[str, Any]:
    return {"description": text, "score": max(1, min(100, round(score))), "reports": list(reports)}


def _themes(rows: Sequence[ReadRow]) -> list[dict[str, Any]]:
    """One point a report: its summary in brief; what has more text behind it matters more."""
    out = []
    for row in rows:
        said = row.summary or [s for passage in row.findings[:2] for s in passage.sentences[:1]]
        if said:
            weight = row.weight if row.weight <= 1 else row.weight / (row.weight + 20)
            out.append(_point(join(said[:2]), 30 + 55 * weight**0.5 + 1.5 * row.rank, row.id))
    return out


def _names(batch: Batch, rows: Sequence[ReadRow], asked: QuestionWords) -> list[dict[str, Any]]:
    """The weightiest names of the asked kind, each with what the batch says of it."""
    wanted = names_of(batch.overview, asked.kind)
    out = []
    for place, name in enumerate(wanted[:_NAMES]):
        found: list[tuple[float, int, str]] = []
        for row in rows:
            for quality, text in _about(row, name):
                found.append((quality + row.weight / 100, row.id, text))
        found.sort(key=lambda item: (-item[0], item[1], item[2]))
        for rank, (_, id, text) in enumerate(found[:2]):
            out.append(_point(f"{readable(name)}{_colon(name)}{text}", 95 - 4 * place - 20 * rank, id))
    return out


def names_of(overview: str, kind: str) -> list[str]:
    """Return the names that an overview lists for a kind of thing (`people`, `places`, …)."""
    out: list[str] = []
    for line in overview.splitlines():
        head, colon, rest = line.partition(": ")
        if colon and head.strip().lower() in KINDS.get(kind, frozenset()) and not line.startswith("["):
            out += [name.strip() for name in rest.split(", ")]
    return list(dict.fromkeys(filter(None, out)))


def _about(row: ReadRow, name: str) -> list[tuple[float, str]]:
    """Return what a row says about a name, with how directly it does so."""
    out = []
    low = name.lower()
    for passage in [*row.findings, Passage("", row.summary)]:
        told = _naming(passage.sentences, low)
        if not told:
            continue
        heading = passage.heading.lower()
        quality = 3.0 if heading.startswith(low) else 2.0 if low in heading else 1.0
        for bonus, text in told[: 2 if quality == 3.0 else 1]:
            out.append((quality + bonus, text))
    return sorted(out, key=lambda item: -item[0])[:2]


def _naming(said: Sequence[str], name: str) -> list[tuple[float, str]]:
    """Return the sentences that name someone, best first: by name at the start, quotation marks in pairs, not short."""
    out = []
    for place, sentence in enumerate(said):
        at = sentence.lower().find(name)
        if at < 0:
            continue
        subject = 1.0 if at <= 4 else 0.5 if at < len(sentence) / 3 else 0.0
        whole = 0.0 if sentence.count("“") != sentence.count("”") or sentence[-1:] in ":：,，；;" else 0.6
        length = 0.3 if len(sentence) > 2 * len(name) + 12 else 0.0
        out.append((subject + whole + length - place / 100, sentence))
    return sorted(out, key=lambda item: -item[0])


def readable(name: str) -> str:
    """Return a name that is all capitals as people write it."""
    if not name.isascii() or name != name.upper() or not re.search(r"[A-Z]{3}", name):
        return name
    return re.sub(r"[A-Z]['A-Z]*", lambda match: match.group().capitalize(), name)


def _colon(name: str) -> str:
    return ": " if name.isascii() else "："


def _statements(rows: Sequence[ReadRow], matcher: Matcher) -> list[dict[str, Any]]:
    """Statements that have the words of the question."""
    out = []
    for row in rows:
        title = matcher.matches(row.title)
        found = []
        for passage in [*row.findings, Passage(row.title, row.summary)]:
            best = _best(passage, matcher, title)
            if best is not None:
                found.append(best)
        found.sort(key=lambda item: (-item[0], item[1]))
        out += [_point(text, score + row.rank / 2, row.id) for score, text in found[:_PER_REPORT]]
    return out


def _best(passage: Passage, matcher: Matcher, title: frozenset[str]) -> tuple[float, str] | None:
    """Return the part of a passage that matches best; words of its heading, and at a discount its title's, count."""
    heading = matcher.matches(passage.heading)
    covered = [(matcher.coverage(s), i) for i, s in enumerate(passage.sentences)]
    hits = sorted((c, -i) for c, i in covered if c > 0)[::-1][:_SENTENCES]
    if not passage.sentences or (not hits and not heading):
        return None
    chosen = sorted(-i for _, i in hits) if hits else list(range(min(2, len(passage.sentences))))
    text = join(passage.sentences[i] for i in chosen)
    own = matcher.coverage(text, heading)
    both = max(own, 0.85 * matcher.coverage(text, heading | title))
    if both < matcher.enough:
        return None
    return 15 + 60 * both + 20 * matcher.coverage("", heading), text


def rate_reply(items: Sequence[tuple[int, str]], question: str, lexicon: Lexicon | None = None) -> Any:
    """Return the rating reply for candidates `(id, text)`: 0–5 by the question's words in their text."""
    asked = read_words(question, lexicon)
    matcher = question_matcher(asked, lexicon)
    ratings = []
    for id, text in items:
        share = min(1.0, matcher.coverage(text) * _ENOUGH / matcher.enough)
        ratings.append({"id": id, "rating": 3 if asked.general else min(5, round(5 * share + (0.3 if share else 0)))})
    return {"ratings": ratings}


_POINTING = re.compile(
    r"\b(?:it|its|he|him|his|she|her|they|them|their|this|that|these|those|there|then|one|ones|same|former|latter|else"
    r"|more)\b|[它他她]|这|那|其|前者|后者|同样|还有|呢",
    re.IGNORECASE,
)


def rewrite_reply(question: str, history: Sequence[Turn]) -> str:
    """Return a question that stands alone: one that points back, or names nothing, takes the last one that does."""
    asked = read_words(question)
    if not asked.general and not _POINTING.search(question):
        return question
    for turn in reversed(history):
        if turn.role == "user" and not read_words(turn.content).general:
            named = (statements(turn.content) or [turn.content])[0]
            return f"{question.strip()} ({named})" if asked.language == "en" else f"{question.strip()}（{named}）"
    return question
