"""The reconciler: publishes again what was lost on the way, and expires what is overdue.

Kombu's Redis transport loses messages when a worker is killed between taking and registering one, so this is a
part of delivery, not an extra. One runs at a time (a lease in Redis); every worker process offers to be it.
A healthy system gives it nothing to do.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from typing import Any

import redis

from communitree_shared import clock, crash
from communitree_shared import rediskeys as rk
from communitree_shared.broker import Publisher
from communitree_shared.errors import InfrastructureError
from communitree_shared.ledger.client import Ledger
from communitree_shared.ledger.ends import write_ends
from communitree_shared.ledger.rebuild import rebuild
from communitree_shared.pairing import check_pair
from communitree_shared.settings import Settings
from communitree_shared.store import Store
from communitree_shared.trouble import Knocks

log = logging.getLogger(__name__)

#: An outbox entry older than this (s), or than a third of a lease, has lost its caller.
OUTBOX_AGE = 2.0

#: A job past its deadline that has not ended is looked at again after so many milliseconds.
LATE = 10_000


class Reconciler:
    """Ticks in a thread of its own until stopped."""

    def __init__(self, settings: Settings, store: Store, ledger: Ledger, publisher: Publisher) -> None:
        self.settings = settings
        self.store = store
        self.ledger = ledger
        self.publisher = publisher
        self._asked_once = Store(settings, patience=0)  # where it is away, the next tick is soon enough
        self.writer: threading.Thread | None = None  # of the ends of jobs
        self._unwritten = Knocks("writing the ends of jobs", log)
        self._server = ""
        self._epoch = 0
        self._kept = 0.0
        self.name = uuid.uuid4().hex
        self.stop = threading.Event()
        self.republished: dict[str, int] = {"outbox": 0, "lease": 0, "lost": 0}

    def run(self) -> None:
        """Tick until `stop` is set. Never raises: what fails is tried again at the next tick."""
        crash.acting("reconciler")
        knocks = Knocks("the reconciler", log)
        while not self.stop.is_set():
            pause = self.settings.reconciler_tick
            try:
                if self.elected():
                    self.tick()
                    self._epoch = int(self.ledger.redis.incr(rk.EPOCH))
                    pause = self.pause()
                knocks.over()
            except (InfrastructureError, redis.RedisError, OSError) as error:
                pause = knocks.met(error, pause)
            except Exception:  # a reconciler that ends is worse than one that errs: say it and go on
                log.exception("reconciler tick failed; it is tried again")
            self.stop.wait(pause)

    def elected(self) -> bool:
        """Take or keep the lease of the one reconciler."""
        client, self._kept = self.ledger.redis, time.monotonic()
        life = int(self.settings.reconciler_tick * 3000)
        if client.set(rk.RECONCILER, self.name, nx=True, px=life):
            return True
        if client.get(rk.RECONCILER) != self.name:
            return False
        client.pexpire(rk.RECONCILER, life)
        return True

    def _still_elected(self) -> None:
        """Keep the lease through a long tick."""
        if time.monotonic() - self._kept > self.settings.reconciler_tick:
            self.elected()

    def tick(self) -> None:
        """Publish again what was lost, expire what is overdue."""
        if self.lost_writes():
            check_pair(self.settings, self.store, self.ledger.redis)
            rebuild(self.settings, self.store, self.ledger, self.publisher, alive=self._still_elected)
            self.remember()
        self.expire()
        # A message that waits in a queue may simply be waiting: only clear signs count as loss (overdue.lua).
        lease = self.settings.lease
        found = self.ledger.overdue(max(OUTBOX_AGE, lease / 3), max(10.0, 2 * lease), lease_s=lease)
        for why, _ in found:
            self.republished[why] += 1
        if found:
            log.info("publishing again: %s", ", ".join(f"{why} {out.member}" for why, out in found[:5]))
            self.publisher.publish([out for _, out in found])
        self._start_writer()

    def _start_writer(self) -> None:
        """Let ends be written by a thread of their own, unless it still runs: a store may hang, a tick must not."""
        if self.writer is not None and self.writer.is_alive():
            return
        if not self.ledger.redis.exists(rk.UNWRITTEN):
            self._unwritten.over()
            return
        self.writer = threading.Thread(target=self._write_ends, name="ends", daemon=True)
        self.writer.start()

    def _write_ends(self) -> None:
        crash.acting("reconciler")
        try:
            write_ends(self._asked_once, self.ledger, self.settings.s3_prefix)
            self._unwritten.over()
        except (InfrastructureError, redis.RedisError, OSError) as error:
            self._unwritten.met(error, self.settings.reconciler_tick)  # a later tick tries again
        except Exception:
            log.exception("the ends of jobs were not written; it is tried again")

    def lost_writes(self) -> bool:
        """Say whether Redis may have lost writes since the last tick: another process answers, or the epoch fell.

        At a reconciler's first tick too: nobody knows what happened before.
        """
        server, epoch = self._seen()
        return server != self._server or epoch < self._epoch

    def remember(self) -> None:
        """Remember which server answers and raise its epoch."""
        self._server, _ = self._seen()
        self._epoch = int(self.ledger.redis.incr(rk.EPOCH))

    def _seen(self) -> tuple[str, int]:
        info: Any = self.ledger.redis.info("server")
        return str(info.get("run_id", "")), int(self.ledger.redis.get(rk.EPOCH) or 0)

    def expire(self) -> None:
        """End the waiting units of jobs whose deadline has passed."""
        client = self.ledger.redis
        clock.sync(client)
        due = client.zrangebyscore(rk.DEADLINES, "-inf", clock.now() * 1000)
        for member in due:
            tenant, job = str(member).split("|")
            record = self.ledger.record(tenant, job)
            final = float(record.get("deadline", 0)) * 1000
            over = final <= clock.now() * 1000
            spared = {"finish"} if over else {"finish", "reduce"}
            for stage in self.ledger.stage_names(tenant, job):
                state = self.ledger.stage_record(tenant, job, stage)
                if state.get("state") == "open" and state.get("kind") not in spared:
                    self.publisher.publish(self.ledger.expire(tenant, job, stage, "deadline"))
            if not over:
                client.zadd(rk.DEADLINES, {str(member): final}, xx=True)
            elif record.get("state") in {"queued", "running"}:  # until it has ended: a stage may have opened just now
                client.zadd(rk.DEADLINES, {str(member): clock.now() * 1000 + LATE}, xx=True)
                if self.ledger.stage_record(tenant, job, "finish").get("state") == "closed":  # given up, job still open
                    reason = "its end could not be written"
                    _, outgoing = self.ledger.finish(tenant, job, "failed", {}, self.settings.job_ttl, reason)
                    self.publisher.publish(outgoing)
            else:
                client.zrem(rk.DEADLINES, str(member))

    def pause(self) -> float:
        """Return the seconds until the next tick: sooner where a deadline is near."""
        tick = self.settings.reconciler_tick
        nearest: Any = self.ledger.redis.zrange(rk.DEADLINES, 0, 0, withscores=True)
        if not nearest:
            return tick
        return float(min(tick, max(0.2, nearest[0][1] / 1000 - clock.now())))


def start(settings: Settings, store: Store, ledger: Ledger, publisher: Publisher) -> Reconciler:
    """Start a reconciler in a daemon thread."""
    reconciler = Reconciler(settings, store, ledger, publisher)
    threading.Thread(target=reconciler.run, name="reconciler", daemon=True).start()
    return reconciler
