"""What a model wrote about a text unit → rows; whatever is damaged is lost alone, and counted.

Two forms are read: JSON, as our prompts ask for, and GraphRAG's tuples `("entity"<|>NAME<|>TYPE<|>DESCRIPTION)##…`, as
replaced prompts and fine-tuned models write them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from communitree_shared.errors import BadInput, ContentRefused, ModelError
from communitree_workers.corpus.extraction.titles import unify
from communitree_workers.model.replies.reading import parse_json

Row = dict[str, Any]

_TUPLE_MARK = "<|>"
_RECORD_END = re.compile(r"##|<\|COMPLETE\|>|\n(?=[ \t]*\([ \t]*[\"“']?\w+[\"”']?\s*<\|>)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

#: Names that models give to a field, in any case; the first is ours.
_FIELDS: dict[str, tuple[str, ...]] = {
    "title": ("title", "name", "entity", "entity_name", "entity_title", "id", "名称", "实体", "实体名称"),
    "type": ("type", "entity_type", "category", "label", "claim_type", "类型", "实体类型"),
    "description": (
        *("description", "entity_description", "relationship_description", "claim_description", "desc", "summary"),
        *("relation", "relationship", "描述", "说明", "关系"),
    ),
    "source": ("source", "source_entity", "from", "head", "subject", "起点", "来源", "源实体"),
    "target": ("target", "target_entity", "to", "tail", "object", "终点", "目标", "目标实体"),
    "strength": ("strength", "weight", "relationship_strength", "score", "强度", "权重"),
    "subject": ("subject", "subject_entity", "subject_id", "entity", "主体"),
    "object": ("object", "object_entity", "object_id", "客体", "对象"),
    "status": ("status", "claim_status", "状态"),
    "start_date": ("start_date", "claim_start_date", "date", "开始日期"),
    "end_date": ("end_date", "claim_end_date", "结束日期"),
    "source_text": ("source_text", "claim_source_text", "source_quote", "quote", "quotes", "原文"),
}
_ALIASES = frozenset(("aliases", "alias", "also_known_as", "别名", "其他名称"))
_LISTS = {"entities": "entity", "relationships": "relationship", "relations": "relationship"}
_NOTHING = frozenset({"", "none", "null", "n/a", "unknown", "无", "未知"})


@dataclass
class Found:
    """Rows of a text unit.

    Entities: title, type, description, and aliases where there are any; relationships: source, target, description,
    strength; claims: subject, object, type, status, start_date, end_date, description, source_text. `holes`: start, end
    (characters of the text), cause and message of what gave nothing. `part`: another try may give more.
    """

    entities: list[Row] = field(default_factory=list)
    relationships: list[Row] = field(default_factory=list)
    claims: list[Row] = field(default_factory=list)
    lost: int = 0
    calls: int = 0
    failed_calls: int = 0
    holes: list[Row] = field(default_factory=list)
    part: bool = False

    def failed(self, error: ModelError) -> None:
        """Count a call that failed where what came before it is kept."""
        self.failed_calls += 1
        self.part = self.part or not isinstance(error, ContentRefused)

    def add_hole(self, start: int, end: int, error: ModelError) -> None:
        """Note a stretch of the text that gave nothing."""
        self.holes.append({"start": start, "end": end, "cause": error.code, "message": error.message})
        self.part = self.part or not isinstance(error, ContentRefused)

    def add(self, other: Found, offset: int = 0) -> bool:
        """Take over another's rows that are not here yet (same titles and description); say whether there were any.

        `offset`: of its text in this one's.
        """
        before = len(self.entities) + len(self.relationships)
        for mine, theirs in ((self.entities, other.entities), (self.relationships, other.relationships)):
            known = {_identity(row) for row in mine}
            for row in theirs:
                if _identity(row) not in known:
                    known.add(_identity(row))
                    mine.append(row)
        self.lost += other.lost
        self.calls += other.calls
        self.failed_calls += other.failed_calls
        self.part = self.part or other.part
        self.holes += [{**hole, "start": hole["start"] + offset, "end": hole["end"] + offset} for hole in other.holes]
        return len(self.entities) + len(self.relationships) > before

    def as_json(self) -> dict[str, Any]:
        """Return the result without its unit."""
        return dict(vars(self))


def _identity(row: Row) -> tuple[str, ...]:
    return (unify(row.get("title", "")), unify(row.get("source", "")), unify(row.get("target", "")), row["description"])


def parse_graph(text: str, value: Any = None) -> Found:
    """Return the entities and relationships of a reply. One without any form is a lost row, to be asked again."""
    out = Found()
    if not isinstance(value, dict | list):
        if _TUPLE_MARK in text:
            return _parse_tuples(text)
        value = _json(text)
    if value is None:
        out.lost, out.part = 1, True
        return out
    for kind, item in _items(
        value, {"entities": "entity", "relationships": "relationship", "relations": "relationship"}
    ):
        if isinstance(item, str) and kind == "entity":
            item = {"title": item}
        if not isinstance(item, Mapping):
            out.lost += 1
        elif kind == "relationship" or (not kind and _get(item, "source") and _get(item, "target")):
            _add_relationship(out, item)
        else:
            _add_entity(out, item)
    return out


def parse_claims(text: str, value: Any = None) -> tuple[list[Row], int]:
    """Return the claims of a reply, and how many were lost."""
    rows: list[Row] = []
    lost = 0
    items: Iterable[Any]
    if not isinstance(value, dict | list) and _TUPLE_MARK in text:
        names = ("subject", "object", "type", "status", "start_date", "end_date", "description", "source_text")
        records = [r[1:] if r[0].casefold() == "claim" else r for r in _records(text)]
        items = [dict(zip(names, record, strict=False)) if len(record) >= 7 else None for record in records]
    else:
        value = value if isinstance(value, dict | list) else _json(text)
        if value is None:
            return [], 1
        items = [item for _, item in _items(value, {"claims": "claim", "covariates": "claim"})]
    for item in items:
        if not isinstance(item, Mapping) or not _get(item, "subject") or not _get(item, "description"):
            lost += 1
            continue
        row = {name: _get(item, name) for name in ("subject", "object", "type", "status", "description", "source_text")}
        row |= {name: _date(_get(item, name)) for name in ("start_date", "end_date")}
        row["object"] = "" if row["object"].casefold() in _NOTHING else row["object"]
        row["status"] = row["status"].upper() if row["status"].upper() in ("TRUE", "FALSE") else "SUSPECTED"
        rows.append(row)
    return rows, lost


def _json(text: str) -> Any:
    try:
        return parse_json(text)[0]
    except BadInput:
        return None


def _items(value: Any, lists: Mapping[str, str]) -> Iterable[tuple[str, Any]]:
    """Yield (kind, item) of an object of lists, or ("", item) of a bare list or a single object."""
    if isinstance(value, Mapping):
        known = [(kind, value[name]) for name, kind in lists.items() if isinstance(value.get(name), list | dict)]
        for kind, items in known:
            yield from ((kind, item) for item in (items if isinstance(items, list) else [items]))
        if not known and value and not any(name in value for name in lists):
            yield "", value
    else:
        yield from (("", item) for item in value)


def _add_entity(out: Found, item: Mapping[str, Any]) -> None:
    title = _get(item, "title")
    if not unify(title):
        out.lost += 1
        return
    row: Row = {"title": title, "type": _get(item, "type").lower(), "description": _get(item, "description")}
    if aliases := _aliases(item):
        row["aliases"] = aliases
    out.entities.append(row)


def _aliases(item: Mapping[str, Any]) -> list[str]:
    """Return what an entity is also called, as a list of names has it."""
    given = next((value for key, value in item.items() if str(key).strip().lower() in _ALIASES), None)
    names = [" ".join(name.split()) for name in given if isinstance(name, str)] if isinstance(given, list) else []
    return list(dict.fromkeys(name for name in names if unify(name)))


def _add_relationship(out: Found, item: Mapping[str, Any]) -> None:
    source, target = _get(item, "source"), _get(item, "target")
    if not unify(source) or not unify(target):
        out.lost += 1
        return
    strength = strength_of(_get(item, "strength"))
    out.relationships.append(
        {"source": source, "target": target, "description": _get(item, "description"), "strength": strength}
    )


def strength_of(text: str) -> float:
    """Return a strength between 1 and 10: `8`, `8/10`, `9.5 (high)`; 1 where none can be read."""
    match = _NUMBER.search(text)
    value = float(match.group()) if match and not text.lstrip().startswith("-") else 1.0
    return min(10.0, max(1.0, value)) if math.isfinite(value) else 1.0


def _get(item: Mapping[str, Any], name: str) -> str:
    lower = {str(key).strip().lower(): value for key, value in item.items()}
    for candidate in _FIELDS[name]:
        value = lower.get(candidate)
        if isinstance(value, list):
            value = " ".join(str(part) for part in value)
        if value is not None and not isinstance(value, dict | bool):
            return " ".join(str(value).split())
    return ""


def _date(text: str) -> str:
    return "" if text.casefold() in _NOTHING else text


def _records(text: str) -> list[list[str]]:
    out = []
    for record in _RECORD_END.split(text):
        if _TUPLE_MARK not in record:
            continue
        inner = record.strip().removeprefix("(")
        inner = inner.rstrip().removesuffix(")") if inner.rstrip().endswith(")") else inner
        out.append([part.strip().strip("\"“”'") for part in inner.split(_TUPLE_MARK)])
    return out


def _parse_tuples(text: str) -> Found:
    out = Found()
    for record in _records(text):
        kind = record[0].lstrip("(").strip("\"“”' ").casefold()
        if kind == "entity" and len(record) >= 3:
            _add_entity(out, dict(zip(("title", "type", "description"), record[1:], strict=False)))
        elif kind == "relationship" and len(record) >= 4:
            _add_relationship(out, dict(zip(("source", "target", "description", "strength"), record[1:], strict=False)))
        else:
            out.lost += 1
    return out
