"""`communitree worker --check`: does the worker of this host or container live? Asks no server and imports little."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from communitree.cli.printing import write
from communitree_shared.alive import data_home, look, verdict


def check(names: Sequence[str]) -> int:
    """Print whether workers live that serve these queues, or any; return 0 if so, else 1."""
    lives, line = verdict(look(_home()), names)
    write(line + "\n", stderr=not lives)
    return 0 if lives else 1


def _home() -> Path:
    if os.environ.get("COMMUNITREE_CONFIG"):  # that file may name it
        from communitree_shared.settings import Settings

        return Settings().home
    return Path(os.environ.get("COMMUNITREE_HOME", "").strip() or data_home())
