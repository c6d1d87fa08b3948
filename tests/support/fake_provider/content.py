"""What the provider answers: content made from the prompt, by the kind of prompt, the same every time.

A map reply makes one point of each row of the table, in the row's own words, so that a fact planted in a row can be
followed through to the answer; a reduce reply strings the points together.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from support.fake_provider import extraction
from support.fake_provider.behaviour import Behaviour

_VOCABULARY = re.findall(
    r"\w+",
    "river council archive treaty harbour survey engine orchard ledger bridge colony museum signal charter glacier "
    "merchant workshop railway garden library factory senate lighthouse canal theatre",
)
_ROW = re.compile(r"^\"?(\d+)\"?[|,](.+)$", re.MULTILINE)
_CITATION = re.compile(r"\[(?:Data|数据)[^\]]*\]")
_WORD_LIMIT = re.compile(
    r"(?:at most|no more than|不超过|limit your response length to)\D{0,12}(\d+) *(?:words|字)", re.IGNORECASE
)
_HEADER = re.compile(r"^id[|,].*\n", re.MULTILINE)
#: The end of a prompt whose question stands behind the data.
_QUESTION = re.compile(r"\n# (?:Question|问题)\n[^#]*\Z")
_ITEM = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
#: Headings of a report prompt's tables → the names citations use.
_KINDS = {name: name for name in ("Entities", "Relationships", "Claims", "Sources")}
_KINDS["Reports on sub-communities"] = "Reports"
_CJK = re.compile(r"[\u4e00-\u9fff]")


def kind_of(prompt: str, header: str | None = None) -> str:
    """Tell a prompt's kind from the reply's shape that it states."""
    if header:
        return header
    for sign, kind in (('"points"', "map"), ('"findings"', "report"), ('"ratings"', "ratings"), ('"rating"', "rating")):
        if sign in prompt:
            return kind
    if '"claims"' in prompt:
        return "claims"
    if ('"entities"' in prompt and '"relationships"' in prompt) or "<|>" in prompt:
        return "extract"
    return "text"


def content(kind: str, prompt: str, key: bytes, behaviour: Behaviour) -> str:
    """Return a good reply."""
    makers: dict[str, Callable[[str, bytes, Behaviour], Any]] = {
        "map": _map, "report": _report, "rating": _rating, "ratings": _ratings,
    }  # fmt: skip
    if kind in {"extract", "claims"}:
        return extraction.graph(prompt) if kind == "extract" else extraction.claims(prompt)
    if kind not in makers:
        return _text(prompt, key, behaviour)
    return json.dumps(makers[kind](prompt, key, behaviour), ensure_ascii=False)


def size(text: str) -> int:
    """Tokens, roughly: four characters of Latin text or one and a half of Chinese."""
    chinese = len(_CJK.findall(text))
    return max(1, (len(text) - chinese) // 4 + chinese * 2 // 3)


def tables(prompt: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the prompt's tables in order: the heading above, and (id, rest) of each row."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for match in _HEADER.finditer(prompt):
        above = re.findall(r"^#+ *(.+)$", prompt[: match.start()], re.MULTILINE)
        after = prompt[match.end() :]
        end = re.search(r"^(?:#|id[|,])", after, re.MULTILINE)
        found.append((above[-1] if above else "", _ROW.findall(after[: end.start() if end else None])))
    return found


def rows(prompt: str) -> list[tuple[str, str]]:
    """Return (id, rest) of the rows of the prompt's last table."""
    found = tables(prompt)
    return found[-1][1] if found else []


def word_limit(prompt: str, behaviour: Behaviour) -> int | None:
    """Return the word limit a prompt names, where the provider obeys it."""
    limits = _WORD_LIMIT.findall(prompt) if behaviour.obey_words else []
    return int(limits[-1]) if limits else None


def _words(key: bytes, what: str, n: int, behaviour: Behaviour) -> str:
    return " ".join(random.Random(behaviour.draw(key, what)).choices(_VOCABULARY, k=n))


def _count(text: str) -> int:
    return len(text.split()) + len(_CJK.findall(text))


def _map(prompt: str, key: bytes, behaviour: Behaviour) -> dict[str, Any]:
    limit = word_limit(prompt, behaviour)
    points: list[dict[str, Any]] = []
    used = 0
    table = _planted(prompt, behaviour.planted) if behaviour.planted else rows(prompt)
    for row, rest in table[: behaviour.points or len(table)]:
        text = rest if behaviour.planted else _statement(rest)
        used += _count(text)
        if limit is not None and used > limit:
            break
        score = 1 + int(behaviour.draw(key, f"score {row}") * 99)
        points.append({"description": f"{text} [Data: Reports ({row})]", "score": score, "reports": [int(row)]})
    overview = [
        {"id": int(row), "score": int(behaviour.draw(key, f"overview {row}") * 101)}
        for name, table in tables(prompt)[:-1]
        for row, _ in table
        if name.startswith(("Overview", "概览"))
    ]
    return {"points": points, "overview": overview}


