"""Scores as models write them, read tolerantly: the one place where any is read."""

from __future__ import annotations

import math
import re
from typing import Any

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
#: Scores in words, as shares of the scale. What may mean this or that is not here.
_WORDS = {
    "very high": 0.9, "high": 0.75, "medium": 0.5, "moderate": 0.5, "low": 0.25, "very low": 0.1, "none": 0.0,
    "很高": 0.9, "非常高": 0.9, "高": 0.75, "较高": 0.7, "中": 0.5, "中等": 0.5, "一般": 0.5, "较低": 0.3, "低": 0.25,
    "很低": 0.1, "非常低": 0.1, "无": 0.0,
}  # fmt: skip
_FRACTION = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*(/|out of|of|分之)\s*(\d+(?:\.\d+)?)\s*", re.I)


def read_score(value: Any, highest: float = 100) -> tuple[float | None, bool]:
    """Return a score as a number and whether it had to be mended; None: it cannot be read.

    `highest`: the scale's end, to which a fraction is brought (`4/5`, `4 out of 5`, `5分之4`). A plain number is
    returned as it is, neither scaled nor clamped.
    """
    if isinstance(value, bool) or value is None:
        return None, True
    if isinstance(value, int | float):
        return (float(value), False) if math.isfinite(value) else (None, True)
    if isinstance(value, list) and len(value) == 1:
        return read_score(value[0], highest)[0], True
    if not isinstance(value, str):
        return None, True
    text = value.strip().translate(str.maketrans("０１２３４５６７８９．／％", "0123456789./%"))
    fraction = _FRACTION.fullmatch(text.rstrip("分 "))
    if fraction:
        part, whole = float(fraction[1]), float(fraction[3])
        if fraction[2] == "分之":  # Chinese names the whole first
            part, whole = whole, part
        return (part / whole * highest if whole else None), True
    share = _WORDS.get(" ".join(text.lower().replace("-", " ").replace("_", " ").split()).strip(" .。!！"))
    if share is not None:
        return share * highest, True
    found = _NUMBER.findall(text)
    return (float(found[0]), True) if len(found) == 1 else (None, True)
