"""A report's text and the evidence it was written from, put together: content, counts, numbers of this version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from communitree_shared import tokens
from communitree_workers.report import citations
from communitree_workers.report.evidence import rows
from communitree_workers.report.records import GENERATED_BY_EXTRACTIVE, Evidence, Finding, Report
from communitree_workers.report.writing.phrases import rating_by_share, rating_words


def attach(report: Report, evidence: Evidence, *, generated_by: str | None = None, cause: str | None = None) -> Report:
    """Return the report as this evidence's own, ready for the table and for the parent.

    A stored report with the same evidence hash may come from an older version whose rows bore other numbers: its
    citations are renumbered by their position in the evidence. What depends on the rest of the corpus (counts of rows
    left out, an extractive report's rating) is taken from the evidence. Attaching twice changes nothing.
    """

    def change(kind: str, number: int) -> int:
        at = report.cited.get(kind, {}).get(str(number))
        return number if at is None or at >= len(evidence.numbers[kind]) else evidence.numbers[kind][at]

    moved = any(change(kind, int(n)) != int(n) for kind, numbers in report.cited.items() for n in numbers)
    if moved:
        report = replace(
            report,
            summary=citations.renumber(report.summary, change),
            findings=[
                Finding(citations.renumber(f.summary, change), citations.renumber(f.explanation, change))
                for f in report.findings
            ],
            cited={
                kind: {str(change(kind, int(n))): at for n, at in numbers.items()}
                for kind, numbers in report.cited.items()
            },
        )
    if generated_by is not None or cause is not None:
        report = replace(
            report,
            generated_by=report.generated_by if generated_by is None else generated_by,
            cause=report.cause if cause is None else cause,
        )
    if report.generated_by == GENERATED_BY_EXTRACTIVE:
        rating = rating_by_share(evidence.share)
        report = replace(report, rating=rating, rating_explanation=rating_words(evidence.share, report.language))
    if moved or not report.full_content or report.n_tokens <= 0:
        content, _ = markdown(report.title, report.summary, report.findings)
        report = count(replace(report, full_content=content), evidence.encoding)
    return replace(
        report,
        full_content_json=content_json(report),
        community=evidence.community,
        key=evidence.key,
        level=evidence.level,
        evidence_hash=evidence.hash,
        direct=evidence.direct,
        record=evidence.record,
        omitted=evidence.omitted,
        gaps=evidence.gaps,
    )


def count(report: Report, encoding: str) -> Report:
    """Return the report with the tokens of its text and of its rows in a parent's prompt."""
    full, short = rows.report_tails(report.title, report.summary, report.full_content)
    return replace(
        report,
        n_tokens=tokens.count(report.full_content, encoding),
        n_tokens_summary=tokens.count(report.summary, encoding),
        row_tokens=rows.count_tail(full, encoding),
        title_row_tokens=rows.count_tail(short, encoding),
    )


def markdown(title: str, summary: str, findings: Sequence[Finding]) -> tuple[str, list[int]]:
    """Return a report as Markdown, and the character at which each finding's heading starts in it."""
    text = f"# {title}\n\n{summary}"
    offsets = []
    for finding in findings:
        text += "\n\n"
        offsets.append(len(text))
        text += f"## {finding.summary}\n\n{finding.explanation}"
    return text, offsets


def content_json(report: Report) -> str:
    """Return `full_content_json`: the report's fields, and `offsets` of its findings in `full_content`."""
    _, offsets = markdown(report.title, report.summary, report.findings)
    value: dict[str, Any] = {
        "title": report.title,
        "summary": report.summary,
        "rating": report.rating,
        "rating_explanation": report.rating_explanation,
        "findings": report.findings,
        "offsets": offsets,
    }
    return orjson.dumps(value).decode()
