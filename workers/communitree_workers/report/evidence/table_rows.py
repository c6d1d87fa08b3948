"""Rows of whole tables as they stand in a report prompt, column by column; `rows.line` is the same for one row.

Only columns that need it are touched: white space is collapsed where there is more than single spaces between words,
and fields are quoted where CSV needs it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

#: All that `str.split()` takes for white space, but the plain space.
_BREAKS = r"\t\n\x0b\x0c\r\x{1c}-\x{1f}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_UNTIDY = f"[{_BREAKS}]|  |^ | $"
_SPACE = f"[ {_BREAKS}]+"

#: kind → columns of its rows, after the number.
FIELDS = {
    "entities": ("title", "type", "description"),
    "relationships": ("source", "target", "description"),
    "claims": ("subject_id", "object_id", "type", "status", "start_date", "end_date", "description"),
    "text_units": ("text",),
}


def tails(kind: str, table: pa.Table) -> pa.Array:
    """Return each row of a table of this kind as it is rendered, without its number: large strings, no nulls."""
    columns = [_plain(table[name]) for name in FIELDS[kind]]
    if kind == "claims":
        # `NONE` is GraphRAG's word for a claim without an object or a date
        subject, target, *middle, start, end, text = columns
        columns = [subject, _unless_none(target), *middle, *(_day(date) for date in (start, end)), text]
    quoted = [_quoted(_tidy(column)) for column in columns]
    return quoted[0] if len(quoted) == 1 else _joined(*quoted, between=",")


def lines(numbers: pa.ChunkedArray, rest: pa.Array) -> pa.Array:
    """Return whole rows: number, rest, line feed."""
    texts = pc.cast(numbers, pa.large_string()).combine_chunks()
    return _joined(_joined(texts, rest, between=","), _text(""), between="\n")


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _joined(*parts: pa.Array | pa.Scalar, between: str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _text(between))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    # Large: the text of a few million rows is more than the 2 GB that a plain string array holds.
    return pc.fill_null(column.cast(pa.large_string()), "").combine_chunks()


def _where(mask: pa.Array, changed: pa.Array, column: pa.Array) -> pa.Array:
    """Return a column with the marked fields, in their order, replaced."""
    return pc.replace_with_mask(column, mask, changed)


def _tidy(column: pa.Array) -> pa.Array:
    untidy = pc.match_substring_regex(column, _UNTIDY)
    some = column.filter(untidy)
    if not len(some):
        return column
    return _where(untidy, pc.utf8_trim(pc.replace_substring_regex(some, _SPACE, " "), " "), column)


def _quoted(column: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(column, '[",]')
    some = column.filter(special)
    if not len(some):
        return column
    doubled = pc.replace_substring(some, '"', '""')
    return _where(special, _joined(_text('"'), doubled, _text('"'), between=""), column)


def _unless_none(column: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(pc.utf8_upper(column), "NONE"), _text(""), column)


def _day(column: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(_unless_none(column), 0, 10)
