"""The jobs of a process whose servers are away or refuse: told what they wait for, and ended where waiting is vain.

What waits is a call deep inside a unit (see `shared/…/trouble.py`), which may hold the reply of a paid model call: so
it goes on waiting, and the jobs of all units that run here are told beside it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator

import redis

from communitree_shared.contract.messages import Message
from communitree_shared.errors import InfrastructureError, ServerRefuses
from communitree_shared.ledger import Ledger, Outgoing
from communitree_shared.redis_server import rediskeys as rk

log = logging.getLogger(__name__)

#: Seconds that a note of what a job waits for lives without being renewed; and between two renewals.
NOTE_LIFE, NOTE_EVERY = 60, 10.0


class Waits:
    """Which jobs have units running here, and what they wait for. `ledger` must not wait long itself."""

    def __init__(self, ledger: Ledger, job_ttl: float) -> None:
        self._ledger = ledger
        self._job_ttl = job_ttl
        self._running: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._noted = 0.0

    @contextlib.contextmanager
    def of(self, message: Message) -> Iterator[None]:
        """Count a message's job among those that run here."""
        job = (message.tenant, message.job)
        with self._lock:
            self._running[job] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[job] -= 1
                if not self._running[job]:
                    del self._running[job]

    def tell(self, error: InfrastructureError, lasted: float) -> None:
        """Tell all jobs that run here what they wait for: an event once, a note while it lasts."""
        with self._lock:
            if time.monotonic() - self._noted < NOTE_EVERY and lasted > NOTE_EVERY:
                return
            self._noted = time.monotonic()
            jobs = list(self._running)
        try:
            for tenant, job in jobs:
                self._note(tenant, job, error)
        except (redis.RedisError, OSError, InfrastructureError) as away:
            log.warning("jobs could not be told that they wait: %s", away)

    def _note(self, tenant: str, job: str, error: InfrastructureError) -> None:
        client, key = self._ledger.redis, rk.waits(tenant, job)
        note = json.dumps({"message": error.message, "hint": error.hint}, ensure_ascii=False)
        if client.set(key, note, ex=NOTE_LIFE, nx=True):
            self._ledger.event(tenant, job, "warning", message=f"The job waits. {error.message} {error.hint}".strip())
        else:
            client.set(key, note, ex=NOTE_LIFE)

    def give_up(self, message: Message, error: ServerRefuses) -> list[Outgoing]:
        """End the job of a unit that was refused for as long as a job may wait; `communitree resume` takes it up again.

        Raises:
            InfrastructureError: not even that can be written now.
        """
        body = {**error.as_json(), "hint": f"{error.hint} Then: communitree resume {message.job}".strip()}
        status, outgoing = self._ledger.finish(
            message.tenant, message.job, "failed", {"error": json.dumps(body, ensure_ascii=False)}, self._job_ttl,
            error.message,
        )  # fmt: skip
        if status == "ok":
            log.error("job %s of %s ends: %s %s", message.job, message.tenant, error.message, error.hint)
        return outgoing
