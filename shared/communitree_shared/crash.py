"""Crash points: places where a test ends the process, to see that nothing depends on its going on.

Off unless COMMUNITREE_CRASH_AT is set: `<point>[/<who>][:n][@file]` ends the process (SIGKILL, nothing is cleaned up)
the n-th time it passes the point, on behalf of `who` (a task, `reconciler`, `intake`, `heartbeat`, `caller`). It
happens once: the file remembers it, whichever process was hit. With `@file` alone the file holds what to do, so that
it can be changed while workers run: lines of the form above, one after another; or `?`, then the points that are
passed are noted in `<file>.passed`.
"""

from __future__ import annotations

import contextlib
import os
import signal
from contextvars import ContextVar
from pathlib import Path

#: Calls of the ledger's scripts, writes to the object store, publishing: a point before and one after each.
SCRIPTS = (
    "submit", "begin", "arrive", "open", "stage", "step", "finish", "cancel", "expire", "give_back", "renew", "overdue",
    "settle", "event", "park", "trim",
)  # fmt: skip
WRITES = ("put", "put_new", "put_file", "delete", "delete_all")

#: The other points, by what lies before them.
OTHERS = {
    "take": "a message was taken from the broker, and nothing is known of it yet",
    "work.before": "the lease is held, the work begins",
    "work.after": "the work is done, and nobody was told",
    "publish.before": "the ledger has put messages into the outbox, none is published",
    "publish.after": "they are published, and still stand in the outbox",
    "outbox.after": "they were taken out of the outbox",
    "swap.before": "a version is complete, the old one is still published",
    "swap.after": "the new version is published, its job has not ended",
    "ack.before": "all units of a message have ended or were given back, the broker keeps it",
    "ack.after": "the broker has forgotten it",
    "unpark.published": "a parked message was published, and still stands in its list",
}

POINTS = (*(f"{name}.{when}" for name in (*SCRIPTS, *WRITES) for when in ("before", "after")), *OTHERS)

_AT = os.environ.get("COMMUNITREE_CRASH_AT", "")
#: Whether any point may end this process.
WANTED = bool(_AT)

_who: ContextVar[str] = ContextVar("crash_who", default="caller")
_passed: dict[str, int] = {}


def acting(who: str) -> None:
    """Say on whose behalf this thread, and what it starts, works from here on."""
    _who.set(who)


def point(name: str, who: str = "") -> None:
    """Pass a point; end the process where that was asked for."""
    if _AT:
        _pass(name, who or _who.get())


def _pass(name: str, who: str) -> None:
    what, _, file = _AT.partition("@")
    if what:
        if _meant(what, name, who) and _first(Path(file) if file else None):
            os.kill(os.getpid(), signal.SIGKILL)
        return
    with contextlib.suppress(OSError):
        lines = Path(file).read_text().splitlines()
        if lines[:1] == ["?"]:
            with open(f"{file}.passed", "a", encoding="utf-8") as passed:
                passed.write(f"{name}/{who}\n")
        elif lines and _meant(lines[0], name, who):
            os.rename(file, f"{file}.fired")  # of several processes that pass it, one succeeds
            if lines[1:]:
                Path(f"{file}.rest").write_text("\n".join(lines[1:]))
                os.rename(f"{file}.rest", file)
            os.kill(os.getpid(), signal.SIGKILL)


def _meant(what: str, name: str, who: str) -> bool:
    place, _, n = what.strip().partition(":")
    wanted, _, whose = place.partition("/")
    if wanted != name or whose not in ("", who):
        return False
    _passed[what] = _passed.get(what, 0) + 1
    return _passed[what] == int(n or 1)


def _first(file: Path | None) -> bool:
    if file is None:
        return True
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
