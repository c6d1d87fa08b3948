"""Small word lists of the built-in extractor, one file each; lines that start with `#` are comments."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def words(name: str) -> frozenset[str]:
    """Return the words of a list, such as `en_verbs`."""
    lines = Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


@cache
def classes(name: str) -> dict[str, frozenset[str]]:
    """Return the classes of a list whose lines are `class: words`; a class may take several lines."""
    out: dict[str, frozenset[str]] = {}
    for line in Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            label, _, members = line.partition(": ")
            out[label] = out.get(label, frozenset()) | frozenset(members.split())
    return out
