"""A community report with its evidence and what was left out; a text unit in its document."""

from __future__ import annotations

import json
from typing import Any

from rich.console import RenderableType

from communitree.render.numbers import listed, plural
from communitree.render.text import Text

_KINDS = {
    "entities": ("entity", "entities"), "relationships": ("relationship",), "claims": ("claim",),
    "text_units": ("text unit",),
}  # fmt: skip


def report_parts(report: dict[str, Any]) -> list[RenderableType]:
    """Return title, summary, findings, then from what the report was made and what did not fit."""
    kind = str(report.get("generated_by") or "")
    head = f"level {report.get('level')}, {plural(int(report.get('size') or 0), 'entity', 'entities')}, "
    head += f"{plural(int(report.get('weight') or 0), 'text unit')}, rank {_rank(report.get('rank'))}"
    parts: list[RenderableType] = [
        Text.assemble((f"{report.get('community')}", "bold cyan"), " ", (str(report.get("title", "")), "bold")),
        Text(head + (f", by {kind}" if kind else ""), "dim"),
        Text(),
        Text(str(report.get("summary", ""))),
    ]
    for finding in report.get("findings") or []:
        body = finding if isinstance(finding, dict) else {"summary": "", "explanation": str(finding)}
        parts += [Text(), Text(str(body.get("summary", "")), "bold"), Text(str(body.get("explanation", "")))]
    parts.append(Text())
    parent, children = report.get("parent"), report.get("children") or []
    if children:
        parts.append(Text(f"children: {listed([str(c) for c in children], 20)}", "dim"))
    if parent is not None and int(parent) >= 0:
        parts.append(Text(f"parent: {parent}", "dim"))
    parts += [
        Text(line, "dim") for line in evidence_lines(_object(report.get("evidence")), _object(report.get("omitted")))
    ]
    if report.get("text_units"):
        parts.append(Text(f"text units, for `communitree source`: {listed(report['text_units'], 5)}", "dim"))
    if report.get("cause"):
        kind = "fallback: " if report.get("generated_by") == "extractive" else ""
        parts.append(Text(f"! {kind}{report['cause']}", "yellow"))
    return parts


def evidence_lines(evidence: dict[str, Any], omitted: dict[str, Any]) -> list[str]:
    """Return what stood in the prompt, behind which child reports the rest stood, and what was left out."""
    lines = []
    counts = evidence.get("counts") or {}
    for name, where in (
        ("direct", "in the prompt itself"),
        ("through", "behind child reports in it"),
        ("aggregated", "known only by a summary"),
        ("omitted", "left out"),
    ):
        row = counts.get(name) or {}
        shown = [plural(row[kind], *words) for kind, words in _KINDS.items() if row.get(kind)]
        if shown:
            lines.append(f"{where}: {', '.join(shown)}")
    if evidence.get("reports"):
        lines.append(f"child reports in full: {listed([str(r) for r in evidence['reports']], 12)}")
    if evidence.get("titles"):
        lines.append(f"children by title and summary: {listed([str(r) for r in evidence['titles']], 12)}")
    if omitted.get("reports"):
        lines.append(f"child reports left out: {listed([str(r) for r in omitted['reports']], 12)}")
    return lines


def source_parts(source: dict[str, Any]) -> list[RenderableType]:
    """Return a text unit with its document's title and place, and what stands around it where that is given."""
    document = source.get("document") or {}
    title = str(document.get("title") or source.get("title") or source.get("document_id") or "")
    start, end = source.get("start", -1), source.get("end", -1)
    place = f"  characters {start:,}–{end:,}" if isinstance(start, int) and start >= 0 else ""
    parts: list[RenderableType] = [
        Text.assemble((title, "bold"), (place, "dim")),
        Text(f"text unit {source.get('id', '')}", "dim"),
        Text(),
    ]
    if source.get("before"):
        parts.append(Text(str(source["before"]), "dim"))
    parts.append(Text(str(source.get("text", ""))))
    if source.get("after"):
        parts.append(Text(str(source["after"]), "dim"))
    return parts


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _rank(rank: float | None) -> str:
    return "unknown" if rank is None else f"{float(rank):g}"
