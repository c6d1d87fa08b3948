"""How a message is worked on: begin, work, arrive. The rules of delivery live here and in the ledger's scripts.

Every unit of a message ends in one of these ways, and none of them is silent:

- it arrives, with an outcome or with a cause of failure;
- it is given back (infrastructure away, unexpected error) and the reconciler publishes it again;
- another worker holds or has ended it, or its job has ended: nothing is left to do.

The end that closes a stage makes its job's next step due. Where this process serves that step's queue it goes on with
it at once: the way through the broker costs more than most of what is done. Until it has begun, the step stands in the
outbox like any other, so that it is published should this process die.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from communitree_shared import clock, crash
from communitree_shared.contract.messages import Message, Unit, parse_message
from communitree_shared.errors import (
    BadInput,
    Cancelled,
    CommunitreeError,
    InfrastructureError,
    NewerMessage,
    ServerRefuses,
    UsageError,
)
from communitree_shared.ledger.client import Arrival, Outgoing
from communitree_workers.runtime import aside
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.services import Services

log = logging.getLogger(__name__)

#: While other units of a message run, an end waits so long (s) for theirs, and they arrive together. Nothing waits for
#: it: the stage cannot close before the others have ended.
GATHER = 0.02

Handler = Callable[[UnitContext], Outcome] | Callable[[UnitContext], Coroutine[Any, Any, Outcome]]

#: Pause before a unit whose infrastructure was away is tried again, and before an unexpected error is (times attempt).
GIVE_BACK = 2.0
RETRY_AFTER_ERROR = 1.0


class Runner:
    """Works on messages with the handlers of one process.

    `onward`: the broker's queues whose steps this process may go on with. `stopping`: whether it is to end soon.
    """

    def __init__(
        self,
        services: Services,
        handlers: Mapping[str, Handler],
        *,
        onward: Collection[str] = (),
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.services = services
        self.handlers = handlers
        self._onward, self._stopping = onward, stopping
        #: Messages in work that did not come from the broker, by job and stage: a heartbeat keeps their leases.
        self.direct: dict[str, Any] = {}
        self._running: dict[str, concurrent.futures.Future[Outcome]] = {}
        self._lock = threading.Lock()

    def run(self, body: Any) -> None:
        """Work on one message as it came from the broker, and on what it makes due. Never raises for a bad one."""
        due = self._work(body)
        while due is not None:
            name = f"{due['tenant']}|{due['job']}|{due['stage']}"
            self.direct[name] = due
            try:
                following = self._work(due, direct=True)
            except InfrastructureError as error:
                log.warning("%s; the reconciler publishes what follows", error)
                return
            finally:
                del self.direct[name]
            due = following

    def _work(self, body: Any, *, direct: bool = False) -> Any:
        """Work on one message; return the body of the next one to go on with, or None."""
        try:
            message = parse_message(body)
            request = self.services.keys(message.tenant).job(message.job, "request.json")
        except NewerMessage as newer:
            log.info("%s", newer)
            aside.park(self.services.ledger, aside.queue_of_body(body), body, self.services.settings.job_ttl)
            return None
        except (BadInput, UsageError) as bad:
            aside.keep_foreign(self.services.ledger, aside.queue_of_body(body), "", json.dumps(body), str(bad))
            return None
        crash.acting(_short(message.task))
        settings = self.services.settings
        clock.sync(self.services.ledger.redis)
        begun = self.services.ledger.begin(
            message.tenant, message.job, message.stage, message.id, [u.id for u in message.units], settings.lease,
            settings.max_attempts, wants_request=not self.services.knows(request), direct=direct,
        )  # fmt: skip
        self.services.learn(request, begun.request)
        self._publish(begun.outgoing)
        until = min((d for d in (message.deadline, begun.deadline) if d), default=None)
        units = [u for u in message.units if begun.verdicts[u.id] == "go"]
        contexts = [self._context(message, unit, begun.attempts[unit.id], until) for unit in units]
        handler = self.handlers[message.task]
        crash.point("work.before")
        due = None
        with self.services.waits.of(message):
            if asyncio.iscoroutinefunction(handler):
                due = self._side_by_side(contexts, handler)
            else:
                for context in contexts:
                    arrival = self._settle(context, self._call(handler, context), time.monotonic())
                    due = self._arrive([(context, arrival)] if arrival else []) or due
        return due

    def cancel(self, members: list[str]) -> None:
        """Stop running units, by ledger member (`tenant|job|stage|unit`) or prefix of one (`tenant|job`)."""
        with self._lock:
            hit = [f for m, f in self._running.items() if any(m == x or m.startswith(x + "|") for x in members)]
        for future in hit:
            future.cancel()

    # --- inside ---------------------------------------------------------------------------------------------

    def _context(self, message: Message, unit: Unit, attempt: int, deadline: float | None) -> UnitContext:
        member = _member(message, unit)

        def cancelled() -> bool:
            future = self._running.get(member)
            return future is not None and future.cancelled()

        return UnitContext(self.services, message, unit, attempt, deadline, cancelled)

    def _side_by_side(self, contexts: list[UnitContext], handler: Any) -> Any:
        """Work on units at once. Those that end within a moment of another arrive together: each call costs.

        Returns as `_arrive`.
        """
        due = None
        working: dict[concurrent.futures.Future[Outcome], UnitContext] = {}
        ended: queue.SimpleQueue[concurrent.futures.Future[Outcome]] = queue.SimpleQueue()
        started = time.monotonic()
        for context in contexts:
            future = self.services.loop.submit(handler(context))
            working[future] = context
            with self._lock:
                self._running[_member(context.message, context.unit)] = future
        for future in working:
            future.add_done_callback(ended.put)
        while working:
            settled = []
            for future in _gathered(ended, len(working)):
                context = working.pop(future)
                with self._lock:
                    self._running.pop(_member(context.message, context.unit), None)
                settled.append((context, self._settle(context, future.result, started)))
            due = self._arrive([(context, arrival) for context, arrival in settled if arrival]) or due
        return due

    @staticmethod
    def _call(handler: Any, context: UnitContext) -> Callable[[], Outcome]:
        return lambda: handler(context)

    def _settle(self, context: UnitContext, result: Callable[[], Outcome], started: float) -> Arrival | None:
        """Turn what a handler returned or raised into an arrival, or give the unit back (None)."""
        message, unit = context.message, context.unit
        try:
            outcome = result()
        except ServerRefuses as error:
            self._give_up(context, error)
            return None
        except InfrastructureError as error:
            log.warning("%s %s waits: %s", message.task, unit.id, error)
            self._give_back(context, GIVE_BACK, refund=True, why=str(error))
            return None
        except (Cancelled, asyncio.CancelledError, concurrent.futures.CancelledError):
            return None  # the job has ended; there is nothing to arrive at
        except CommunitreeError as error:
            outcome = Outcome(ok=False, data={"cause": error.code, "message": error.message, "hint": error.hint})
        except Exception as error:
            log.exception("%s %s failed at attempt %d", message.task, unit.id, context.attempt)
            why = f"{type(error).__name__}: {error}"[:500]
            self._give_back(context, RETRY_AFTER_ERROR * context.attempt, refund=False, why=why)
            return None
        crash.point("work.after")
        event = {"attempt": context.attempt, "seconds": f"{time.monotonic() - started:.3f}", **outcome.event}
        if not outcome.ok:
            event.setdefault("cause", outcome.data.get("cause", ""))
            event.setdefault("message", str(outcome.data.get("message", ""))[:300])
        return Arrival(unit.id, outcome.ok, {**outcome.data, "attempt": context.attempt}, event)

    def _arrive(self, ended: list[tuple[UnitContext, Arrival]]) -> Any:
        """Tell the ledger of units of one message that have ended; return the step to go on with, or None."""
        if not ended:
            return None
        message = ended[0][0].message
        try:
            _, outgoing = self.services.ledger.arrive_all(
                message.tenant, message.job, message.stage, [arrival for _, arrival in ended]
            )
        except InfrastructureError:
            for context, _ in ended:
                log.warning("%s %s could not arrive; its output is kept and it is tried again", message.task,
                            context.unit.id)  # fmt: skip
            return None
        except Exception as error:  # the message's other units must still be told of
            if len(ended) > 1:
                return next(filter(None, [self._arrive([one]) for one in ended]), None)
            ((context, _),) = ended
            log.exception("%s %s could not arrive", message.task, context.unit.id)
            why = f"{type(error).__name__}: {error}"[:500]
            self._give_back(context, RETRY_AFTER_ERROR * context.attempt, refund=False, why=why)
            return None
        due = None if self._stopping() else next((o for o in outgoing if self._follows(message, o)), None)
        self._publish([o for o in outgoing if o is not due])
        return json.loads(due.body) if due else None

    def _follows(self, message: Message, outgoing: Outgoing) -> bool:
        """Say whether what is due is the next step of a message's job, and served here."""
        tenant, job, stage, _ = outgoing.member.split("|")
        here = (tenant, job) == (message.tenant, message.job) and outgoing.queue in self._onward
        return here and stage != message.stage

    def _give_up(self, context: UnitContext, error: ServerRefuses) -> None:
        """A server has refused this unit for as long as a job may wait: its job ends, and can be resumed."""
        try:
            self._publish(self.services.waits.give_up(context.message, error))
        except InfrastructureError:
            self._give_back(context, GIVE_BACK, refund=True, why=str(error))

    def _give_back(self, context: UnitContext, delay: float, *, refund: bool, why: str) -> None:
        message = context.message
        try:
            self.services.ledger.give_back(
                message.tenant, message.job, message.stage, context.unit.id, delay_s=delay, refund=refund, why=why
            )
        except InfrastructureError:
            log.warning("%s %s is left to its lease", message.task, context.unit.id)

    def _publish(self, outgoing: list[Outgoing]) -> None:
        try:
            self.services.publisher.publish(outgoing)
        except InfrastructureError as error:
            log.warning("%s; the reconciler publishes them", error)


def _gathered(ended: queue.SimpleQueue[concurrent.futures.Future[Outcome]], most: int) -> list[Any]:
    """Wait for a first end, and a moment for others; return them."""
    found = [ended.get()]
    until = time.monotonic() + GATHER
    with contextlib.suppress(queue.Empty):
        while len(found) < most:
            found.append(ended.get(timeout=max(0.0, until - time.monotonic())))
    return found


def _member(message: Message, unit: Unit) -> str:
    return f"{message.tenant}|{message.job}|{message.stage}|{unit.id}"


def _short(task: str) -> str:
    return ".".join(task.split(".")[1:-1])
