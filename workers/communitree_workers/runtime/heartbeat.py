"""The heartbeat of a worker's main process: what it holds stays its own while the heart beats.

Messages that were taken are marked, begun or not; leases of units that run are renewed. What nobody marks or renews is
given to others (`reconciler.py`, `overdue.lua`).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import redis

from communitree_shared import clock, crash
from communitree_shared.broker import layout
from communitree_shared.errors import InfrastructureError
from communitree_shared.ledger import Ledger
from communitree_shared.settings import Settings

log = logging.getLogger(__name__)

#: A request that runs longer than its deadline and this is no longer kept alive: it hangs.
HUNG_AFTER = 120.0

#: And so is one that runs longer than this, deadline or not.
LONGEST = 2 * 3600.0

#: After a first beat, so long a silence (seconds) means that the main process hangs: no Redis holds a beat so long.
DEAD_AFTER = 300.0


def deadline_of(args: Any) -> float:
    """Return when the units of a task's arguments count as failed (unix seconds); infinite where never."""
    try:
        return float(args[0].get("deadline") or math.inf)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        return math.inf


def members_of(args: Any) -> list[str]:
    """Return the ledger's names of a task's units: `tenant|job|stage|unit`."""
    try:
        body = args[0]
        return [f"{body['tenant']}|{body['job']}|{body['stage']}|{unit['id']}" for unit in body["units"]]
    except (IndexError, KeyError, TypeError):
        return []


class Heartbeat:
    """Beats in the worker's own loop, so that a busy pool cannot delay it, and in a thread where that does not run.

    Args:
        ledger: that of the main process, which waits for nothing.
        held: returns the delivery tags of messages that were taken and are not acknowledged.
        running: returns the arguments of the tasks that run, by any name that stays.
        lost: told at each beat which units run here and are no longer ours (ledger members; none, mostly).
    """

    def __init__(
        self, settings: Settings, ledger: Ledger, *, held: Callable[[], list[str]],
        running: Callable[[], dict[str, Any]], lost: Callable[[list[str]], None],
    ) -> None:  # fmt: skip
        self.settings, self.ledger, self.held, self.running, self.lost = settings, ledger, held, running, lost
        self._period = min(settings.lease_renewal, settings.visibility_timeout / 4)
        self._timer: Any = None
        self._in_loop = threading.Event()
        self._started: dict[str, float] = {}
        self._beaten = math.inf

    @property
    def sound(self) -> bool:
        """Whether it beats, or has not begun to."""
        return time.monotonic() - self._beaten < DEAD_AFTER

    def inside(self, timer: Any) -> None:
        """Beat now, and from here on by the loop's timer."""
        self._in_loop.set()
        self.beat()
        self._timer = timer.call_repeatedly(self._period, self.beat, priority=10)

    def outside(self) -> None:
        """The loop ends: the worker was told to stop, or has lost Redis. What still runs is ours until it has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._in_loop = threading.Event()
            threading.Thread(target=self._beat_alone, args=(self._in_loop,), name="heartbeat", daemon=True).start()

    def _beat_alone(self, in_loop: threading.Event) -> None:
        while not in_loop.is_set():
            self.beat()
            in_loop.wait(self._period)

    def beat(self) -> None:
        """Mark what was taken from the broker, begun or not, and renew the leases of what runs."""
        self._beaten = time.monotonic()
        clock.sync(self.ledger.redis)
        crash.acting("heartbeat")
        try:
            tags = self.held()
            members = [m for args in self._alive() for m in members_of(args)]
        except RuntimeError:  # a set changed while it was read, by a thread of the pool or of the loop
            return  # the next beat is soon
        try:
            if tags:
                now: Any = self.ledger.redis.time()
                layout.mark(self.ledger.redis, tags, now[0] + now[1] / 1e6)
            self.lost(self.ledger.renew(members, self.settings.lease) if members else [])
        except (redis.RedisError, OSError, InfrastructureError) as error:
            log.warning("a heartbeat was missed: %s", error)

    def _alive(self) -> list[Any]:
        """Return what runs and does not hang: a unit far beyond its deadline, or any reason, is left to others."""
        now, running = clock.now(), self.running()
        self._started = {i: self._started.get(i, now) for i in running}
        return [
            args for i, args in running.items() if now < min(self._started[i] + LONGEST, deadline_of(args) + HUNG_AFTER)
        ]
