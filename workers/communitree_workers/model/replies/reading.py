"""Find and read the JSON in a model's reply.

A strict reading comes first; what it refuses goes through `lenient.Reader`. Strings come out exactly as the model wrote
them: no step here rewrites text before it is read.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import Any

import orjson

from communitree_shared.errors import BadInput
from communitree_workers.model.replies import lenient, marks, thinking, tidying
from communitree_workers.model.replies.strings import Looks

#: More places than this where JSON could begin are prose.
_MOST_STARTS = 60

_THINK_END = re.compile("|".join(map(re.escape, thinking.CLOSINGS)), re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?")
_START = re.compile(r"[{\[｛［【]")
#: What an object or list begins with; `[1]` and `{x}` in prose are read too, but lose against anything longer.
_INSIDE_OBJECT = re.compile(r"[{｛]\s*(?:[\"'“”‘’＂＇「『`«}｝/#]|\\+\"|[^\W\d][\w \-]{0,60}\s*[:：])")
_INSIDE_LIST = re.compile(
    r"[\[［【]\s*(?:[\"'“”‘’＂＇「『`«{\[｛［【\]］】\-\d/#]|\\+\"|true|false|null|None|True|False)"
)
_MEMBERS = re.compile(r"\s*[\"“'][^\"”'\n{}\[\]]{1,80}[\"”']\s*[:：]")
_MORE_MEMBERS = re.compile(r"\s*[,，]\s*[\"“'][^\"”'\n{}\[\]]{1,80}[\"”']\s*[:：]")
_ESCAPED_WHOLE = re.compile(r"[{\[]\s*(?:\{\s*)?\\+\"")
#: Strict JSON that says something else than its writer meant: `"\frac"`, `"C:\temp\new"`.
_MEANT_LITERALLY = re.compile(rf"(?<!\\)(?:\\\\)*\\(?:{marks.LATEX.pattern})|(?<![A-Za-z0-9])[A-Za-z]:\\[bfnrt]")
_BETWEEN = re.compile(r"[\s,，;]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """What could be read. `repairs` counts corrections; `cut`: the text ended inside, the last member may be short.

    `slip`: it ended so, and only the last closing bracket is missing, behind a whole member: what small models forget,
    and hardly ever where a limit cuts.
    """

    value: Any
    repairs: int
    cut: bool
    slip: bool = False


def parse_json(text: str, *, ended: bool = False) -> tuple[Any, int]:
    """Return the object or list in a reply, and how many places were put right.

    `ended`: the model stopped by itself, so that a number at the very end is whole (`{"rating": 8`).

    Raises:
        BadInput: there is neither an object nor a list in it.
    """
    reading = read(text, ended=ended)
    return reading.value, reading.repairs


def read(text: str, *, ended: bool = False) -> Reading:
    """As `parse_json`, and say whether the reply was cut off."""
    stripped = text.lstrip("\ufeff").strip()
    strict: Any = None
    with contextlib.suppress(orjson.JSONDecodeError):
        strict = orjson.loads(stripped)
    if isinstance(strict, str):  # JSON inside a JSON string
        inner = read(strict, ended=ended)
        return replace(inner, repairs=inner.repairs + 1)
    inside = tidying.answer_in(strict)
    if inside is not None:  # `{"answer": "{…}"}`
        with contextlib.suppress(orjson.JSONDecodeError):
            value = orjson.loads(inside)
            if isinstance(value, dict) and value:
                return Reading(value, 1, False)
    if isinstance(strict, (dict, list)) and ("\\" not in stripped or not _MEANT_LITERALLY.search(stripped)):
        return Reading(strict, 0, False)
    surrogates = len(_LONE_SURROGATE.findall(stripped))
    if surrogates:
        stripped = _LONE_SURROGATE.sub("\ufffd", stripped)
    found = None
    looks = Looks()
    for part in _parts(stripped):
        found = _search(part, ended, looks)
        if found is not None:
            break
    if found is None:
        start = " ".join(stripped[:120].split())
        raise BadInput(
            f"The model's reply holds no JSON: {start!r}." if start else "The model's reply is empty.",
            hint="The prompt states the shape; a larger model, or another one, may keep to it.",
        )
    if found.value == strict:
        return Reading(strict, 0, False)
    return replace(found, repairs=found.repairs + surrogates)


def _parts(text: str) -> list[str]:
    """Where to look, best first: inside fences, everywhere. A draft inside the model's thinking is no reply."""
    parts: list[str] = []
    body = _after_thinking(text)
    opening = _FENCE.search(body)
    if opening is not None and not _within_json(body, opening):
        inside = body[opening.end() :]
        if _START.match(inside.lstrip()) or _MEMBERS.match(inside):
            parts.append(inside)
    parts.append(body)
    return parts


