"""The `community_reports` table: one row for each community, no holes; reports that were imported are kept."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa

from communitree_shared import tokens
from communitree_shared.contract import tables as names
from communitree_shared.contract.options import ReportOptions
from communitree_shared.errors import IntegrityError
from communitree_workers.report.evidence import EvidenceBuilder
from communitree_workers.report.records import GENERATED_BY_IMPORT, ChildReport, Evidence, Finding, Report
from communitree_workers.report.writing.attachment import attach, count
from communitree_workers.report.writing.extractive import write_report
from communitree_workers.tables.io import Tables, conform, from_rows

__all__ = ["adopt_reports", "attach", "report_id", "report_row", "report_table"]

#: Why a community of imported tables has an extractive report.
MISSING = "the imported tables hold no report on this community"

_TAKEN_OVER = ("community", "level", "parent", "children", "period", "size", "key", "is_leaf", "weight", "mass")


def report_table(communities: pa.Table, reports: Mapping[int, Report], encoding: str) -> pa.Table:
    """Return `community_reports` in the order of `communities`, from reports attached to their evidence.

    `encoding` is only a check: a report without its tokens counted is counted with it.

    Raises:
        IntegrityError: a community has no report.
    """
    rows = []
    seen: Counter[str] = Counter()
    for community in communities.select([*_TAKEN_OVER]).to_pylist():
        report = reports.get(community["community"])
        if report is None:
            raise IntegrityError(
                f"Community {community['community']} (level {community['level']}) has no report.",
                hint="Each community gets at least an extractive report: run `communitree resume` on the job.",
            )
        row = report_row(community, report, encoding)
        # Kept trees may overlap: equal members under two parents, at one level, with one evidence.
        first = row["id"]
        seen[first] += 1
        if seen[first] > 1:
            row["id"] = report_id(first, seen[first], row["evidence_hash"])
        rows.append(row)
    return from_rows(names.COMMUNITY_REPORTS, rows)


def report_row(community: Mapping[str, Any], report: Report, encoding: str) -> dict[str, Any]:
    """Return the row of one report; `community` is its row of `communities`."""
    return {
        **{column: community[column] for column in _TAKEN_OVER},
        "id": report_id(community["key"], community["level"], report.evidence_hash),
        "human_readable_id": community["community"],
        "title": report.title,
        "summary": report.summary,
        "full_content": report.full_content,
        "rank": report.rating,
        "rating_explanation": report.rating_explanation,
        "findings": [{"summary": f.summary, "explanation": f.explanation} for f in report.findings],
        "full_content_json": report.full_content_json,
        "direct": report.direct,
        "n_tokens": report.n_tokens or tokens.count(report.full_content, encoding),
        "n_tokens_summary": report.n_tokens_summary or tokens.count(report.summary, encoding),
        "generated_by": report.generated_by,
        "cause": report.cause,
        "evidence_hash": report.evidence_hash,
        "evidence": orjson.dumps(report.record).decode(),
        "omitted": orjson.dumps(report.omitted).decode(),
        "language": report.language,
    }


def report_id(key: str, level: int, evidence_hash: str) -> str:
    """Return the id of a report row: two levels with the same members have two reports."""
    return hashlib.sha256(f"{key}|{level}|{evidence_hash}".encode()).hexdigest()[:32]


def adopt_reports(
    communities: pa.Table,
    reports: pa.Table | None,
    tables: Tables,
    options: ReportOptions,
    encoding: str,
    language: str,
    prompts: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return `community_reports` for imported communities.

    An imported report keeps its text, findings and rating. Nobody knows what it was written from; its evidence is
    taken to be the rows that fit the report budget without any child's report, and a leaf counts as read in whole. A
    community without a report gets an extractive one with `cause` set; reports on no known community are left out.
    """
    builder = EvidenceBuilder({**tables, names.COMMUNITIES: communities}, options, encoding, language, prompts or {})
    rows = conform(names.COMMUNITY_REPORTS, reports).to_pylist() if reports is not None else []
    given = {row["community"]: row for row in rows}
    shape = communities.select(["community", "is_leaf", "mass"]).to_pylist()
    leaf_mass = {row["community"]: row["mass"] for row in shape if row["is_leaf"]}
    made: dict[int, Report] = {}
    below: dict[int, ChildReport] = {}
    for level in reversed(builder.levels()):
        alone = {evidence.community: evidence for evidence in builder.build(level, {})}
        found = {}
        if any(number not in given for number in alone):
            found = {evidence.community: evidence for evidence in builder.build(level, below)}
        for number, evidence in alone.items():
            if number in given:
                direct = leaf_mass.get(number, evidence.direct)
                made[number] = _imported(given[number], replace(evidence, direct=direct))
            else:
                made[number] = write_report(found[number], builder.language, MISSING)
        below = {number: ChildReport.of(made[number]) for number in alone}
    return report_table(communities, made, encoding)


def _imported(row: Mapping[str, Any], evidence: Evidence) -> Report:
    content = row["full_content"] or f"# {row['title']}\n\n{row['summary']}"
    rank = row["rank"]
    report = Report(
        community=evidence.community,
        key=evidence.key,
        level=evidence.level,
        title=row["title"] or "",
        summary=row["summary"] or "",
        rating=5.0 if rank is None else float(rank),
        rating_explanation=row["rating_explanation"] or "",
        findings=[Finding(f["summary"] or "", f["explanation"] or "") for f in row["findings"] or ()],
        language=evidence.language,
        generated_by=GENERATED_BY_IMPORT,
        full_content=content,
        full_content_json=row["full_content_json"] or _json(row),
        evidence_hash=evidence.hash,
        direct=evidence.direct,
        record=evidence.record,
        omitted=evidence.omitted,
        gaps=evidence.gaps,
    )
    return count(report, evidence.encoding)


def _json(row: Mapping[str, Any]) -> str:
    fields = ("title", "summary", "rank", "rating_explanation", "findings")
    return orjson.dumps({("rating" if f == "rank" else f): row[f] for f in fields}).decode()
