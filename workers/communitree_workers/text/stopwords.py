"""Words that say nothing about what a text is about: `stopwords_en.txt` and `stopwords_zh.txt`.

Written for retrieval and for phrase boundaries; kept short on purpose: frequency and association weigh the rest.
"""

from __future__ import annotations

from pathlib import Path


def _words(name: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(name).read_text("utf-8").split())


ENGLISH = _words("stopwords_en.txt")
CHINESE = _words("stopwords_zh.txt")