def _after_thinking(text: str) -> str:
    """The text after a block of thinking, whose opening mark some servers leave out."""
    said = thinking.spoken(text, json=True).text
    end = _THINK_END.search(said)
    if end is None or end.end() >= len(said) or _within_json(said, end):
        return said
    return said[end.end() :]


def _within_json(text: str, mark: re.Match[str]) -> bool:
    """Whether a tag or fence stands inside JSON that begins before it: then it is text like any other."""
    first = _START.search(text, 0, mark.start())
    looks = Looks(2_000)
    for _ in range(_MOST_STARTS):
        if first is None:
            return False
        stop, reading = _read_at(text, first.start(), True, looks)
        if reading is not None and stop >= mark.end():
            return True
        first = _START.search(text, max(stop, first.end()), mark.start())
    return False


def _search(text: str, ended: bool, looks: Looks) -> Reading | None:
    """Read at every place where JSON could begin; the longest reading wins, neighbours make a list."""
    found: list[tuple[int, int, Reading]] = []
    at = starts = 0
    while starts < _MOST_STARTS:
        match = _START.search(text, at)
        if match is None:
            break
        starts += 1
        begin = match.start()
        pattern = _INSIDE_OBJECT if match.group() in "{｛" else _INSIDE_LIST
        if not pattern.match(text, begin):
            at = begin + 1
            continue
        end, reading = _read_at(text, begin, ended, looks)
        if reading is None:
            at = begin + 1
            continue
        found.append((begin, end, reading))
        at = max(end, begin + 1)
    members = _MEMBERS.match(text)
    if members is not None and (not found or found[0][0] > members.end() - 1):
        reader = lenient.Reader(text, 0, ended=ended, looks=looks)
        try:
            return _reading(reader.members({}), reader)
        except lenient.TooDeep:
            return None
    return _choose(text, found)


def _read_at(text: str, begin: int, ended: bool, looks: Looks) -> tuple[int, Reading | None]:
    if _ESCAPED_WHOLE.match(text, begin):
        unescaped = (
            text[begin:].replace('\\\\"', "\x00").replace('\\"', '"').replace("\x00", '\\"').replace("\\n", "\n")
        )
        _, reading = _read_at(unescaped, 0, ended, looks)
        return len(text), None if reading is None else replace(reading, repairs=reading.repairs + 1)
    reader = lenient.Reader(text, begin, ended=ended, looks=looks)
    try:
        value = reader.container()
        while isinstance(value, dict) and _MORE_MEMBERS.match(text, reader.at):
            reader.members(value)  # closed too early: the members go on after the brace
    except lenient.TooDeep:
        return begin + 1, None
    return reader.at, _reading(value, reader)


def _reading(value: Any, reader: lenient.Reader) -> Reading:
    return Reading(value, reader.repairs, reader.cut, reader.cut and reader.unclosed == 1 and not reader.broken)


def _choose(text: str, found: list[tuple[int, int, Reading]]) -> Reading | None:
    if not found:
        return None
    runs: list[list[tuple[int, int, Reading]]] = []
    for item in found:
        follows = runs and _BETWEEN.fullmatch(text, runs[-1][-1][1], item[0])
        if follows and isinstance(item[2].value, dict) and isinstance(runs[-1][-1][2].value, dict):
            runs[-1].append(item)
        else:
            runs.append([item])
    best = max(runs, key=lambda run: (_substance(run), run[-1][1] - run[0][0]))
    outside = 1 if len(found) > len(best) or _BETWEEN.fullmatch(text, 0, best[0][0]) is None else 0
    outside += _BETWEEN.fullmatch(text, best[-1][1]) is None
    readings = [reading for _, _, reading in best]
    repairs = sum(reading.repairs for reading in readings) + outside
    if len(readings) == 1:
        return replace(readings[0], repairs=repairs or 1)
    values: list[Any] = []
    for reading in readings:
        if reading.value not in values:
            values.append(reading.value)
    value = values if len(values) > 1 else values[0]
    return replace(readings[-1], value=value, repairs=repairs + 1)


def _substance(run: list[tuple[int, int, Reading]]) -> int:
    """Objects and lists of objects before lists of plain values before empty ones."""
    return max(
        (2 if isinstance(value, dict) or any(isinstance(item, dict) for item in value) else 1) if value else 0
        for value in (reading.value for _, _, reading in run)
    )
