"""Values as people write them: `30s`, `2m`, `5%`."""

from __future__ import annotations

import re

import typer

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$", re.IGNORECASE)


def seconds(text: str) -> float:
    """Return the seconds of `30`, `30s`, `2m` or `1h`.

    Raises:
        BadParameter: it is none of these, or not above zero.
    """
    found = _DURATION.match(str(text))
    if not found or found[2].lower() not in _UNITS or float(found[1]) <= 0:
        raise typer.BadParameter(f"{text!r} is no time: write 30s, 2m or 1h.")
    return float(found[1]) * _UNITS[found[2].lower()]


def age(text: str) -> float:
    """Return the seconds of `12` (hours), `30s`, `2m`, `12h` or `7d`; `0` is now.

    Raises:
        BadParameter: it is none of these.
    """
    found = _DURATION.match(str(text))
    if not found or found[2].lower() not in _UNITS:
        raise typer.BadParameter(f"{text!r} is no time: write 12 (hours), 30s, 2m, 12h or 7d.")
    return float(found[1]) * _UNITS[found[2].lower() or "h"]


def share(text: str) -> float:
    """Return the share (0–1) of `0.05` or `5%`.

    Raises:
        BadParameter: it is neither.
    """
    word = str(text).strip()
    try:
        value = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{text!r} is no share: write 0.05 or 5%.")
    return value
