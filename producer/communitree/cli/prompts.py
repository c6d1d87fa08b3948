"""`--prompt NAME=FILE`: a prompt of the caller's own in place of a built-in one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from communitree_shared.errors import UsageError


def read_prompts(given: Iterable[str]) -> dict[str, str]:
    """Return prompt name → text.

    Raises:
        UsageError: not NAME=FILE, or the file cannot be read.
    """
    prompts = {}
    for pair in given:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise UsageError(f"--prompt {pair!r} is not NAME=FILE.", hint="For example: --prompt map=my-map-prompt.md")
        prompts[name] = read_text(Path(file), f"--prompt {name}")
    return prompts


def read_text(path: Path, what: str) -> str:
    """Return a text file of the caller's.

    Raises:
        UsageError: it cannot be read, or is no UTF-8 text.
    """
    try:
        return path.expanduser().read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{what}: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: {path} is no UTF-8 text (byte {error.start}).") from error
