"""Sentences in English and Chinese, with counts that fit their words."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any


class _Counting(string.Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        one, counts, many = spec.partition("|")
        return f"{value:,} {one if value == 1 else many}" if counts else str(super().format_field(value, spec))


_COUNTING = _Counting()


def worded(pair: tuple[str, str], chinese: bool, values: Mapping[str, Any]) -> str:
    """Return (English, Chinese) in one of both; `{n:one|many}` in it is the number n with the word that fits it.

    Raises:
        KeyError: a value it needs is missing.
    """
    return _COUNTING.format(pair[chinese], **values)
