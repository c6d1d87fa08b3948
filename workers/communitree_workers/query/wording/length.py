"""How long a text is, as limits of length count it."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[\u3400-\u9fff\u3040-\u30ff]|[^\W\u3400-\u9fff\u3040-\u30ff]+")


def words(text: str) -> int:
    """Return the words of a text as a length limit counts them: a Chinese character is one."""
    return len(_WORDS.findall(text))
