"""The text around a text unit, put together from its neighbours: where its document is too large to be read for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def around(units: pa.Table, row: int, size: int) -> tuple[str, str]:
    """Return up to `size` characters before and after a text unit (a row of `text_units`) of the same document.

    White space that no text unit holds becomes a line feed.
    """
    unit = _row(units, row)
    before, after = "", ""
    at, number = unit["start"], row - 1
    while number >= 0 and len(before) < size and (other := _row(units, number))["document_id"] == unit["document_id"]:
        body = _body(other)[: max(0, at - other["start"])]
        before = body + ("\n" if other["end"] < at else "") + before
        at, number = min(at, other["start"]), number - 1
    at, number = unit["end"], row + 1
    while (
        number < units.num_rows
        and len(after) < size
        and (other := _row(units, number))["document_id"] == unit["document_id"]
    ):
        body = _body(other)[max(0, at - other["start"]) :]
        after += ("\n" if other["start"] > at else "") + body
        at, number = max(at, other["end"]), number + 1
    return before[-size:], after[:size]


def _row(units: pa.Table, row: int) -> dict[str, Any]:
    found: dict[str, Any] = units.select(["document_id", "text", "start", "end"]).slice(row, 1).to_pylist()[0]
    return found


def _body(unit: dict[str, Any]) -> str:
    """Return a unit's text without the lines of metadata before it."""
    text: str = unit["text"]
    return text[len(text) - (unit["end"] - unit["start"]) :]
