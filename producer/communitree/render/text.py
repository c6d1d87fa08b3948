"""Styled text whose characters are fit to be printed: rich would drop some, and take others to have no width."""

from __future__ import annotations

from typing import Any

from rich import text as rich_text

from communitree_shared.visible import visible


class Text(rich_text.Text):
    """As rich's; what a terminal would obey is shown."""

    def __init__(self, text: str = "", style: Any = "", **more: Any) -> None:
        super().__init__(visible(text), style, **more)

    @classmethod
    def assemble(cls, *parts: Any, **more: Any) -> Text:
        """Return one text of several: strings, (string, style), texts."""
        whole = cls("", **more)
        for part in parts:
            if not isinstance(part, rich_text.Text):
                part = cls(part) if isinstance(part, str) else cls(*part)
            whole.append_text(part)
        return whole

    def __add__(self, other: Any) -> Text:
        return Text.assemble(self, other)
