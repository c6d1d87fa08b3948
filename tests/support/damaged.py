"""Replies as models damage them: structure only, so that every string must come back as it was."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

_CHARS = [
    *"abc xyz 曹操 诸葛亮 ,.;: ，。；：！？ （） 「」 “” ‘’ ' / \\ \" \n \t {} [] # $ %",
    *"& * - + = _ ^ ~ ` 1 2 0 é ß 😀 <>",
    "C:\\temp\\new", "\\frac{1}{2}", "\\alpha", "http://a.b/c", "8/10", "true", "null", "it's", '"quoted"', "“引用”",
    "[Data: Reports (1, 2)]", "...", "//", "/*", "*/", "<think>", "</think>", "```", ", ", ": ", "# ", '", "', '": "',
    "},{", "\\n", "\\\"", "\\u0041", "\u2028", "\u00a0", "\u3000",
]  # fmt: skip
_KEYS = [
    "title",
    "summary",
    "points",
    "description",
    "score",
    "标题",
    "说明",
    "rating_explanation",
    "data id",
    "x-1",
    "a",
]


def text(rng: random.Random, most: int = 14) -> str:
    """Return a text full of what could be mistaken for JSON."""
    return "".join(rng.choice(_CHARS) for _ in range(rng.randrange(most)))


def document(rng: random.Random, depth: int = 3) -> Any:
    """Return an object or a list such as replies hold."""
    if rng.random() < 0.6 or depth == 3:
        return {key: _value(rng, depth - 1) for key in rng.sample(_KEYS, rng.randrange(1, 5))}
    return [_value(rng, depth - 1) for _ in range(rng.randrange(1, 4))]


def _value(rng: random.Random, depth: int) -> Any:
    roll = rng.random()
    if roll < 0.35 and depth > 0:
        return document(rng, depth)
    if roll < 0.75:
        return text(rng)
    return rng.choice([rng.randrange(-5, 1000), rng.random() * 100, True, False, None])


#: A JSON string, or anything between strings.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[^"]+')


def outside(raw: str, change: Callable[[str], str]) -> str:
    """Change what stands outside strings only."""
    return "".join(part if part.startswith('"') else change(part) for part in _TOKEN.findall(raw))


def _keys(raw: str, change: Callable[[str], str]) -> str:
    return re.sub(r'"((?:\\.|[^"\\])*)"(?=: )', lambda m: change(m.group(1)), raw)


def _bare_keys(raw: str, rng: random.Random) -> str:
    parts = _TOKEN.findall(raw)
    for i, part in enumerate(parts[:-1]):
        if re.fullmatch(r'"\w+"', part) and parts[i + 1].startswith(":") and not part[1].isdigit():
            parts[i] = part[1:-1]
    return "".join(parts)


def _chinese_quotes(raw: str, rng: random.Random) -> str:
    """Chinese quotes around strings that hold no quotes of their own."""
    return "".join(
        f"“{part[1:-1]}”" if part.startswith('"') and not re.search("[“”\"'\\\\]", part[1:-1]) else part
        for part in _TOKEN.findall(raw)
    )


def _single_quotes(raw: str, rng: random.Random) -> str:
    return "".join(
        f"'{part[1:-1]}'" if part.startswith('"') and not re.search("[“”‘’\"'\\\\]", part[1:-1]) else part
        for part in _TOKEN.findall(raw)
    )


def _raw_newlines(raw: str, rng: random.Random) -> str:
    return "".join(
        re.sub(r"(?<!\\)((?:\\\\)*)\\n", "\\1\n", part) if part.startswith('"') else part
        for part in _TOKEN.findall(raw)
    )


DAMAGES: dict[str, Callable[[str, random.Random], str]] = {
    "none": lambda raw, rng: raw,
    "fence": lambda raw, rng: f"```json\n{raw}\n```",
    "open fence": lambda raw, rng: f"```\n{raw}",
    "think": lambda raw, rng: f'<think>Should I say {{"a": 1}}? No: [1, 2].</think>\n\n{raw}',
    "orphan think end": lambda raw, rng: f"I must answer {{well}}.\n</think>\n{raw}",
    "prose": lambda raw, rng: (
        f"Sure, here is the JSON you asked for [see below]:\n\n{raw}\n\nI hope this helps (a lot)."
    ),
    "chinese prose": lambda raw, rng: f"好的，结果如下：\n{raw}\n如有需要请告诉我。",
    "trailing commas": lambda raw, rng: outside(raw, lambda part: re.sub(r"(?<=\S)([}\]])", r",\1", part)),
    "doubled commas": lambda raw, rng: outside(raw, lambda part: part.replace(", ", ",, ")),
    "no commas": lambda raw, rng: outside(raw, lambda part: re.sub(r"(?<![\d\w]), ", "\n", part)),
    "full-width": lambda raw, rng: outside(raw, lambda part: part.replace(",", "，").replace(":", "：")),
    "full-width brackets": lambda raw, rng: outside(
        raw, lambda part: part.translate(str.maketrans("{}[]", "｛｝［］"))
    ),
    "no spaces": lambda raw, rng: outside(raw, lambda part: part.replace(" ", "")),
    "indented": lambda raw, rng: outside(raw, lambda part: part.replace(", ", ",\n    ").replace("{", "{\n  ")),
    "python": lambda raw, rng: outside(
        raw, lambda part: part.replace("true", "True").replace("false", "False").replace("null", "None")
    ),
    "line comments": lambda raw, rng: outside(raw, lambda part: part.replace(", ", ", // and so on\n")),
    "block comments": lambda raw, rng: outside(raw, lambda part: part.replace(", ", ", /* and so on */ ")),
    "unclosed": lambda raw, rng: raw.rstrip("}]") if raw.rstrip("}]").endswith('"') else raw,
    "closed too often": lambda raw, rng: raw + "}]"[: rng.randrange(1, 3)],
    "bare keys": _bare_keys,
    "chinese quotes": _chinese_quotes,
    "single quotes": _single_quotes,
    "raw newlines": _raw_newlines,
    "bom": lambda raw, rng: "\ufeff" + raw,
}


def damaged(rng: random.Random, *names: str) -> tuple[Any, str]:
    """Return a document and a damaged form of it, all damages applied in turn."""
    value = document(rng)
    raw = json.dumps(value, ensure_ascii=rng.random() < 0.2)
    for name in names:
        raw = DAMAGES[name](raw, rng)
    return value, raw


def prefix_of(got: Any, whole: Any) -> bool:
    """Whether a reading of a cut-off document holds nothing that the document does not: texts may be shorter only."""
    if isinstance(whole, str):
        return isinstance(got, str) and whole.startswith(got)
    if isinstance(whole, dict):
        return isinstance(got, dict) and all(key in whole and prefix_of(got[key], whole[key]) for key in got)
    if isinstance(whole, list):
        return isinstance(got, list) and len(got) <= len(whole) and all(map(prefix_of, got, whole))
    return bool(got == whole)
