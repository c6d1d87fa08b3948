"""Celery, as far as workers know it: the worker process, its heartbeat, and the tasks that hand messages over.

Two kinds of workers: `models` waits for endpoints (threads, one event loop), `cpu` computes (prefork children).
Leases and messages are kept alive by the main process from what its pool runs, never by the computing child:
one call into igraph may hold the interpreter's lock for many seconds.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import threading
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

import redis
from celery import Celery, bootsteps, signals
from celery.worker import state as worker_state
from celery.worker.consumer import Consumer

from communitree_shared import clock
from communitree_shared import rediskeys as rk
from communitree_shared.broker import Publisher, make_app
from communitree_shared.connect import check_server, redis_client, where_of
from communitree_shared.errors import BadInput, InfrastructureError, NewerMessage, UsageError
from communitree_shared.ledger import Ledger, Outgoing, reconciler
from communitree_shared.messages import CPU_QUEUES, MODEL_QUEUES, QUEUE_PREFIX, TASKS, parse_message
from communitree_shared.settings import Settings
from communitree_shared.store import Store
from communitree_workers.runtime.intake import Intake
from communitree_workers.runtime.runner import Handler, Runner
from communitree_workers.runtime.services import Services

log = logging.getLogger(__name__)

#: A request that runs longer than its deadline and this is no longer kept alive: it hangs.
HUNG_AFTER = 120.0

#: And so is one that runs longer than this, deadline or not.
LONGEST = 2 * 3600.0

#: A message carries ids and keys: one larger than this is none of ours.
LARGEST_BODY = 2**20

#: So much of a foreign message is kept with the reason why it was set aside.
KEPT_BYTES = 4096

NEWER = "its task is newer than this worker"

KINDS = {"models": MODEL_QUEUES, "cpu": CPU_QUEUES}


def queues_of(names: list[str]) -> tuple[str, list[str]]:
    """Return the kind of worker and its queues; a kind's name stands for all of its queues.

    Raises:
        UsageError: an unknown queue, or queues of both kinds.
    """
    wanted = [q for name in names for q in KINDS.get(name, (name,))]
    unknown = sorted(set(wanted) - set(MODEL_QUEUES) - set(CPU_QUEUES))
    if unknown:
        known = ", ".join((*KINDS, *MODEL_QUEUES, *CPU_QUEUES))
        raise UsageError(f"There is no queue {unknown[0]!r}.", hint=f"Queues: {known}.")
    kinds = {"models" if q in MODEL_QUEUES else "cpu" for q in wanted}
    if len(kinds) != 1:
        raise UsageError(
            "One worker serves either model queues or CPU queues.",
            hint=f"Start two: one for {', '.join(MODEL_QUEUES)}; one for the others.",
        )
    return kinds.pop(), wanted


class Worker:
    """One worker process and its pool."""

    def __init__(self, settings: Settings, names: list[str], handlers: Mapping[str, Handler]) -> None:
        self.settings = settings
        self.kind, self.queues = queues_of(names)
        self.token = uuid.uuid4().hex
        self.handlers = handlers
        self._runner: Runner | None = None
        self._runner_lock = threading.Lock()

    def runner(self) -> Runner:
        """Return this process's runner; a forked child makes its own connections."""
        with self._runner_lock:
            if self._runner is None or self._runner.services.pid != os.getpid():
                services = Services(self.settings, threaded=self.kind == "models", token=self.token)
                self._runner = Runner(services, self.handlers)
            return self._runner

    def run(self) -> None:
        """Serve until told to stop (SIGTERM: what runs is finished first).

        Raises:
            InfrastructureError: a server is misconfigured; said once, before any message is taken.
        """
        client = redis_client(self.settings)
        Ledger(client, patience=60).wait()
        check_server(client, where_of(client))
        clock.sync(client)
        Store(self.settings, patience=60).ensure_bucket()
        app = self._app()
        # Used from the worker's own loop, which must not be held up: it never waits for a Redis that is away.
        ledger = Ledger(client, patience=0)
        ledger.token = self.token
        main = Main(self, ledger)
        main.install(app)
        slots = self.settings.model_slots if self.kind == "models" else self.settings.cpu_slots
        pool = "threads" if self.kind == "models" else "prefork"
        worker = app.Worker(
            pool=pool,
            concurrency=slots,
            queues=",".join(QUEUE_PREFIX + q for q in self.queues),
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            hostname=f"{self.kind}-{self.token[:8]}@%h",
            loglevel=self.settings.log_level,
            quiet=True,
        )
        log.info(
            "serving %s with %d %s", ", ".join(self.queues), slots, "threads" if pool == "threads" else "processes"
        )
        worker.start()

    def _app(self) -> Celery:
        app = make_app(self.settings)

        def hand_over(body: Any) -> None:
            self.runner().run(body)

        for name in TASKS:
            app.task(hand_over, name=name, ignore_result=True, bind=False)
        return app


