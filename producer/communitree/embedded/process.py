"""Child processes that end with us, log to a file and can be found again after a crash."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from communitree_shared.alive import identity

_BECOME = Path(__file__).with_name("become.py")

#: A log larger than this is set aside once when its process starts, so that a folder cannot grow without end.
_LOG_LIMIT = 16 * 2**20


@dataclass(frozen=True)
class ChildSpec:
    """How to start and stop one child. `death_signal` is what the kernel sends it when we die."""

    name: str
    command: tuple[str, ...]
    cwd: Path
    log: Path
    pid_file: Path
    env: Mapping[str, str] = field(repr=False)
    grace: float = 5.0
    death_signal: int = signal.SIGTERM


class Child:
    """One running child, in a session of its own: a Ctrl-C in our terminal does not reach it.

    The kernel counts the *thread* that starts a child as its parent: start children from the main thread.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        with contextlib.suppress(OSError):
            if spec.log.stat().st_size > _LOG_LIMIT:
                spec.log.replace(spec.log.with_suffix(".log.1"))
        self._log_start = spec.log.stat().st_size if spec.log.exists() else 0
        starter = (sys.executable, "-I", "-S", str(_BECOME), str(os.getpid()), str(int(spec.death_signal)))
        with spec.log.open("ab") as log:
            self.popen = subprocess.Popen(
                [*starter, *spec.command],
                cwd=spec.cwd,
                env=dict(spec.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
            )
        self.pid = self.popen.pid
        self.started = time.monotonic()
        spec.pid_file.write_text(f"{self.pid} {identity(self.pid)}")

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or None while it runs."""
        return self.popen.poll()

    def signal(self, number: int) -> None:
        """Send a signal to the child and to all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def forget(self) -> None:
        """Remove what a next start would look at."""
        self.spec.pid_file.unlink(missing_ok=True)

    def tail(self, characters: int = 800) -> str:
        """Return the end of what this child has logged since it was started."""
        try:
            with self.spec.log.open("rb") as log:
                log.seek(max(self._log_start, os.fstat(log.fileno()).st_size - 4 * characters))
                return log.read().decode(errors="replace").strip()[-characters:]
        except OSError:
            return ""


def stop(children: Iterable[Child], hurry: Callable[[], bool] = bool) -> None:
    """Stop children side by side: SIGTERM, then SIGKILL to what is left of a group when its grace is over.

    Args:
        children: those to stop; their process ids are forgotten.
        hurry: asked all the time; True ends the grace of all.
    """
    waiting = list(children)
    begun = time.monotonic()
    for child in waiting:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                child.popen.send_signal(signal.SIGTERM)
    while waiting:
        over = time.monotonic() - begun
        for child in list(waiting):
            if child.poll() is not None or over > child.spec.grace or hurry():
                child.signal(signal.SIGKILL)
                child.popen.wait()
                child.forget()
                waiting.remove(child)
        time.sleep(0.02 if waiting else 0)


def reap_stale(run_folder: Path, patience: float = 6.0) -> list[str]:
    """End children that an earlier, killed stack left behind; return their names.

    Only needed where the kernel did not do it, and while servers are still on their way out: two servers on one
    data folder would spoil it.
    """
    ended = []
    for pid_file in sorted(run_folder.glob("*.pid")):
        with contextlib.suppress(OSError, ValueError):
            pid_text, _, known = pid_file.read_text().partition(" ")
            pid = int(pid_text)
            if known and identity(pid) == known:
                ended.append(pid_file.stem)
                _end_group(pid, known, patience)
        pid_file.unlink(missing_ok=True)
    return ended


def _end_group(pid: int, known: str, patience: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
        end = time.monotonic() + patience
        while identity(pid) == known and time.monotonic() < end:
            time.sleep(0.05)
        os.killpg(pid, signal.SIGKILL)
