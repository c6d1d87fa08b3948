"""Columns as other programs wrote them, brought to the one type that we want.

Every function takes a whole column. What cannot be read raises `BadInput` that names the file, the column,
the row (counted from 1, header not counted) and what was expected there.
"""

from __future__ import annotations

import json
from typing import NoReturn

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from communitree_shared.errors import BadInput
from communitree_workers.tables.columns import Ints, flatten, one_chunk, to_lists
from communitree_workers.tables.io import FINDING

#: Stands between the parts of a list while it is still text: no id has it.
_UNIT = "\x1f"

#: Ways in which a list, a numpy array or a Python repr begins and ends when a CSV writer turned it into text.
_HEAD = r"^\s*(?:array\()?\s*[\[\(\{]\s*"
_TAIL = r"\s*[\]\)\}]\s*(?:,\s*dtype=[^)]*\))?\s*$"


_AGAIN = "Write this column in that type and send the tables again; nothing was imported."


def refuse(file: str, column: str, row: int, expected: str, found: object) -> NoReturn:
    """Raise `BadInput` for the value in this row (counted from 0)."""
    shown = repr(found)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    raise BadInput(
        f"{file}: column {column}, row {row + 1}: expected {expected}, found {shown}.",
        hint="Correct this value and send the tables again; nothing was imported.",
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Say whether values of this type are lists, of whatever flavour."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    )  # fmt: skip


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the column as one array, dictionaries (pandas' categories) unfolded."""
    array = one_chunk(column)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def text(column: pa.Array | pa.ChunkedArray, file: str, name: str) -> pa.Array:
    """Return strings; null and NaN become "", numbers their shortest form (`3`, not `3.0`), structs their JSON."""
    array = plain(column)
    kind = array.type
    if pa.types.is_null(kind):
        return pa.array([""] * len(array), pa.string())
    if pa.types.is_floating(kind):
        return _float_text(array)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return pa.array([_json(value) for value in array.to_pylist()], pa.string())
    if is_list(kind):
        row = int(np.argmax(pc.is_valid(array).to_numpy(zero_copy_only=False)))
        refuse(file, name, row, "a text", array[row].as_py())
    try:
        strings = array.cast(pa.string())
        return pc.fill_null(strings, "") if strings.null_count else strings
    except pa.ArrowException as error:
        raise BadInput(f"{file}: column {name}: expected texts, found {kind}: {error}", hint=_AGAIN) from error


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)


def _float_text(array: pa.Array) -> pa.Array:
    values = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < 2**53)
    if (whole | np.isnan(values)).all():
        numbers = pa.array(np.where(whole, values, 0).astype(np.int64), mask=~whole)
        return pc.fill_null(numbers.cast(pa.string()), "")
    texts = ["" if np.isnan(v) else str(int(v)) if w else repr(float(v)) for v, w in zip(values, whole, strict=True)]
    return pa.array(texts, pa.string())


def refuse_empty(array: pa.Array, file: str, name: str, expected: str) -> None:
    """Raise `BadInput` for the first empty text."""
    empty = pc.equal(pc.utf8_trim_whitespace(array), "").to_numpy(zero_copy_only=False)
    if empty.any():
        row = int(np.argmax(empty))
        refuse(file, name, row, expected, array[row].as_py())


def whole_numbers(column: pa.Array | pa.ChunkedArray, file: str, name: str) -> pa.Array:
    """Return int64 with nulls where there is no value; `"12"` and `12.0` are numbers too."""
    array = plain(column)
    kind = array.type
    if pa.types.is_null(kind):
        return array.cast(pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    texts = pc.utf8_trim_whitespace(text(array, file, name))
    none = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["", "nan", "none", "null", "<na>"]))
    good = pc.or_(none, pc.match_substring_regex(texts, r"^[+-]?\d{1,18}(\.0*)?$")).to_numpy(zero_copy_only=False)
    if not good.all():
        row = int(np.argmin(good))
        refuse(file, name, row, "a whole number", texts[row].as_py())
    digits = pc.replace_substring_regex(texts, r"^\+|\.0*$", "")
    return pc.if_else(none, None, digits).cast(pa.int64())


