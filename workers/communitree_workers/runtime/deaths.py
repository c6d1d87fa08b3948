"""Why a worker's process died, as far as its main process can know."""

from __future__ import annotations

import re

_SIGNAL = re.compile(r"signal 9\b|SIGKILL|signal -9\b")


def cause_of_death(exception: object) -> str:
    """Return why a child is gone: nothing but the kernel, out of memory, or a hand sends SIGKILL unasked."""
    if isinstance(exception, MemoryError):
        return "its worker process ran out of memory"
    said = str(exception)
    if _SIGNAL.search(said):
        return "its worker process was killed (probably out of memory): give it more, or fewer COMMUNITREE_CPU_SLOTS"
    return f"its worker process died: {said}"[:300]
