"""The command line. `main` is the script's entry: exit codes 0 ok, 2 usage, 3 partial, 4 failed, 5 data lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. No traceback reaches the caller for an error that has a reason."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["version"], ["--version"]):  # answered before anything is imported
        from importlib.metadata import version

        sys.stdout.write(f"communitree {version('communitree')}\n")
        return 0
    from communitree.cli.app import run

    return run(words)