def numbers(column: pa.Array | pa.ChunkedArray, file: str, name: str) -> pa.Array:
    """Return float64 with nulls where there is no value or NaN; infinities are refused."""
    array = plain(column)
    kind = array.type
    if pa.types.is_null(kind):
        return array.cast(pa.float64())
    if _is_text(kind):
        texts = pc.utf8_trim_whitespace(array.cast(pa.string()))
        none = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["", "nan", "none", "null", "<na>"]))
        none = pc.or_(none, pc.is_null(texts))
        shape = pc.match_substring_regex(texts, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$")
        good = pc.or_(none, pc.fill_null(shape, False)).to_numpy(zero_copy_only=False)
        if not good.all():
            row = int(np.argmin(good))
            refuse(file, name, row, "a number", texts[row].as_py())
        array = pc.if_else(none, None, pc.replace_substring_regex(texts, r"^\+", "")).cast(pa.float64())
    try:
        array = array.cast(pa.float64())
    except pa.ArrowException as error:
        raise BadInput(f"{file}: column {name}: expected numbers, found {kind}: {error}", hint=_AGAIN) from error
    values = array.to_numpy(zero_copy_only=False)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        refuse(file, name, row, "a finite number", float(values[row]))
    return pa.array(values, pa.float64(), from_pandas=True)


def string_lists(column: pa.Array | pa.ChunkedArray, file: str, name: str, *, joined: bool = False) -> pa.Array:
    """Return lists of strings, never null, without null or empty members.

    Reads lists of any flavour and type, and lists that a writer turned into text: Python's and JSON's
    (`['a', 'b']`), numpy's (`['a' 'b']`, over several lines), comma-joined (`a,b`). `joined`: members of a
    list may themselves be comma-joined, as in GraphRAG 0.x.
    """
    array = plain(column)
    if pa.types.is_null(array.type):
        return to_lists(np.empty(0, np.int64), pa.array([], pa.string()), len(array))
    if not is_list(array.type):
        array = _split(text(array, file, name), file, name)
    elif not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    rows, values = flatten(array)
    values = text(values, file, name)
    return _without_blank(rows, values, len(array), joined)


def _without_blank(rows: Ints, values: pa.Array, count: int, joined: bool) -> pa.Array:
    if joined and len(values) and pc.any(pc.match_substring(values, ",")).as_py():
        parts = pc.split_pattern(values, ",")
        owner, values = flatten(parts)
        rows, values = rows[owner], pc.utf8_trim_whitespace(values)
    kept = pc.not_equal(values, "")
    return to_lists(rows[kept.to_numpy(zero_copy_only=False)], values.filter(kept), count)


def _split(texts: pa.Array, file: str, name: str) -> pa.Array:
    cut = pc.match_substring_regex(texts, r"['\"\s]\s*\.\.\.\s*['\"\s]").to_numpy(zero_copy_only=False)
    if cut.any():
        row = int(np.argmax(cut))
        refuse(
            file, name, row, "a whole list (this one was shortened by the program that wrote it)", texts[row].as_py()
        )
    texts = pc.utf8_trim_whitespace(texts)
    texts = pc.if_else(pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["nan", "none", "null"])), "", texts)
    quoted = pc.match_substring_regex(texts, _HEAD + r"['\"]")
    bracketed = pc.match_substring_regex(texts, _HEAD)
    inner = pc.replace_substring_regex(pc.replace_substring_regex(texts, _HEAD, ""), _TAIL, "")
    of_quoted = pc.replace_substring_regex(inner, r"['\"]\s*,?\s*['\"]", _UNIT)
    of_quoted = pc.replace_substring_regex(of_quoted, r"^['\"]|['\"]$", "")
    of_bare = pc.replace_substring_regex(inner, r"\s*,\s*|\s+", _UNIT)
    of_joined = pc.replace_substring_regex(texts, r"\s*[,\n]\s*", _UNIT)
    return pc.split_pattern(pc.if_else(quoted, of_quoted, pc.if_else(bracketed, of_bare, of_joined)), _UNIT)


def int_lists(column: pa.Array | pa.ChunkedArray, file: str, name: str) -> pa.Array:
    """Return lists of int64, never null."""
    lists = string_lists(column, file, name)
    rows, values = flatten(lists)
    try:
        return to_lists(rows, whole_numbers(values, file, name), len(lists))
    except BadInput:
        good = pc.match_substring_regex(values, r"^[+-]?\d{1,18}(\.0*)?$").to_numpy(zero_copy_only=False)
        at = int(np.argmin(good))
        refuse(file, name, int(rows[at]), "whole numbers", values[at].as_py())


def findings(column: pa.Array | pa.ChunkedArray, file: str, name: str) -> pa.Array:
    """Return lists of findings: from structs, from texts (a summary each), or from the JSON text of either."""
    array = plain(column)
    kind = pa.list_(FINDING)
    if is_list(array.type) and pa.types.is_struct(array.type.value_type):
        fields = {field.name for field in array.type.value_type}
        if fields == {"explanation", "summary"} and array.null_count == 0:
            return array.cast(kind)
    return pa.array([_findings(value) for value in array.to_pylist()], kind)


def _findings(value: object) -> list[dict[str, str]]:
    if isinstance(value, str):
        value = _loaded(value)
    if isinstance(value, dict):
        value = value.get("findings", [value])
    if not isinstance(value, list):
        return []
    out = []
    for item in value:
        if isinstance(item, dict):
            out.append({key: _plain_text(item.get(key)) for key in ("explanation", "summary")})
        elif item is not None:
            out.append({"explanation": "", "summary": str(item)})
    return out


def _loaded(written: str) -> object:
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        return [written] if written.strip() else []


def _plain_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else _json(value)
