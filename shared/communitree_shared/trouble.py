"""A server that is away or refuses: asked ever more seldom by one call of the process at a time, and told of once.

Hundreds of calls of a process meet the same dead server. Left alone, each would knock on its own and each would log.
Here the first failure closes the door for all: one call at a time tries, the others wait, and the first that gets
through opens it again.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable

from communitree_shared.errors import InfrastructureError, ServerRefuses

log = logging.getLogger(__name__)

#: Pauses between two tries of a process, in seconds: doubled each time.
FIRST, LONGEST = 0.05, 5.0

#: A fault that is over within so many seconds is told to nobody; one that lasts is told of again after `REPEAT`.
QUIET, REPEAT = 1.0, 60.0

Listener = Callable[[InfrastructureError, float], None]


class Trouble:
    """What one process knows of the health of one server. `name` begins the sentence that is logged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.listeners: list[Listener] = []
        self._door = threading.Condition()
        self._error: InfrastructureError | None = None
        self._since = self._next = self._told = 0.0
        self._pause = FIRST

    def turn(self, until: float) -> InfrastructureError | None:
        """Wait until this call may ask the server: at once while all is well, else in turn.

        Returns:
            None: ask. Otherwise what is wrong: `until` (monotonic seconds) passed before this call's turn came.
        """
        if self._error is None:
            return None
        with self._door:
            while self._error is not None:
                now = time.monotonic()
                if now >= self._next:
                    self._next = now + self._pause * (0.75 + random.random() / 2)
                    self._pause = min(2 * self._pause, LONGEST)
                    return None
                if now >= until:
                    return self._error
                self._door.wait(min(self._next, until) - now)
        return None

    def met(self, error: InfrastructureError, *, waits: bool = True) -> None:
        """Note that the server did not serve a call. Tells of it where it has lasted and the call waits on."""
        with self._door:
            now = time.monotonic()
            if self._error is None:
                self._since, self._pause, self._told = now, FIRST, 0.0
                self._next = now + FIRST
            fresh = type(error) is not type(self._error)
            self._error = error
            lasted = now - self._since
            due = (lasted >= QUIET or isinstance(error, ServerRefuses)) and (fresh or now - self._told >= REPEAT)
            due = waits and (due or (self._told == 0.0 and lasted >= QUIET))
            if due:
                self._told = now
        if due:
            log.warning("%s %s (waiting; said again each minute)", error.message, error.hint)
        if waits and (lasted >= QUIET or isinstance(error, ServerRefuses)):
            for listener in list(self.listeners):
                listener(error, lasted)

    def over(self) -> None:
        """Note that the server has served a call."""
        if self._error is None:
            return
        with self._door:
            if self._error is None:
                return
            self._error = None
            told, lasted = self._told, time.monotonic() - self._since
            self._door.notify_all()
        if told:
            log.warning("%s answers again, after %.0f s.", self.name, lasted)


class Knocks:
    """A loop that asks a server every so often: its failures are told of once, and it asks more seldom meanwhile."""

    #: Seconds between two tries of a loop, at most; none knocks more seldom than while all is well.
    LONGEST = 3.0

    def __init__(self, who: str, log: logging.Logger) -> None:
        self._who, self._log = who, log
        self._kind = ""
        self._pause = 0.0

    def met(self, error: Exception, pause: float) -> float:
        """Note a failure of a loop that pauses so many seconds otherwise; return how many it shall pause now."""
        kind = type(error).__name__
        if kind != self._kind:
            self._log.warning("%s waits: %s", self._who, error)
            self._kind, self._pause = kind, pause
        else:
            self._pause = max(pause, min(2 * self._pause, self.LONGEST))
        return self._pause

    def over(self) -> None:
        """Note that the server has served the loop."""
        self._kind = ""


_known: dict[tuple[int, str], Trouble] = {}


def trouble_with(name: str) -> Trouble:
    """Return what this process knows of a server (a forked child begins anew)."""
    key = (os.getpid(), name)
    found = _known.get(key)
    return found if found is not None else _known.setdefault(key, Trouble(name))
