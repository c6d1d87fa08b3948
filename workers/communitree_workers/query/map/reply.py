"""The reply of a map call, read point by point: what is odd in one costs no other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from communitree_shared.contract.options import AnswerOptions
from communitree_shared.errors import BadInput
from communitree_workers.citing.grammar import grammar_of
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.map.outcome import MapPoint, MapResult
from communitree_workers.query.view.cells import BREAK
from communitree_workers.query.wording.length import words
from communitree_workers.query.wording.scores import read_score

_POINTS = ("points", "要点", "关键点", "key_points", "data", "results", "result", "answer", "response")
_TEXT = ("description", "point", "text", "描述", "要点", "内容", "陈述", "statement", "content", "说明", "answer")
_SCORE = ("score", "rating", "importance", "分数", "评分", "得分", "重要性", "重要程度", "importance_score")
_REPORTS = ("reports", "report_ids", "ids", "sources", "citations", "references", "report", "id", "报告", "报告编号",
            "编号", "引用", "来源", "依据")  # fmt: skip
_OVERVIEW = ("overview", "概览", "anchors")

_BEFORE_STOP = re.compile(r"\s+([.,;:!?。，；：！？、])")
_NUMBERS = re.compile(r"[\s#]*\d[\d\s,，、;；#]*")
_BLANKS = re.compile(r"[ \t]{2,}")


def parse_points(value: Any, batch: Batch) -> MapResult:
    """Read a reply that is parsed JSON, or JSON text.

    Each point stands for itself: an odd one costs no other. Accepted: a list, one point alone, other and Chinese keys,
    scores such as `"85/100"` and `"90.5"`, scores from 0 to 1 when the whole reply has such (a fraction among them),
    ids in the description as GraphRAG writes them. Scores are clamped to 0–100.

    Raises:
        BadInput: nothing in it is a point, nor an empty list of points.
    """
    result = MapResult()
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
            result.repaired += 1
        except orjson.JSONDecodeError:
            raise BadInput(
                "The reply is no JSON.", hint="Ask again, or use a model that follows instructions."
            ) from None
    rows = _points_of(value, result)
    if rows is None:
        raise BadInput(f"The reply has no points: {str(value)[:120]}", hint="The model ignored the reply's shape.")
    table, shown = set(batch.ids), set(batch.anchors)
    for row in rows:
        point = _point(_numbered(row, batch, result), table, shown, result, batch.context_name)
        if point is not None:
            result.points.append(point)
    _scale(result, _overview_of(value))
    result.overview = {id: score for id, score in result.overview.items() if id in shown}
    result.words = sum(words(point.text) for point in result.points)
    return result


def _get(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in row:
            return row[name]
    folded = {str(key).strip().lower(): item for key, item in row.items()}
    return next((folded[name] for name in names if name in folded), None)


def _points_of(value: Any, result: MapResult) -> list[Any] | None:
    if isinstance(value, list):
        result.repaired += 1
        if len(value) == 1 and isinstance(value[0], dict) and isinstance(_get(value[0], _POINTS), list):
            return _points_of(value[0], result)
        return value
    if not isinstance(value, dict):
        return None
    if not value:
        result.repaired += 1
        return []
    if _get(value, _SCORE) is not None and isinstance(_get(value, _TEXT), str):
        result.repaired += 1
        return [value]
    found = _get(value, _POINTS)
    if found is None:
        return [] if _get(value, _OVERVIEW) is not None else None
    if "points" not in value:
        result.repaired += 1
    if isinstance(found, list):
        return found
    result.repaired += 1
    if isinstance(found, dict):
        inner = _points_of(found, result)
        return inner if inner is not None else list(found.values())
    return [found] if isinstance(found, str) and found.strip() else []


def _overview_of(value: Any) -> Iterator[tuple[int, Any]]:
    rows = _get(value, _OVERVIEW) if isinstance(value, dict) else None
    if isinstance(rows, dict):
        rows = [{"id": id, "score": score} for id, score in rows.items()]
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            for id in _ids(_get(row, _REPORTS)):
                yield id, _get(row, _SCORE)


def _point(row: Any, table: set[int], shown: set[int], result: MapResult, context: str) -> MapPoint | None:
    if isinstance(row, str):
        result.repaired += 1
        row = {"description": row, "score": None}
    if not isinstance(row, dict):
        result.repaired += 1
        return None if row is None else MapPoint(str(row), None)
    text = _get(row, _TEXT)
    if isinstance(text, list):
        text = "；".join(map(str, text))
    text = "" if text is None else str(text)
    score, mended = read_score(_get(row, _SCORE))
    result.repaired += mended
    written = grammar_of(context).ids(text)
    named = list(dict.fromkeys([*_ids(_get(row, _REPORTS)), *written]))
    known = [id for id in named if id in table]
    in_overview = [id for id in named if id in shown and id not in table]
    return MapPoint(
        text=_without_references(text, context),
        score=score,
        reports=known or in_overview,
        unverified=[id for id in named if id not in table and id not in shown],
        overview_only=bool(in_overview) and not known,
    )


def _numbered(row: Any, batch: Batch, result: MapResult) -> Any:
    """Return a point that names its reports by their ids where it names them by titles that stand in the table."""
    named = _get(row, _REPORTS) if isinstance(row, dict) else None
    listed = named if isinstance(named, list) else [named]
    if not any(isinstance(name, str) and not _NUMBERS.fullmatch(name) for name in listed):
        return row
    ids = ids_by_title(batch)
    found = [ids.get(_folded(name), name) if isinstance(name, str) else name for name in listed]
    if found == listed:
        return row
    result.repaired += 1
    return {**{key: value for key, value in row.items() if value is not named}, "reports": found}


def ids_by_title(batch: Batch) -> dict[str, int]:
    """Return title (case and blanks folded) → id of the batch's rows; a title of several is none."""
    known: dict[str, set[int]] = {}
    for row in batch.cells():
        known.setdefault(_folded(row.get("title", "")), set()).add(int(row["id"]))
    return {title: min(ids) for title, ids in known.items() if title and len(ids) == 1}


