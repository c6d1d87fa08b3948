"""Text that others wrote, fit to be printed: what a terminal would obey, or nobody would see, becomes a visible sign.

Titles, names, answers and errors come from documents, models and servers. Printed as they are, control characters and
escape sequences move cursors, rename windows and fill clipboards; bidirectional overrides (Trojan Source,
CVE-2021-42574) and characters without width show another text than the one that is there. Newlines and tabs stay, and
so do the joiners and direction marks that scripts need (U+200C–U+200F).
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

#: Ranges that are never printed as they are: C0 without tab and newline; DEL and C1; soft hyphen; invisible marks;
#: separators that break lines, and bidirectional controls; surrogates, which no encoding has; annotations; tags.
_RANGES = (
    "\x00-\x08\x0b-\x1f", "\x7f-\x9f", "\xad", "\u180e\u200b", "\u2028-\u202e", "\u2060-\u206f", "\ud800-\udfff",
    "\ufeff", "\ufff9-\ufffb", "\U000e0000-\U000e007f",
)  # fmt: skip
_UNFIT = re.compile(f"[{''.join(_RANGES)}]")

#: Above these signs stand the pictures of the control characters: ␀ … ␟, ␡.
_PICTURES, _DEL, _NEWLINE = 0x2400, "␡", "␊"


def visible(text: str) -> str:
    """Return a text with a sign for each character that must not be printed: ␛, ␡, else its number, as `\\u202e`."""
    return _UNFIT.sub(_sign, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return what `visible` does, on one line: nobody forges another."""
    return visible(text).replace("\n", _NEWLINE)


def as_json(value: Any, indent: int | None = None) -> str:
    """Return JSON that is the same when it is read, and fit to be printed: such characters are escaped in it."""
    return _UNFIT.sub(_escape, json.dumps(value, ensure_ascii=False, indent=indent))


class OneLine(logging.Formatter):
    """Log lines fit to be printed: the message on one line, a traceback below it on lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line of a record."""
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and its traceback."""
        return visible(super().format(record))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == 0x7F:
        return _DEL
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape(found: re.Match[str]) -> str:
    utf16 = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{utf16[i : i + 4]}" for i in range(0, len(utf16), 4))
