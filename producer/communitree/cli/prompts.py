"""`--prompt NAME=FILE`: a prompt of the caller's own in place of a built-in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from communitree_shared.errors import UsageError

#: The prompts of each kind of job, by the names of their files (`<name>.<language>.md`).
OF_INDEX = ("extract", "gleaning", "claims", "describe", "report")
OF_QUESTION = ("map", "reduce", "reduce_part", "rate", "rewrite")


def read_prompts(given: Iterable[str], known: Sequence[str]) -> dict[str, str]:
    """Return prompt name → text.

    Raises:
        UsageError: not NAME=FILE, no prompt of these names, or the file cannot be read or is empty.
    """
    prompts = {}
    for pair in given:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise UsageError(
                f"--prompt {pair!r} is not NAME=FILE.", hint=f"For example: --prompt {known[0]}=my-prompt.md"
            )
        if name not in known:
            raise UsageError(f"--prompt {pair!r}: there is no prompt {name!r} here.", hint=f"NAME: {', '.join(known)}.")
        text = read_text(Path(file), f"--prompt {name}")
        if not text.strip():
            raise UsageError(f"--prompt {name}: {file} is empty.", hint="Without --prompt the built-in one is used.")
        prompts[name] = text
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