def _folded(title: str) -> str:
    return " ".join(title.replace(BREAK, " ").split()).strip("\"'“”《》[]【】 ").casefold()


def unusable(result: MapResult) -> int:
    """Return how many points would be lost: no text, no score that can be read, or a score and no report."""
    return sum(
        point.score is None or (point.score > 0 and not (point.text.strip() and (point.reports or point.unverified)))
        for point in result.points
    )


def _without_references(text: str, context: str) -> str:
    clean = grammar_of(context).without(text)  # of any kind: those inside a report are no citations of this point
    return _BLANKS.sub(" ", _BEFORE_STOP.sub(r"\1", clean)).strip()


def _ids(value: Any) -> list[int]:
    if value is None or isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, float):
        return [int(value)] if value.is_integer() else []
    if isinstance(value, str):
        return [int(text) for text in re.findall(r"\d+", value)]
    if isinstance(value, dict):
        return _ids(_get(value, ("id", "report", "编号", "ids", "reports")))
    return [id for item in value for id in _ids(item)] if isinstance(value, list) else []


def _scale(result: MapResult, overview: Iterator[tuple[int, Any]]) -> None:
    """Bring scores to 0–100; those from 0 to 1 mean shares only where all of a reply are such."""
    anchors = [(id, score) for id, value in overview if (score := read_score(value)[0]) is not None]
    given = [p.score for p in result.points if p.score is not None]
    factor = 1.0
    if given and max(given) <= 1 and min(given) >= 0 and any(0 < s < 1 for s in given):
        factor = 100.0
        result.repaired += 1
    for point in result.points:
        if point.score is not None:
            point.score = _clamp(point.score * factor, result)
    high = max((score for _, score in anchors), default=0.0)
    for id, score in anchors:
        result.overview[id] = _clamp(score * (factor if high <= 1 else 1.0), result)


def _clamp(score: float, result: MapResult) -> float:
    if not 0 <= score <= 100:
        result.repaired += 1
    return round(min(100.0, max(0.0, score)), 3)


def at_limit(result: MapResult, options: AnswerOptions) -> bool:
    """Say whether a reply used up its words, so that it may have left something out."""
    return result.words >= 0.9 * options.map_max_length
