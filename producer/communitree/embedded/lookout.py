"""Is the data still there? Looked at while the stack runs, from a thread of its own.

Workers cannot tell: a bucket that is gone looks to them like one that is refused for a while, and they wait.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from communitree.embedded import weed
from communitree.embedded.servers import Endpoints
from communitree_shared.errors import CommunitreeError, InfrastructureError, OtherBucket
from communitree_shared.settings import Settings

_PAUSE = 3.0

#: Its imports cost a third of a second of CPU, which a stack that has just been started has better use for. What is
#: gone at the start, workers find out.
_FIRST = 10.0

#: So long it must be gone before that is said: a server may have been started again just now.
_GONE = 5.0

#: And so long must the store refuse to read it, though it answers.
_UNREADABLE = 60.0


class Lookout:
    """Compares the name of the bucket that Redis knows with the one in the bucket, every few seconds."""

    def __init__(self, settings: Settings, endpoints: Endpoints) -> None:
        self._settings = endpoints.into(settings)
        self._stopped = threading.Event()
        self._probe = weed.Probe(
            endpoints.s3_endpoint, endpoints.s3_access_key, endpoints.s3_secret_key, settings.s3_bucket
        )
        self._since: dict[str, float] = {}
        self.lost = ""  # why, once it is

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, name="lookout", daemon=True).start()

    def stop(self) -> None:
        """Look no more; one look may still be on its way."""
        self._stopped.set()

    def _run(self) -> None:
        if self._stopped.wait(_FIRST):
            return
        from communitree_shared.objects.store import Store
        from communitree_shared.redis_server.connect import redis_client

        store, client = Store(self._settings, patience=0), redis_client(self._settings)
        while not self._stopped.wait(_PAUSE) and not self.lost:
            self.lost = self.judge(*self._look(store, client), time.monotonic())

    def judge(self, state: str, why: str, now: float) -> str:
        """Take in what was seen (`""`, `gone`, `unreadable`); return why the data is lost, "" while it may not be."""
        self._since = {state: self._since.get(state, now)} if state else {}
        lasts = now - self._since.get(state, now)
        return why if state and lasts >= (_GONE if state == "gone" else _UNREADABLE) else ""

    def _look(self, store: Any, client: Any) -> tuple[str, str]:
        import redis

        from communitree_shared.objects.pairing import check_pair

        try:
            check_pair(self._settings, store, client)
        except OtherBucket as error:
            return "gone", error.message
        except (InfrastructureError, KeyError) as error:
            return self._without_name(client, str(error))
        except (CommunitreeError, redis.RedisError, OSError):
            pass  # away: the supervisor starts it again
        return "", ""

    def _without_name(self, client: Any, why: str) -> tuple[str, str]:
        import redis

        from communitree_shared.faults import S3_FAULTS

        try:
            client.ping()  # or it is Redis that is away
            there = self._probe.has_bucket()
        except (*S3_FAULTS, CommunitreeError, redis.RedisError):
            return "", ""
        bucket = self._settings.s3_bucket
        if not there:
            return "gone", f"The object store has no bucket {bucket!r} any more."
        return "unreadable", f"The object store answers, but what lies in {bucket!r} cannot be read: {why}"
