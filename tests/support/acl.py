"""The Redis user that docs/operations.md tells operators to make."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "operations.md"


def documented_user() -> str:
    """Return the line of the documentation, with PASSWORD in it."""
    found = re.search(r"^user communitree .*$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return found[0]


def documented_commands() -> set[str]:
    """Return the commands of the line, in lower case, without subcommands."""
    return {word[1:].split("|")[0] for word in documented_user().split() if word.startswith("+")}
