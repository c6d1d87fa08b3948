"""The words around facts in reports that no model writes, English and Chinese."""

from __future__ import annotations

import math
from collections.abc import Sequence

from communitree_shared.languages import is_chinese

#: A community with this share of the corpus's mass or less gets the lowest rating.
_SMALLEST = 1e-4
_LOWEST, _HIGHEST = 1.0, 10.0


def rating_by_share(share: float) -> float:
    """Return 1–10 on a logarithmic scale of the community's share of the corpus's mass: all is 10, 1 % is 5.5."""
    if share <= _SMALLEST:
        return _LOWEST
    part = 1 - math.log(min(share, 1.0)) / math.log(_SMALLEST)
    return round(_LOWEST + (_HIGHEST - _LOWEST) * part, 1)


def rating_words(share: float, language: str) -> str:
    """Return the sentence that explains such a rating."""
    percent = f"{share * 100:.1f}" if share >= 0.001 else f"{share * 100:.2g}"
    if is_chinese(language):
        return f"按篇幅计，该社区约占整个语料的 {percent}%。"
    return f"By volume of text this community is about {percent} % of the corpus."


def listed(names: Sequence[str], language: str) -> str:
    """Return names as a list in words: `A, B and C`, `甲、乙和丙`."""
    if is_chinese(language):
        return "、".join(names[:-1]) + ("和" if len(names) > 1 else "") + "".join(names[-1:])
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + "".join(names[-1:])
