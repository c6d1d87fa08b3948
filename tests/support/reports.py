"""Write the reports of a whole corpus in one process, level by level, without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from communitree_shared.contract.options import ReportOptions
from communitree_workers.report.evidence import EvidenceBuilder
from communitree_workers.report.evidence.rows import count_rows
from communitree_workers.report.records import ChildReport, Evidence, Report
from communitree_workers.report.writing.extractive import write_report
from communitree_workers.tables.io import Tables

ENCODING = "o200k_base"


def write_all(
    tables: Tables,
    options: ReportOptions,
    language: str = "en",
    prompts: Mapping[str, str] | None = None,
    writer: Callable[[Evidence, str], Report | None] = write_report,
) -> tuple[dict[int, Evidence], dict[int, Report]]:
    """Return the evidence and report of each community; `writer` may return None for a report that is missing."""
    builder = EvidenceBuilder(count_rows(tables, ENCODING), options, ENCODING, language, prompts or {})
    evidence: dict[int, Evidence] = {}
    reports: dict[int, Report] = {}
    for level in reversed(builder.levels()):
        children = {number: ChildReport.of(report) for number, report in reports.items()}
        for found in builder.build(level, children):
            evidence[found.community] = found
            report = writer(found, language)
            if report is not None:
                reports[found.community] = report
    return evidence, reports
