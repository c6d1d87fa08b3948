"""From the JSON value a model replied to a report: small faults are put right and counted, no reason to lose it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from communitree_shared.errors import BadInput
from communitree_workers.report import citations
from communitree_workers.report.records import Evidence, Finding, Report
from communitree_workers.report.writing.attachment import attach
from communitree_workers.report.writing.phrases import listed

#: Rating of a report that gives none: neither drowned nor favoured.
NEUTRAL = 5.0

_TITLE = ("title", "report_title", "name", "headline", "标题", "题目", "报告标题", "名称")
_SUMMARY = (
    "summary", "executive_summary", "abstract", "overview", "description", "report_summary",
    "摘要", "概述", "总结", "概要", "执行摘要", "简介",
)  # fmt: skip
_FINDINGS = (
    "findings", "detailed_findings", "key_findings", "insights", "key_insights", "points", "details",
    "发现", "主要发现", "关键发现", "详细发现", "见解", "要点", "洞察",
)  # fmt: skip
_RATING = (
    "rating", "impact_severity_rating", "importance_rating", "importance", "impact", "score", "rank",
    "评分", "评级", "等级", "重要性", "重要性评分", "影响评分", "分数",
)  # fmt: skip
_WHY = (
    "rating_explanation", "rank_explanation", "rating_reason", "explanation",
    "评分说明", "评级说明", "评分理由", "评分解释", "评级解释", "评级理由",
)  # fmt: skip
_FINDING_SUMMARY = (
    "summary", "title", "heading", "headline", "finding", "insight", "name", "point",
    "摘要", "标题", "概述", "总结", "发现", "要点", "见解",
)  # fmt: skip
_FINDING_TEXT = (
    "explanation", "description", "details", "detail", "content", "text", "body", "analysis",
    "说明", "解释", "详情", "详细说明", "内容", "描述", "分析",
)  # fmt: skip
_LISTS = ("findings", "发现")

_FRACTION = re.compile(r"(-?\d+(?:[.,]\d+)?)\s*(?:/|out of|of)\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_DECIMAL = re.compile(r"-?\d+(?:[.,]\d+)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FIRST_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|$)", re.DOTALL)
_HEADING_LENGTH = 160
_TITLE_LENGTH = 300


def parse_report(value: Any, evidence: Evidence, generated_by: str = "") -> Report:
    """Return the report in a reply that is JSON-parsed already, attached to its evidence.

    Only a summary is mandatory: a missing title is made from it, a missing rating is neutral (5.0), findings may be
    strings, objects or a mapping, keys may be other words for the same or Chinese. `repairs` counts by name each thing
    that had to be put right. Citations are checked against the evidence; ids that it does not hold are moved into
    `[Unverified: …]` and counted. `generated_by` is the model's name.

    Raises:
        BadInput: there is no summary to be found.
    """
    repairs: Counter[str] = Counter()
    body = _body(value, repairs)
    summary = _text(_get(body, _SUMMARY, repairs))
    if not summary:
        raise BadInput(
            f"The reply for community {evidence.community} holds no summary.",
            hint='A report is one JSON object with "title", "summary", "rating", "rating_explanation" and "findings".',
        )
    title = _single_line(_text(_get(body, _TITLE, repairs)))
    if not title:
        repairs["title_derived"] += 1
        title = listed(evidence.names[:3], evidence.language) or _heading(summary)
    elif len(title) > _TITLE_LENGTH:  # it stands in its parent's prompt, in answers and in lists
        repairs["title_cut"] += 1
        title = title[: _TITLE_LENGTH - 1].rstrip() + "…"
    rating = _rating(_get(body, _RATING, repairs), repairs)
    why = _text(_get(body, _WHY, repairs))
    findings = _findings(_get(body, _FINDINGS, repairs), repairs)

    places = citations.places(evidence.numbers)
    texts = [summary, *(text for f in findings for text in (f.summary, f.explanation))]
    checked = [citations.check(text, places) for text in texts]
    counts, cited = citations.tally(checked)
    if counts["unverified"]:
        repairs["unverified"] += counts["unverified"]
    report = Report(
        community=evidence.community,
        key=evidence.key,
        level=evidence.level,
        title=title,
        summary=checked[0].text,
        rating=rating,
        rating_explanation=why,
        findings=[Finding(checked[i].text, checked[i + 1].text) for i in range(1, len(checked), 2)],
        language=evidence.language,
        generated_by=generated_by,
        repairs={name: times for name, times in sorted(repairs.items()) if times},
        citations=counts,
        cited=cited,
    )
    return attach(report, evidence)


def parse_part(held: Any, evidence: Evidence, generated_by: str = "") -> Report | None:
    """Return the report in what could be read of a reply that was cut, without its last member, which may be short.

    Findings before the last one are whole; the report has all of its summary, or there is none: then None.
    """
    try:
        return parse_report(_without_last(held), evidence, generated_by)
    except BadInput:
        return None


def _without_last(value: Any) -> Any:
    """Return a read value without the text it ends with, and without what that text is a part of in a list."""
    if isinstance(value, dict) and value:
        *_, last = value
        kept = {key: inner for key, inner in value.items() if key != last}
        inner = _without_last(value[last]) if isinstance(value[last], dict | list) else None
        return kept | {last: inner} if inner else kept
    if isinstance(value, list) and value:
        nested = isinstance(value[-1], dict) and _has(value[-1], _SUMMARY) and _has(value[-1], _LISTS)
        return [*value[:-1], _without_last(value[-1])] if nested else value[:-1]
    return {}


def _body(value: Any, repairs: Counter[str]) -> Mapping[str, Any]:
    """Unwrap `[{…}]`, `{"report": {…}}` and Markdown down to the object that holds the report."""
    if isinstance(value, str):
        return _markdown(value, repairs)
    if isinstance(value, list):
        inner = [item for item in value if isinstance(item, dict)]
        if inner:
            repairs["unwrapped"] += 1
            return _body(max(inner, key=lambda item: _has(item, _SUMMARY)), repairs)
    if isinstance(value, dict):
        if not _has(value, _SUMMARY):
            for item in value.values():
                if isinstance(item, dict) and _has(item, _SUMMARY):
                    repairs["unwrapped"] += 1
                    return item
        return value
    return {}


def _markdown(text: str, repairs: Counter[str]) -> Mapping[str, Any]:
    """Read a report written as Markdown instead of JSON: `# title`, summary, `## finding` with its text."""
    head, *rest = re.split(r"(?m)^##\s+", text.strip())
    match = re.match(r"#\s+(.+)\n+([\s\S]*)", head)
    if match is None:
        return {}
    repairs["markdown"] += 1
    parts = [part.partition("\n") for part in rest]
    findings = [{"summary": summary, "explanation": explanation} for summary, _, explanation in parts]
    return {"title": match.group(1), "summary": match.group(2), "findings": findings}


def _has(value: Mapping[str, Any], words: Iterable[str]) -> bool:
    return any(_key(key) in words for key in value)


def _key(key: object) -> str:
    return str(key).strip().strip("\"'*").lower().replace(" ", "_").replace("-", "_")


def _get(value: Mapping[str, Any], words: tuple[str, ...], repairs: Counter[str]) -> Any:
    """Return the first of these keys that is there; any but the first word counts as a repair."""
    keys = {_key(key): key for key in value}
    for word in words:
        if word in keys and value[keys[word]] not in (None, ""):
            if keys[word] != words[0]:
                repairs["keys"] += 1
            return value[keys[word]]
    return None


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return "\n\n".join(filter(None, map(_text, value)))
    if isinstance(value, dict):
        return "\n\n".join(filter(None, (_text(item) for item in value.values())))
    return str(value)


def _single_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split()).lstrip("# ").strip()


def _heading(text: str) -> str:
    match = _FIRST_SENTENCE.match(citations.remove(text).strip())
    sentence = _single_line(match.group()) if match else ""
    return sentence if len(sentence) <= _HEADING_LENGTH else sentence[: _HEADING_LENGTH - 1].rstrip() + "…"


def _rating(value: Any, repairs: Counter[str]) -> float:
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    number: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str):
        repairs["rating"] += 1
        if fraction := _FRACTION.search(value):
            whole = float(fraction.group(2))
            number = 10 * float(fraction.group(1).replace(",", ".")) / whole if whole > 0 else None
        elif decimal := _DECIMAL.search(value):
            number = float(decimal.group().replace(",", "."))
            number = number / 10 if "%" in value or "％" in value else number
    if number is None or not math.isfinite(number):
        repairs["rating_missing"] += 1
        return NEUTRAL
    if not 0 <= number <= 10:
        repairs["rating_range"] += 1
        return min(10.0, max(0.0, number))
    return number


def _findings(value: Any, repairs: Counter[str]) -> list[Finding]:
    if value is None:
        repairs["findings_missing"] += 1
        return []
    if isinstance(value, str):
        repairs["findings"] += 1
        value = [re.sub(r"^\s*(?:[-*•]|\d+[.)、])\s*", "", part) for part in re.split(r"\n+", value) if part.strip()]
    elif isinstance(value, dict):
        repairs["findings"] += 1
        inner = next((v for k, v in value.items() if _key(k) in _LISTS and isinstance(v, list)), None)
        if inner is not None:
            value = inner
        elif _has(value, _FINDING_TEXT):
            value = [value]
        else:
            value = [v if isinstance(v, dict) else {"summary": k, "explanation": v} for k, v in value.items()]
    if not isinstance(value, list):
        repairs["findings_missing"] += 1
        return []
    found = [_finding(item, repairs) for item in value]
    return [finding for finding in found if finding is not None]


def _finding(item: Any, repairs: Counter[str]) -> Finding | None:
    if isinstance(item, dict):
        told = _get(item, _FINDING_TEXT, repairs)
        repairs["findings"] += not isinstance(told, str | None)
        explanation = _text(told)
        summary = _single_line(_text(_get(item, _FINDING_SUMMARY, repairs)))
        if not summary and not explanation and len(item) == 1:  # {"what was found": "its explanation"}
            repairs["findings"] += 1
            ((key, value),) = item.items()
            summary, explanation = _single_line(str(key)), _text(value)
    else:
        summary, explanation = "", _text(item)
        repairs["findings"] += 1
    if not summary and not explanation:
        repairs["findings_empty"] += 1
        return None
    if not summary:
        repairs["finding_summary"] += 1
        summary = _heading(explanation)
    return Finding(summary, explanation)
