"""Simplified and traditional forms of a character: `variants_zh.txt`, each simplified one before its traditional ones.

The pairs are OpenCC's (TSCharacters, Apache-2.0) where both forms stand in the common sets, GB 2312 and Big5.
"""

from __future__ import annotations

from pathlib import Path

_GROUPS = Path(__file__).with_name("variants_zh.txt").read_text("utf-8").split()

#: Simplified character → its traditional forms.
TRADITIONAL: dict[str, str] = {group[0]: group[1:] for group in _GROUPS}
_SIMPLIFIED = str.maketrans({form: group[0] for group in _GROUPS for form in group[1:]})


def simplified(text: str) -> str:
    """Return a text of the same length in simplified characters."""
    return text if text.isascii() else text.translate(_SIMPLIFIED)
