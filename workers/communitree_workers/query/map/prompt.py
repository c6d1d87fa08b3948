"""The map call: its messages, the static table first and the question last, and the shape of the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from communitree_shared.contract.options import AnswerOptions
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.batches.frame import static_text


def map_messages(
    batch: Batch, question: str, options: AnswerOptions, language: str, prompts: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the chat messages of a batch. The first is the same for every question in one language."""
    static = static_text(batch.overview, batch.anchors, options, language, prompts, batch.context_name)
    return [
        {"role": "system", "content": static + batch.table},
        {"role": "user", "content": question.strip()},
    ]


def map_schema() -> dict[str, Any]:
    """Return the JSON schema of a reply."""
    integer = {"type": "integer"}
    point = {
        "description": {"type": "string"},
        "score": integer,
        "reports": {"type": "array", "items": integer},
    }
    row = {"id": integer, "score": integer}
    return _object({"points": _list(_object(point)), "overview": _list(_object(row))})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}
