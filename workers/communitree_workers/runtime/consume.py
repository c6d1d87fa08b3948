"""Celery, as far as workers know it: the worker process, its heartbeat, and the tasks that hand messages over.

Two kinds of workers: `models` waits for endpoints (threads, one event loop), `cpu` computes (prefork children).
Leases and messages are kept alive by the main process from what its pool runs, never by the computing child:
one call into igraph may hold the interpreter's lock for many seconds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
import uuid
import weakref
from collections.abc import Mapping
from typing import Any, ClassVar

import redis
from celery import Celery, bootsteps, signals
from celery.worker import state as worker_state
from celery.worker.consumer import Consumer

from communitree_shared import clock, crash
from communitree_shared.broker.app import make_app
from communitree_shared.broker.envelope import NEWER, RUBBISH, Envelope
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.messages import CPU_QUEUES, MODEL_QUEUES, QUEUE_PREFIX, TASKS
from communitree_shared.errors import InfrastructureError, UsageError
from communitree_shared.faults import of_redis
from communitree_shared.ledger import Ledger, reconciler
from communitree_shared.ledger.entry import models_text
from communitree_shared.ledger.jobs import ENDED
from communitree_shared.notify import tell_ready
from communitree_shared.objects.pairing import check_pair
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import check_server, redis_client, where_of
from communitree_shared.settings import MODEL_STAGES, Settings
from communitree_shared.trouble import Knocks
from communitree_workers.runtime import aside
from communitree_workers.runtime.deaths import cause_of_death
from communitree_workers.runtime.heartbeat import Heartbeat, members_of
from communitree_workers.runtime.intake import Intake
from communitree_workers.runtime.runner import Handler, Runner
from communitree_workers.runtime.services import Services

log = logging.getLogger(__name__)

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
        self._main: Main | None = None

    def runner(self) -> Runner:
        """Return this process's runner; a forked child makes its own connections."""
        with self._runner_lock:
            if self._runner is None or self._runner.services.pid != os.getpid():
                services = Services(self.settings, threaded=self.kind == "models", token=f"{self.token}:{os.getpid()}")
                # Threads share this process, whose heartbeat knows what they go on with; of a child it does not.
                onward = [QUEUE_PREFIX + name for name in self.queues] if self.kind == "models" else []
                stopping = lambda: worker_state.should_stop is not None  # noqa: E731
                self._runner = Runner(services, self.handlers, onward=onward, stopping=stopping)
            return self._runner

    def direct(self) -> dict[str, Any]:
        """Return the messages in work that did not come from the broker, by job and stage."""
        return dict(self._runner.direct) if self._runner is not None and self.kind == "models" else {}

    def sound(self) -> bool:
        """Return whether the main process does its work: its heart beats, or it is still starting."""
        return self._main is None or self._main.heartbeat.sound

    def run(self) -> int:
        """Serve until told to stop (SIGTERM: what runs is finished first); return 0 then, 1 where it ends otherwise.

        Raises:
            InfrastructureError: a server is misconfigured; said once, before any message is taken.
        """
        client = redis_client(self.settings)
        Ledger(client, patience=60).wait()
        check_server(client, where_of(client))
        clock.sync(client)
        store = Store(self.settings, patience=60)
        store.ensure_bucket()
        check_pair(self.settings, store, client)
        app = self._app()
        # Used from the worker's own loop, which must not be held up: it never waits for a Redis that is away.
        ledger = Ledger(client, patience=0)
        ledger.tell_models(models_text({stage: self.settings.model(stage).model for stage in MODEL_STAGES}))
        ledger.token = self.token
        self._main = main = Main(self, ledger)
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
        try:
            worker.start()
        finally:
            self._close()
        if worker_state.should_stop is not None or worker_state.should_terminate is not None:
            return 0
        log.error("the worker ends without having been told to")
        return int(worker.exitcode or 1)

    def _close(self) -> None:
        if self._runner is not None and self._runner.services.pid == os.getpid():
            self._runner.services.close()

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
        self.heartbeat = Heartbeat(self.settings, ledger, held=self.held, running=self.running, lost=self.lose)
        self._requests: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._ended: set[str] = set()
        self.where = where_of(ledger.redis)
        self._pid = os.getpid()

    def install(self, app: Celery) -> None:
        """Hook into the app's worker."""
        main = self

        class Beating(bootsteps.StartStopStep):  # type: ignore[misc]
            """Lets the heart beat while this worker consumes, and while it does not."""

            requires: ClassVar[set[str]] = {"celery.worker.consumer.tasks:Tasks"}

            def start(self, parent: Any) -> None:
                main.heartbeat.inside(parent.timer)

            def stop(self, parent: Any) -> None:
                main.heartbeat.outside()

        class Guarded(Consumer):  # type: ignore[misc]
            """Keeps aside what no publisher of ours made, before Celery sees it, and ends over what does not pass."""

            def create_task_handler(self, *args: Any, **options: Any) -> Any:
                handle = super().create_task_handler(*args, **options)

                def guarded(message: Any) -> None:
                    if message.envelope.fault:
                        main.keep_aside(message, message.envelope.fault)
                        return
                    if crash.WANTED:
                        watch_ack(message)
                    try:
                        handle(message)
                    except RUBBISH as error:
                        main.keep_aside(message, f"{type(error).__name__}: {error}")

                return guarded

            def on_connection_error_after_connected(self, error: Exception) -> None:
                """Go on once Redis is there again; a refusal that we have earned is no outage.

                Raises:
                    ResponseError: it will not pass.
                """
                if isinstance(error, redis.ResponseError):
                    if of_redis(error, main.where) is None:
                        raise error
                    time.sleep(1.0)  # it answers, so nothing else would slow us down
                super().on_connection_error_after_connected(error)

        app.conf.worker_consumer = Guarded
        app.steps["consumer"].add(Beating)
        signals.task_received.connect(self.on_received, weak=False)
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
        threading.Thread(target=self.listen, name="cancel", daemon=True).start()
        threading.Thread(target=self.unpark, name="unpark", daemon=True).start()
        tell_ready()

    def held(self) -> list[str]:
        """Return the delivery tags of messages that were taken and are not acknowledged."""
        return [request.message.delivery_tag for request in list(worker_state.reserved_requests)]

    def running(self) -> dict[str, Any]:
        """Return the arguments of what runs, by the task's id (job and stage, where it came without the broker)."""
        running = {request.id: request.args for request in list(worker_state.active_requests)}
        return running | {name: [body] for name, body in self.worker.direct().items()}

    def lose(self, members: list[str]) -> None:
        """Stop what runs of units that are no longer ours."""
        if self.worker.kind == "cpu":
            self.stop_ended(members)
        elif members:
            self.worker.runner().cancel(members)

    def keep_aside(self, message: Any, why: str) -> None:
        """Take a foreign or newer message off its queue: parked for a newer worker, or kept as a dead letter."""
        said: Envelope = message.envelope
        queue = message.delivery_info["routing_key"]
        try:
            if why == NEWER:
                aside.park(self.ledger, queue, {"task": said.task, "raw": said.text}, self.settings.job_ttl)
            else:
                aside.keep_foreign(self.ledger, queue, said.task, said.text, why)
        except (redis.RedisError, OSError, InfrastructureError) as error:
            log.warning("it could not be kept, and comes again: %s", error)
            message.channel.qos.forget(message.delivery_tag)
            return
        message.ack_log_error(log, (redis.RedisError, OSError))

    def unpark(self) -> None:
        """Put back what waited for a worker that knows it, now and from time to time."""
        ledger = Ledger(redis_client(self.settings), patience=30)
        parked = aside.Unparking(ledger, Publisher(self.settings, ledger), self.worker.queues)
        knocks = Knocks("what is parked", log)
        while True:
            pause = max(1.0, self.settings.reconciler_tick)
            try:
                parked.look()
                knocks.over()
            except (redis.RedisError, OSError, InfrastructureError) as error:
                pause = knocks.met(error, pause)
            except Exception:
                log.exception("parked messages were not put back")
            time.sleep(pause)

    def on_received(self, request: Any = None, **_: Any) -> None:
        """Know a task's request while it lasts: it names the child that works on it."""
        self._requests[request.id] = request

    def on_lost(self, task_id: str = "", args: Any = None, exception: Any = None, **_: Any) -> None:
        """A child died, or could not reach Redis: give back at once what it held, and nothing that another holds."""
        away = isinstance(exception, InfrastructureError)
        pid = getattr(self._requests.get(task_id), "worker_pid", None) if os.getpid() == self._pid else os.getpid()
        for tenant, job, stage, unit in (m.split("|") for m in members_of(args) if pid):
            with contextlib.suppress(InfrastructureError):  # then its lease runs out
                self.ledger.give_back(
                    tenant, job, stage, unit, delay_s=0, refund=away, owner=f"{self.worker.token}:{pid}",
                    why=cause_of_death(exception),
                )  # fmt: skip

    def stop_ended(self, lost: list[str]) -> None:
        """Stop what still runs for ended jobs; a step that ends its job itself has a beat's time to return."""
        jobs = {tuple(member.split("|")[:2]) for member in lost}
        states = {job: self.ledger.redis.hget(rk.job(*job), "state") for job in jobs}
        ended = {f"{t}|{j}" for (t, j), state in states.items() if state in ENDED}
        self.stop([job for job in ended if job in self._ended or states[tuple(job.split("|"))] == "cancelled"])
        self._ended = ended

    def stop(self, jobs: list[str]) -> None:
        """Stop what runs for jobs (`tenant|job`): calls of models by cancelling them, a computing child by its end.

        A child may be inside one call of a C library for many seconds: nothing but a signal stops it. What it has
        stored by then lies at the hash of its input, for whoever needs it next.
        """
        if self.worker.kind == "models":
            self.worker.runner().cancel(jobs)
            return
        for request in list(worker_state.active_requests):
            ours = {"|".join(member.split("|")[:2]) for member in members_of(request.args)}
            if ours.intersection(jobs) and request.worker_pid and request in worker_state.active_requests:
                log.info("%s is stopped: its job has ended", request.name)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(request.worker_pid, signal.SIGKILL)

    def listen(self) -> None:
        """Stop what runs for cancelled jobs at once; what a lost message misses, the heartbeat notices."""
        client = redis_client(self.settings)
        while True:
            try:
                channel = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                channel.subscribe(rk.CANCELLED)
                for message in channel.listen():
                    self.stop([str(message["data"])])
            except (redis.RedisError, OSError):
                threading.Event().wait(2)


def watch_ack(message: Any) -> None:
    """Pass the crash points of a message, where there are any."""
    who, acknowledged = ".".join(message.headers["task"].split(".")[1:-1]), message.ack_log_error

    def watched(*args: Any, **options: Any) -> None:
        crash.point("ack.before", who)
        acknowledged(*args, **options)
        crash.point("ack.after", who)

    message.ack_log_error = watched
    crash.point("take", who)
