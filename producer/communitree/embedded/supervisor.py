"""`communitree up`: servers and workers; whatever dies is started again; all ends together."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from communitree.embedded.discover import describe
from communitree.embedded.guard import Guard
from communitree.embedded.lookout import Lookout
from communitree.embedded.process import Child, ChildSpec, stop
from communitree.embedded.ready import Ready
from communitree.embedded.servers import Endpoints, Servers
from communitree_shared.errors import DataLost, OtherBucket
from communitree_shared.notify import tell_ready
from communitree_shared.settings import Settings

#: What lives for a shorter time has something wrong with it: wait before the next start, longer each time. What
#: gives up by itself (a code, not a signal) may have spent seconds on its imports first.
_TOO_SHORT, _GAVE_UP = 1.0, 20.0
_BACK_OFF = (0.5, 10.0)

#: Running tasks get this long to end; what is cut off is delivered again at the next start.
_WORKER_GRACE = 3.0


@dataclass(frozen=True)
class WorkerCommand:
    """One worker process of the stack."""

    name: str
    command: tuple[str, ...]


def default_workers(models: int = 1, cpu: int = 1) -> list[WorkerCommand]:
    """Return the workers for all queues: `models` processes for model calls, `cpu` for the rest and built-in models.

    Started with `-P`, so that a file in the caller's folder cannot take the place of a module.
    """
    return [
        WorkerCommand(
            f"worker-{kind}-{i + 1}" if many > 1 else f"worker-{kind}",
            (sys.executable, "-P", "-m", "communitree_workers", "worker", kind),
        )
        for kind, many in (("models", models), ("cpu", cpu))
        for i in range(many)
    ]


class Supervisor:
    """Runs one stack until a signal ends it. Call `run` in the main thread of a process of its own.

    Args:
        settings: of the caller; `home` is the stack's folder, `s3_bucket` its bucket.
        workers: the worker processes to keep running.
        say: takes one line about each thing that happens (started, died, stopped).
    """

    def __init__(self, settings: Settings, workers: Sequence[WorkerCommand], say: Callable[[str], None]) -> None:
        self._settings = settings
        self._commands = workers
        self._say = say
        self._servers = Servers(settings.home, settings.s3_bucket)
        self._home = self._servers.home
        self._workers: list[Child] = []
        self._due: dict[str, float] = {}
        self._short_lives: dict[str, int] = {}
        self._signals = 0
        self._starting = False
        self._ready: Ready | None = None
        self._lookout: Lookout | None = None
        self._told = False  # whether `stack.json` is ours

    def run(self, ready: Callable[[dict[str, Any]], None]) -> None:
        """Start everything and keep it running until a signal.

        Workers spend their imports while the servers start. Once these take data `stack.json` is written, so that jobs
        may come; `ready` is called with its content when every worker serves its queues.

        Raises:
            UsageError: another stack runs on this folder.
            InfrastructureError: a server cannot be started.
            DataLost: the data that was there before is gone.
        """
        with self._listening() as wake:
            guard: Guard | None = None
            try:
                self._starting = True
                guard = Guard()
                endpoints = self._servers.start(self._start_workers)
                if self._servers.stale:
                    self._say(f"ended what a killed stack had left: {', '.join(self._servers.stale)}")
                for child in (*self._servers.children, *self._workers):
                    guard.add(child)
                self._starting = False
                stack = describe(self._settings, endpoints, [c.name for c in self._commands])
                self._home.write_stack(stack)
                self._told = True
                self._lookout = Lookout(self._settings, endpoints)
                self._lookout.start()
                self._watch(wake, guard, lambda: self._say_ready(ready, stack))
            except KeyboardInterrupt:
                self._say("stopped before it was ready")
            finally:
                self._starting = False
                self._end(guard)

    def _start_workers(self, endpoints: Endpoints) -> None:
        self._ready = self._ready or Ready(self._home.folder / "run")
        stop(self._workers)  # of a try with other ports
        self._workers = []
        for command in self._commands:  # each is on our list at once, in case a signal comes in between
            self._workers.append(Child(self._worker(command, endpoints, self._ready)))

    def _worker(self, command: WorkerCommand, endpoints: Endpoints, ready: Ready) -> ChildSpec:
        env = {
            **os.environ,
            **endpoints.environment(),
            **ready.environment,
            "COMMUNITREE_S3_BUCKET": self._settings.s3_bucket,
            "COMMUNITREE_HOME": str(self._home.folder),
        }
        return self._home.child(command.name, command.command, Path.cwd(), env, _WORKER_GRACE, signal.SIGKILL)

    @staticmethod
    def _say_ready(ready: Callable[[dict[str, Any]], None], stack: dict[str, Any]) -> None:
        ready(stack)
        tell_ready()

    def _watch(self, wake: socket.socket, guard: Guard, ready: Callable[[], None]) -> None:
        told = self._ready  # read until the end: workers that are started again tell it, too
        assert told is not None
        waiting = True
        while not self._signals:
            guard.check()
            if self._lookout and self._lookout.lost:
                raise self._data_lost(self._lookout.lost)
            for children in (self._servers.children, self._workers):
                for i, child in enumerate(children):
                    if child.spec.name not in self._due and (code := child.poll()) is not None:
                        guard.remove(child)
                        child.signal(signal.SIGKILL)  # what the dead one had started itself
                        if code == OtherBucket.exit_code and children is self._workers:
                            raise self._data_lost(f"{child.spec.name} says: {child.tail(600)}")
                        self._plan_restart(child, code)
                    if self._due.get(child.spec.name, math.inf) <= time.monotonic():
                        del self._due[child.spec.name]
                        if children is self._servers.children:
                            self._servers.restart(i)
                        else:
                            children[i] = Child(child.spec)
                        guard.add(children[i])
            serving = told.hear()
            if waiting and all(c.pid in serving and c.spec.name not in self._due for c in self._workers):
                waiting = False
                self._servers.check_closed()
                ready()
            now = time.monotonic()
            nap = min([1.0, *(max(0.0, when - now) for when in self._due.values())])
            if wake in select.select([wake, told.socket], [], [], nap)[0]:
                wake.recv(4096)

    def _data_lost(self, why: str) -> DataLost:
        home = self._home.folder
        return DataLost(
            f"data lost: {why}",
            hint=f"Nothing runs any more. Put {home / 's3'} back from a copy, and start again; or set {home} aside (or "
            "give another --home), start again and index anew. If only COMMUNITREE_S3_BUCKET or "
            "COMMUNITREE_S3_PREFIX was changed, set it back.",
        )

    def _plan_restart(self, child: Child, code: int) -> None:
        name, lived = child.spec.name, time.monotonic() - child.started
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        if lived >= (_TOO_SHORT if code <= 0 else _GAVE_UP):
            self._short_lives[name] = 0
            self._due[name] = 0.0
            self._say(f"{name} {how}; started again")
            return
        self._short_lives[name] = count = self._short_lives.get(name, 0) + 1
        delay = min(_BACK_OFF[1], _BACK_OFF[0] * 2 ** (count - 1))
        self._due[name] = time.monotonic() + delay
        said = child.tail(400)
        self._say(f"{name} {how} after {lived:.1f} s; next try in {delay:.1f} s{': ' + said if said else ''}")

    def _end(self, guard: Guard | None) -> None:
        def hurry() -> bool:
            return self._signals > 1

        if self._lookout is not None:
            self._lookout.stop()
        if self._told:
            with contextlib.suppress(OSError):
                self._home.stack_file.unlink(missing_ok=True)
        stop(self._workers, hurry)
        if self._ready is not None:
            self._ready.close()  # while the folder is locked: afterwards that path may be the next stack's
        self._servers.stop(hurry)
        if guard is not None:
            guard.close()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        """Count signals to stop, wake up when a child dies; put everything back afterwards."""

        def on_stop(number: int, frame: FrameType | None) -> None:
            self._signals += 1
            if self._starting:
                raise KeyboardInterrupt

        def on_child(number: int, frame: FrameType | None) -> None:
            """Only there for its wake-up: an ignored signal writes nothing to the socket."""

        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, on_stop) for number in stops}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, on_child)
        old_wake = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(old_wake)
            for number, handler in before.items():
                signal.signal(number, handler)
            ours.close()
            theirs.close()
