"""The reconciler: publishes again what was lost on the way, and expires what is overdue.

Kombu's Redis transport loses messages when a worker is killed between taking and registering one, and keeps for long
what a killed worker had registered, so this is a part of delivery, not an extra. One runs at a time (a lease in Redis);
every worker process offers to be it. A healthy system gives it nothing to do.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import redis

from communitree_shared import clock, crash
from communitree_shared.broker import layout
from communitree_shared.broker.publisher import Publisher
from communitree_shared.errors import InfrastructureError
from communitree_shared.ledger.client import Ledger
from communitree_shared.ledger.ends import write_ends
from communitree_shared.ledger.keeping import trim_all
from communitree_shared.ledger.rebuild import rebuild
from communitree_shared.objects.pairing import check_pair
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from communitree_shared.trouble import Knocks

log = logging.getLogger(__name__)

#: An outbox entry older than this (s), or than a third of a lease, has lost its caller.
OUTBOX_AGE = 2.0

#: The reconciler's own lease, in ticks. By default another one ticks within a unit's lease then; a longer time without
#: ticks would look like an outage, after which workers are given time to speak (overdue.lua).
LIFE = 2

#: So many abandoned messages are put back at one tick.
ABANDONED_AT_ONCE = 500

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
        self.mender: threading.Thread | None = None  # of what Redis has lost
        self._unmended = Knocks("taking up again what Redis has lost", log)
        self._losses, self._mended = 0, 0
        self._server = ""
        self._epoch = 0
        self._heard = time.monotonic()
        self.name = uuid.uuid4().hex
        self.stop = threading.Event()
        self.republished: dict[str, int] = {"outbox": 0, "lease": 0, "lost": 0, "taken": 0}

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
                else:
                    self._heard = time.monotonic()
                knocks.over()
            except (InfrastructureError, redis.RedisError, OSError) as error:
                pause = knocks.met(error, pause)
            except Exception:  # a reconciler that ends is worse than one that errs: say it and go on
                log.exception("reconciler tick failed; it is tried again")
            self.stop.wait(pause)

    def elected(self) -> bool:
        """Take or keep the lease of the one reconciler."""
        client = self.ledger.redis
        life = int(self.settings.reconciler_tick * LIFE * 1000)
        if client.set(rk.RECONCILER, self.name, nx=True, px=life):
            return True
        if client.get(rk.RECONCILER) != self.name:
            return False
        client.pexpire(rk.RECONCILER, life)
        return True

    def tick(self) -> None:
        """Publish again what was lost, expire what is overdue, trim the streams that others read."""
        if self.lost_writes():
            self._losses += 1
            self.remember()
        if self._mended < self._losses:
            self.mender = self._aside(self.mender, self._mend)
        self.expire()
        # A message that waits in a queue may simply be waiting: only clear signs count as loss (overdue.lua).
        lease = self.settings.lease
        found = self.ledger.overdue(
            max(OUTBOX_AGE, lease / 3), max(10.0, 2 * lease), lease_s=lease, outage=self.silence()
        )
        for why, _ in found:
            self.republished[why] += 1
        if found:
            log.info("publishing again: %s", ", ".join(f"{why} {out.member}" for why, out in found[:5]))
            self.publisher.publish([out for _, out in found])
        if tags := self.abandoned():
            self.republished["taken"] += len(tags)
            log.info("restoring %d messages of workers that are silent", len(tags))
            self.publisher.restore(tags)
        if self.ledger.redis.exists(rk.UNWRITTEN):
            self.writer = self._aside(self.writer, self._write_ends)
        else:
            self._unwritten.over()
        self._heard = time.monotonic()
        trim_all(self.ledger, self.settings)

    def silence(self) -> bool:
        """Say whether Redis has not answered us for so long that leases of the living may have run out.

        The script sees only that nobody has ticked, which the death of a reconciler explains, too (`LIFE`).
        """
        settings = self.settings
        return time.monotonic() - self._heard > max(
            settings.lease - settings.lease_renewal, 2 * settings.reconciler_tick
        )

    def abandoned(self) -> list[str]:
        """Return delivery tags of messages that workers took and no longer mark; none for a while after an outage.

        Every worker marks all it holds, begun or not, with each heartbeat: what two have missed lies in dead hands. To
        be wrong costs little: a second copy of what is begun meets the lease, one of what is not may begin first.
        """
        client, age = self.ledger.redis, max(2 * self.settings.lease_renewal, 2 / 3 * self.settings.lease)
        now, patience = clock.now_of(client), float(client.hget(rk.WATERMARK, "#patience") or 0)  # see overdue.lua
        if now * 1000 < patience:
            return []
        return layout.abandoned(client, now - age, ABANDONED_AT_ONCE)

    @staticmethod
    def _aside(thread: threading.Thread | None, work: Callable[[], None]) -> threading.Thread:
        """Let work be done by a thread of its own, unless that still runs: a store may hang, a tick must not."""
        if thread is None or not thread.is_alive():
            thread = threading.Thread(target=work, name=work.__name__.strip("_"), daemon=True)
            thread.start()
        return thread

    def _mend(self) -> None:
        crash.acting("reconciler")
        losses = self._losses  # a loss while it runs begins it anew
        try:
            check_pair(self.settings, self.store, self.ledger.redis)
            rebuild(self.settings, self.store, self.ledger, self.publisher)
            self._mended = losses
            self._unmended.over()
        except (InfrastructureError, redis.RedisError, OSError) as error:
            self._unmended.met(error, self.settings.reconciler_tick)  # a later tick tries again
        except Exception:
            log.exception("what Redis has lost was not taken up again; it is tried again")

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
        """Remember which server answers and raise its epoch: from here on only another loss is one."""
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