class Main:
    """What the main process does beside Celery: keep leases and messages alive, offer to be the reconciler."""

    def __init__(self, worker: Worker, ledger: Ledger) -> None:
        self.worker = worker
        self.settings = worker.settings
        self.ledger = ledger
        self._started: dict[str, float] = {}

    def install(self, app: Celery) -> None:
        """Hook into the app's worker."""
        main = self

        class Heartbeat(bootsteps.StartStopStep):  # type: ignore[misc]
            """Beats from the worker's own loop, so that a busy pool cannot delay it."""

            requires: ClassVar[set[str]] = {"celery.worker.consumer.tasks:Tasks"}

            def start(self, parent: Any) -> None:
                main.beat(parent)
                period = min(main.settings.lease_renewal, main.settings.visibility_timeout / 4)
                self.timer = parent.timer.call_repeatedly(period, main.beat, (parent,), priority=10)

            def stop(self, parent: Any) -> None:
                timer = getattr(self, "timer", None)
                if timer is not None:
                    timer.cancel()
                    self.timer = None

        class Guarded(Consumer):  # type: ignore[misc]
            """Keeps aside what no publisher of ours made: Celery itself would loop on some of it for ever."""

            def create_task_handler(self, *args: Any, **options: Any) -> Any:
                handle = super().create_task_handler(*args, **options)

                def guarded(message: Any) -> None:
                    fault = fault_of(message)
                    if fault:
                        main.keep_aside(message, fault)
                        return
                    try:
                        handle(message)
                    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                        main.keep_aside(message, f"{type(error).__name__}: {error}")

                return guarded

        app.conf.worker_consumer = Guarded
        app.steps["consumer"].add(Heartbeat)
        signals.task_failure.connect(self.on_lost, weak=False)
        signals.worker_ready.connect(self.on_ready, weak=False)

    def on_ready(self, **_: Any) -> None:
        """Start what runs in threads of the main process."""
        own = Ledger(redis_client(self.settings), patience=5)
        own.token = self.worker.token
        store, publisher = Store(self.settings, patience=30), Publisher(self.settings, own)
        reconciler.start(self.settings, store, own, publisher)
        door = Intake(self.settings, store, own, publisher)
        threading.Thread(target=door.run, name="intake", daemon=True).start()
        if self.worker.kind == "models":
            threading.Thread(target=self.listen, name="cancel", daemon=True).start()
        try:
            self.unpark()
        except Exception:  # what is parked can wait for the next start; this worker cannot do without its threads
            log.exception("parked messages were not put back")

    def beat(self, parent: Any) -> None:
        """Keep the leases of what runs, and the broker's record of what was taken."""
        clock.sync(self.ledger.redis)
        tags = [request.message.delivery_tag for request in list(worker_state.reserved_requests)]
        members = [m for request in self._alive() for m in _members(request)]
        try:
            if tags:
                now = self.ledger.redis.time()
                stamp = now[0] + now[1] / 1e6
                self.ledger.redis.zadd("unacked_index", dict.fromkeys(tags, stamp), xx=True)
            lost = self.ledger.renew(members, self.settings.lease) if members else []
        except (redis.RedisError, OSError, InfrastructureError) as error:
            log.warning("a heartbeat was missed: %s", error)
            return
        if lost and self.worker.kind == "models":
            self.worker.runner().cancel(lost)

    def _alive(self) -> list[Any]:
        """What runs and does not hang: a unit far beyond its deadline, or any reason, is left to other workers."""
        now, running = clock.now(), {r.id: r for r in list(worker_state.active_requests)}
        self._started = {i: self._started.get(i, now) for i in running}
        return [r for i, r in running.items() if now < min(self._started[i] + LONGEST, _deadline(r) + HUNG_AFTER)]

    def keep_aside(self, message: Any, why: str) -> None:
        """Take a foreign or newer message off its queue: parked for a newer worker, or kept as a dead letter."""
        task = str((message.headers or {}).get("task", ""))
        body = message.body if isinstance(message.body, str) else bytes(message.body or b"").decode(errors="replace")
        queue = str((message.delivery_info or {}).get("routing_key", ""))
        try:
            if why == NEWER:
                log.warning("parked for a newer worker: %s", task)
                self.ledger.redis.lpush(rk.parked(queue), json.dumps({"task": task, "raw": body}))
            else:
                log.error("a message of %s was set aside: %s", queue or "an unknown queue", why)
                letter = {"queue": queue, "task": task[:200], "why": why[:500], "body": body[:KEPT_BYTES]}
                self.ledger.redis.xadd(rk.dead_letters(rk.FOREIGN), dict[Any, Any](letter), maxlen=1000)
        except (redis.RedisError, OSError) as error:
            log.warning("it could not be kept: %s", error)
        message.ack_log_error(log, (redis.RedisError, OSError))

    def unpark(self) -> None:
        """Put back what waited for a worker that knows it."""
        publisher = Publisher(self.settings, Ledger(redis_client(self.settings), patience=30))
        for name in self.worker.queues:
            queue = QUEUE_PREFIX + name
            for _ in range(publisher.ledger.redis.llen(rk.parked(queue))):
                entry = publisher.ledger.redis.rpop(rk.parked(queue))
                if entry is None:
                    break
                found = json.loads(str(entry))
                body = (
                    json.dumps(json.loads(found["raw"])[0][0]) if "raw" in found else json.dumps(found, sort_keys=True)
                )
                try:
                    parse_message(json.loads(body))
                except NewerMessage:
                    publisher.ledger.redis.lpush(rk.parked(queue), str(entry))
                except BadInput:
                    log.error("a parked message of %s is no message of ours", queue)
                else:
                    publisher.publish([Outgoing("", queue, body)])

    def on_lost(self, sender: Any = None, args: Any = None, exception: Any = None, **_: Any) -> None:
        """A child died: give its units back at once instead of waiting for their leases."""
        for body in args or ():
            if not isinstance(body, dict):
                continue
            for unit in body.get("units", []):
                with contextlib.suppress(InfrastructureError):  # then its lease runs out
                    self.ledger.give_back(
                        body["tenant"], body["job"], body["stage"], unit["id"], delay_s=0, refund=False,
                        why=f"its worker process died: {exception}"[:300],
                    )  # fmt: skip

    def listen(self) -> None:
        """Stop model calls of cancelled jobs at once; what a lost message misses, the heartbeat notices."""
        client = redis_client(self.settings)
        while True:
            try:
                channel = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                channel.subscribe(rk.CANCELLED)
                for message in channel.listen():
                    self.worker.runner().cancel([str(message["data"])])
            except (redis.RedisError, OSError):
                threading.Event().wait(2)


def fault_of(message: Any) -> str:
    """Return what is wrong with a message's envelope, NEWER where only its task is unknown, or "" """
    headers = message.headers
    if not isinstance(headers, dict) or not isinstance(headers.get("task"), str):
        return "it names no task"
    if not isinstance(headers.get("id"), str) or not headers["id"]:
        return "it has no id"
    if headers.get("eta") or headers.get("expires"):
        return "it asks for a time, which this transport cannot keep"
    if len(message.body or "") > LARGEST_BODY:
        return f"it is larger than {LARGEST_BODY} bytes"
    if headers["task"] not in TASKS:
        return NEWER if headers["task"].startswith(QUEUE_PREFIX) else f"its task {headers['task']!r} is not ours"
    return ""


def _deadline(request: Any) -> float:
    try:
        return float(request.args[0].get("deadline") or math.inf)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        return math.inf


def _members(request: Any) -> list[str]:
    try:
        body = request.args[0]
        return [f"{body['tenant']}|{body['job']}|{body['stage']}|{unit['id']}" for unit in body["units"]]
    except (IndexError, KeyError, TypeError):
        return []
