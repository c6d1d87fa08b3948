"""Cutting a row that is larger than a batch into several: between findings, paragraphs or sentences."""

from __future__ import annotations

from communitree_shared.tokens import count, truncate
from communitree_workers.query.batches.rows import Row
from communitree_workers.query.view.cells import BREAK, cell, split_line
from communitree_workers.text.sentences import sentences

#: Tokens of a seam between two pieces, with what it may cost the words beside it.
_SEAM = 4


def split_row(row: Row, room: int, delimiter: str, n_columns: int, encoding: str) -> list[Row]:
    """Cut a row into several that fit, each with all cells but the last; findings stay whole where they fit."""
    *head, content = split_line(row.line.decode(), delimiter, n_columns)
    front = delimiter.join([head[0], *(cell(text, delimiter) for text in head[1:])]) + delimiter
    left = room - count(front + "\n", encoding) - 8  # quotes and seams
    if left < 16:
        front = delimiter.join([head[0], *("" for _ in head[1:])]) + delimiter
        left = room - count(front + "\n", encoding) - 8
    out: list[Row] = []
    for piece in _pieces(content, left, encoding):
        line = front + cell(piece, delimiter) + "\n"
        out.append(row._replace(line=line.encode(), tokens=count(line, encoding)))
    return out


def _pieces(content: str, room: int, encoding: str) -> list[str]:
    """Cut a flattened report before `##`, else between paragraphs, else between sentences, else anywhere."""
    paragraphs = [p for p in (part.strip() for part in content.split(BREAK)) if p]
    sections: list[list[str]] = []
    for paragraph in paragraphs:
        if paragraph.startswith("## ") or not sections:
            sections.append([])
        sections[-1].append(paragraph)
    seam = f" {BREAK} "
    units: list[str] = []
    for section in sections:
        text = seam.join(section)
        units += [text] if _cost(text, encoding) <= room else [u for p in section for u in _small(p, room, encoding)]
    return _fill(units, room, seam, encoding)


def _small(paragraph: str, room: int, encoding: str) -> list[str]:
    if _cost(paragraph, encoding) <= room:
        return [paragraph]
    out: list[str] = []
    for sentence in _fill(sentences(paragraph) or [paragraph], room, " ", encoding):
        rest = sentence
        while _cost(rest, encoding) > room:
            limit, part = room, ""
            while not part or _cost(part, encoding) > room:
                part = truncate(rest, limit, encoding) or rest[:1]
                if limit <= 1:
                    break
                limit -= max(1, limit // 16)
            out.append(part)
            rest = rest[len(part) :].lstrip()
        if rest:
            out.append(rest)
    return out


def _fill(units: list[str], room: int, seam: str, encoding: str) -> list[str]:
    """Join neighbours while they fit; a unit's first word may take a token more behind a seam than at the start."""
    out: list[str] = []
    used = 0
    for unit in units:
        cost = _cost(unit, encoding)
        if out and used + cost + _SEAM <= room:
            out[-1] += seam + unit
            used += cost + _SEAM
        else:
            out.append(unit)
            used = cost
    return out


def _cost(text: str, encoding: str) -> int:
    return count(text.replace('"', '""'), encoding)
