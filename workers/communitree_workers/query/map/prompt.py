"""The map call: its messages, the static table first and the question last, and the shape of the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from communitree_shared.contract.options import AnswerOptions
from communitree_workers.prompts import question_text
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.batches.frame import data_text, rules_text


def map_messages(
    batch: Batch, question: str, options: AnswerOptions, language: str, prompts: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the chat messages of a batch. All before the question is the same for every question in one language."""
    data = data_text(batch.overview, language, batch.context_name) + batch.table
    return [
        {"role": "system", "content": rules_text(batch.anchors, options, language, prompts)},
        {"role": "user", "content": f"{data}\n{question_text(question, language)}"},
    ]


def map_schema(*, anchors: bool = True) -> dict[str, Any]:
    """Return the JSON schema of a reply. `anchors`: rows of the overview are scored, too."""
    integer = {"type": "integer"}
    point = {
        "description": {"type": "string"},
        "score": integer,
        "reports": {"type": "array", "items": integer},
    }
    points = {"points": _list(_object(point))}
    row = _object({"id": integer, "score": integer})
    return _object({**points, "overview": _list(row)} if anchors else points)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}
