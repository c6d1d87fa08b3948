"""The command line. `main` is its entry. Exit codes: 0 ok, 2 usage, 3 partial, 4 failed, 5 data lost, 130 Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. No traceback reaches the caller for an error that has a reason."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = 0
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        _mute()
    return code


def _mute() -> None:
    """Let what is still written go nowhere: Python flushes at its end, and would tell of the broken pipe then."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(words: list[str]) -> int:
    if words in (["version"], ["--version"]):  # answered before anything is imported
        from importlib.metadata import version

        from communitree.cli.printing import write

        write(f"communitree {version('communitree')}\n")
        return 0
    if _is_probe(words):  # comes every few seconds
        from communitree.cli.check import check

        return check([word for word in words[1:] if word != "--check"])
    from communitree.cli.app import run

    return run(words)


def _is_probe(words: list[str]) -> bool:
    """Whether it is a `worker --check` that needs no settings and no other option: those may be wrong."""
    plain = not any(word.startswith("-") for word in words if word != "--check")
    return words[:1] == ["worker"] and "--check" in words and plain and not os.environ.get("COMMUNITREE_CONFIG")
