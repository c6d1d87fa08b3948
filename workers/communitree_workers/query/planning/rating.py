"""Rating calls: several candidates in one, read tolerantly; an unknown rating is None, never zero."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from communitree_shared.contract.results import Point
from communitree_shared.tokens import DEFAULT_ENCODING, truncate
from communitree_workers.prompts import file_language, load, question_text
from communitree_workers.query.view.cells import flatten
from communitree_workers.query.wording.scores import read_score

#: The scale of the prompt (GraphRAG's); joint re-rating of points uses it too.
HIGHEST = 5
#: Tokens of one candidate in a rating prompt.
CANDIDATE_TOKENS = 700

_ITEMS = {"en": "# Items", "zh": "# 各项"}
_LISTS = ("ratings", "评分", "scores", "results", "items", "data")
_IDS = ("id", "编号", "item", "report", "community")
_RATINGS = ("rating", "score", "评分", "分数", "relevance", "rate")


def rate_messages(
    items: Sequence[tuple[int, str]],
    question: str,
    language: str,
    prompts: Mapping[str, str],
    *,
    tokens: int = CANDIDATE_TOKENS,
    encoding: str = DEFAULT_ENCODING,
) -> list[dict[str, str]]:
    """Return the messages that rate candidates `(id, text)`; a text longer than `tokens` is cut."""
    rules = load("rate", language, prompts).strip()
    rows = [f"[{id}] {truncate(flatten(text), tokens, encoding)}" for id, text in items]
    above = _ITEMS[file_language(language)]
    return [
        {"role": "system", "content": rules},
        {"role": "user", "content": "\n\n".join([above, *rows, question_text(question, language)])},
    ]


def rate_temperature(set_for_stage: float | None, repeats: int = 1) -> float | None:
    """Return the temperature of rating calls: 0, unless one is set, or several replies are to differ and vote."""
    return 0.0 if set_for_stage is None and repeats <= 1 else None


def rate_schema() -> dict[str, Any]:
    """Return the JSON schema of a rating reply."""
    integer = {"type": "integer"}
    row = {"type": "object", "properties": {"id": integer, "rating": integer}, "required": ["id", "rating"],
           "additionalProperties": False}  # fmt: skip
    return {
        "type": "object",
        "properties": {"ratings": {"type": "array", "items": row}},
        "required": ["ratings"],
        "additionalProperties": False,
    }


def parse_ratings(value: Any, ids: Sequence[int]) -> dict[int, float | None]:
    """Return the rating of each candidate, None where the reply does not tell it.

    Accepted: the list with or without its key, a mapping id → rating, a list of numbers in the candidates' order,
    `"4/5"`, `"4"`, and for a single candidate a rating without id. Clamped to 0–5; an odd one costs no other.
    """
    out: dict[int, float | None] = dict.fromkeys(ids)
    rows: Any = value
    if isinstance(value, dict):
        rows = next((value[key] for key in _LISTS if isinstance(value.get(key), list | dict)), None)
        if rows is None:
            rows = [value] if any(key in value for key in _RATINGS) else value
    if isinstance(rows, dict):
        rows = [{"id": id, "rating": rating} for id, rating in rows.items()]
    if not isinstance(rows, list):
        rows = [rows]
    plain = [row for row in rows if not isinstance(row, dict)]
    if plain and len(plain) == len(rows) == len(ids):
        rows = [{"id": id, "rating": row} for id, row in zip(ids, plain, strict=True)]
    for row in rows:
        if not isinstance(row, dict):
            continue
        rating = _rating(next((row[key] for key in _RATINGS if key in row), None))
        found = re.search(r"\d+", str(next((row[key] for key in _IDS if key in row), "")))
        id = int(found.group()) if found else (ids[0] if len(ids) == 1 else None)
        if id in out and rating is not None:
            out[id] = rating
    return out


def _rating(value: Any) -> float | None:
    score, _ = read_score(value, HIGHEST)
    return None if score is None else min(float(HIGHEST), max(0.0, score))


def vote(ratings: Sequence[float | None]) -> float | None:
    """Return the most frequent of several ratings of one candidate, the lowest of equals; None where none is known."""
    known = Counter(rating for rating in ratings if rating is not None)
    return min(known, key=lambda rating: (-known[rating], rating)) if known else None


def rerate_items(points: Sequence[Point], positions: Sequence[int]) -> list[tuple[int, str]]:
    """Return points as candidates of one joint re-rating."""
    return [(i, points[i].text) for i in positions]


def as_scores(ratings: Mapping[int, float | None], points: Sequence[Point]) -> dict[int, float | None]:
    """Return joint ratings of points as scores of 0–100; points of equal rating keep the order of their own scores."""
    return {
        i: None if rating is None else rating * 20 * 0.8 + (points[i].adjusted or points[i].score) * 0.2
        for i, rating in ratings.items()
    }
