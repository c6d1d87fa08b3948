"""What stands in the rows of a batch, for the built-in model: sentences under headings, without citations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.view.cells import BREAK
from communitree_workers.text.sentences import clip, sentences
from communitree_workers.text.words import is_cjk, terms

#: Citations of rows inside a report: `[Data: Entities (1, 2); Relationships (3)]`.
_DATA = re.compile(r"\s*[\[【]\s*(?:Data|数据)\s*[:：][^\]】]*[\]】]", re.IGNORECASE)
_LONGEST = 420
_BULLET = re.compile(r"^[*•·\-–]\s+")
#: Lines of a drawn table, rulers.
_DRAWING = re.compile(r"[-+=|_]{5,}")


@dataclass(frozen=True)
class Passage:
    """A heading with the sentences under it; the heading of a report's summary is its title."""

    heading: str
    sentences: list[str]


@dataclass(frozen=True)
class ReadRow:
    """One row: numbers where the table has them (`weight` 0–1 or text units, `rank` 0–10)."""

    id: int
    title: str
    level: int
    weight: float
    rank: float
    summary: list[str]
    findings: list[Passage] = field(default_factory=list)


def read_rows(batch: Batch) -> list[ReadRow]:
    """Read the rows of a batch."""
    heaviest = 1.0
    out = []
    for cells in batch.cells():
        summary, findings = read_content(cells["content"], cells["title"])
        weight = _number(cells.get("weight"), 0.0)
        heaviest = max(heaviest, weight)
        out.append(
            ReadRow(
                id=int(cells["id"]),
                title=cells["title"].replace(f" {BREAK} ", " "),
                level=int(_number(cells.get("level"), 0)),
                weight=weight,
                rank=_number(cells.get("rank"), 5.0),
                summary=summary,
                findings=findings,
            )
        )
    return out


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        return default


def read_content(content: str, title: str) -> tuple[list[str], list[Passage]]:
    """Return the sentences of a flattened report's summary, and its findings."""
    summary: list[str] = []
    findings: list[Passage] = []
    heading: str | None = None
    body: list[str] = []

    def close() -> None:
        nonlocal body
        lines = [s for paragraph in body for s in statements(paragraph)]
        if heading is None:
            summary.extend(lines)
        elif lines or heading:
            findings.append(Passage(heading, lines))
        body = []

    for paragraph in content.split(BREAK):
        text = paragraph.strip()
        if text.startswith("## "):
            close()
            heading = _clean(text[3:])
        elif text.startswith("# "):
            if text[2:].strip() != title:
                body.append(text[2:])
        elif text:
            body.append(text)
    close()
    return summary, findings


def statements(text: str) -> list[str]:
    """Return the sentences of a text as an answer can take them over: without citations, bullets and drawings."""
    found = (_BULLET.sub("", sentence) for sentence in sentences(_clean(text)))
    return [clip(sentence, _LONGEST) for sentence in found if sentence and not _DRAWING.search(sentence)]


def _clean(text: str) -> str:
    return re.sub(r"\s+([.,;:!?。，；：！？])", r"\1", _DATA.sub("", text)).strip()


def join(parts: Iterable[str]) -> str:
    """Return sentences one after another: a space between them, none after Chinese punctuation."""
    text = ""
    for part in filter(None, (p.strip() for p in parts)):
        gap = "" if not text or text[-1] in "。！？；…”』」" else " "
        text += gap + part
    return text


@dataclass(frozen=True)
class Matcher:
    """How much of a question's words a text has, each weighed by how telling it is; `enough` makes it relevant."""

    weights: Mapping[str, float]
    enough: float

    def coverage(self, text: str, found: frozenset[str] | None = None) -> float:
        """Return 0–1: the weight of the question's words in the text, or already in `found`."""
        total = sum(self.weights.values())
        if not total:
            return 0.0
        have = self.matches(text) | (found or frozenset())
        # 贾宝玉 is found where 宝玉 is: the longer word of the question counts for most of its weight.
        part = {w: 0.8 for w in self.weights if w not in have and any(h in w for h in have if is_cjk(h[0]))}
        return sum(self.weights[w] for w in have) / total + sum(self.weights[w] * p for w, p in part.items()) / total

    def matches(self, text: str) -> frozenset[str]:
        """Return the question's words that stand in a text. Chinese words count wherever they stand."""
        latin = {w for w in self.weights if not is_cjk(w[0])}
        found = {w for w in self.weights if w not in latin and w in text}
        if latin:
            found |= latin.intersection(terms(text))
        return frozenset(found)