def _planted(prompt: str, pattern: str) -> list[tuple[str, str]]:
    """Return (id, statement) of each planted statement; a row may go over many lines."""
    headers = list(_HEADER.finditer(prompt))
    body = prompt[headers[-1].end() :] if headers else ""
    starts = [(m.start(), m[1]) for m in re.finditer(r"^\"?(\d+)\"?\|", body, re.MULTILINE)]
    found = []
    for match in re.finditer(pattern, body):
        before = [row for at, row in starts if at <= match.start()]
        found.append((before[-1], match.group()))
    return found


def _statement(row: str) -> str:
    text = _CITATION.sub("", row.rpartition("|")[2]).strip()
    return re.split(r"(?<=[.!?。！？])\s*", text)[0][:240] or row[:120]


def _report(prompt: str, key: bytes, behaviour: Behaviour) -> dict[str, Any]:
    evidence = [(_KINDS[name], row, rest) for name, table in tables(prompt) if name in _KINDS for row, rest in table]
    first = evidence[0][2] if evidence else "nothing"
    name = first.split(",")[0].strip('" ')
    return {
        "title": f"{name} and {_words(key, 'title', 2, behaviour)}",
        "summary": f"{name}: {_words(key, 'summary', 24, behaviour)}.",
        "rating": round(behaviour.draw(key, "rating") * 10, 1),
        "rating_explanation": _words(key, "why", 8, behaviour),
        "findings": [
            {
                "summary": _words(key, f"finding {i}", 6, behaviour),
                "explanation": f"{rest[:300]} {_words(key, f'because {i}', 12, behaviour)}. [Data: {kind} ({row})]",
            }
            for i, (kind, row, rest) in enumerate(evidence[:10])
        ],
    }


def _rating(prompt: str, key: bytes, behaviour: Behaviour) -> dict[str, Any]:
    value = behaviour.rating if behaviour.rating >= 0 else int(behaviour.draw(key, "rating") * 6)
    return {"reason": _words(key, "reason", 8, behaviour), "rating": value}


def _ratings(prompt: str, key: bytes, behaviour: Behaviour) -> dict[str, Any]:
    def rate(row: str) -> int:
        return behaviour.rating if behaviour.rating >= 0 else int(behaviour.draw(key, f"rating {row}") * 6)

    return {"ratings": [{"id": int(row), "rating": rate(row)} for row in _ITEM.findall(prompt)]}


def _text(prompt: str, key: bytes, behaviour: Behaviour) -> str:
    limit = word_limit(prompt, behaviour)
    data = _QUESTION.sub("", prompt)
    lines = [line for line in data[max(0, data.rfind("\n# ")) :].splitlines() if _CITATION.search(line)]
    if behaviour.planted:
        lines = [line for line in lines if re.search(behaviour.planted, line)]
    if not lines:
        return _words(key, "text", min(behaviour.words, limit or behaviour.words), behaviour) + "."
    kept: list[str] = []
    used = 0
    for line in lines:
        used += _count(line)
        if limit is not None and used > limit:
            break
        kept.append(line.strip())
    return "\n\n".join(kept) or lines[0]


def _without_quotes(text: str) -> str:
    return re.sub(r'"(\w+)":', r"\1:", text)


SPOILERS: dict[str, Callable[[str], str]] = {
    "fence": lambda text: f"```json\n{text}\n```",
    "think": lambda text: f'<think>Maybe {{"points": []}}? No.</think>\n{text}',
    "prose": lambda text: f"Here is what I found:\n\n{text}\n\nLet me know if you need more [or less].",
    "truncate": lambda text: text[: int(len(text) * 0.6)],
    "trailing": lambda text: re.sub(r"([}\]])", r",\1", text, count=3),
    "bare_keys": _without_quotes,
    "full_width": lambda text: re.sub(r'(?<=")(:|,) ', lambda m: "：" if m.group(1) == ":" else "，", text),
    "apology": lambda text: "I am sorry, but I cannot help with that.",
    "empty_object": lambda text: "{}",
}


def spoil(text: str, key: bytes, behaviour: Behaviour) -> str:
    """Return a malformed form of a reply."""
    names = sorted(SPOILERS)
    name = behaviour.malformed_kind or names[int(behaviour.draw(key, "spoiler") * len(names))]
    return SPOILERS[name](text)
