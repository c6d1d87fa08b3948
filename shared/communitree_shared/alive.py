"""Whether a worker lives: a small file that its main process touches every few seconds (`communitree worker --check`).

It lies in `run/` of the home folder, which may be in memory. Neither the file nor the look at it needs a server, and
little is imported: a look costs what the start of a Python costs.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

#: Seconds between two touches, and after how many without one a worker counts as hung.
PERIOD, SILENCE = 5.0, 40.0


class Pulse:
    """The file of this process's worker, touched by a thread of its own; `with` removes it at the end.

    Args:
        home: the home folder; `run/` is made in it.
        serves: the queues, and the names that they were asked for by.
        sound: asked before each touch; False lets the file grow old.
    """

    def __init__(self, home: Path, serves: Sequence[str], sound: Callable[[], bool] = lambda: True) -> None:
        self.sound = sound
        self._path = run_folder(home) / f"worker-{os.getpid()}.json"
        self._text = json.dumps({"pid": os.getpid(), "identity": identity(os.getpid()), "serves": sorted({*serves})})
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def __enter__(self) -> Pulse:
        try:
            self._write()
        except OSError as error:
            log.warning(
                "`communitree worker --check` will not see this worker: %s cannot be written (%s). Let "
                "COMMUNITREE_HOME name a folder that can; one in memory will do.",
                self._path, error.strerror,
            )  # fmt: skip
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _write(self) -> None:
        for folder in (self._path.parent.parent, self._path.parent):  # a mode is that of the last folder alone
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = self._path.with_suffix(".new")
        aside.write_text(self._text)
        aside.replace(self._path)

    def _run(self) -> None:
        while not self._ended.wait(PERIOD):
            if not self.sound():
                continue
            with contextlib.suppress(OSError):
                try:
                    os.utime(self._path)  # needs no room on a full disk
                except FileNotFoundError:
                    self._write()


@dataclass(frozen=True)
class Seen:
    """A worker's file: its process, what it serves, and how long ago it was touched (seconds)."""

    pid: int
    serves: tuple[str, ...]
    age: float

    @property
    def hung(self) -> bool:
        """Whether it is silent for too long. A touch in the future was made before the clock was set back."""
        return not -PERIOD <= self.age <= SILENCE


def look(home: Path) -> list[Seen]:
    """Return the workers of a home folder whose process exists; what dead ones left is passed over."""
    found = []
    for path in sorted(run_folder(home).glob("worker-*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(path.read_text())
            if identity(int(told["pid"])) == told["identity"] != "":
                age = time.time() - path.stat().st_mtime
                found.append(Seen(int(told["pid"]), tuple(map(str, told["serves"])), age))
    return found


def verdict(seen: Sequence[Seen], names: Sequence[str]) -> tuple[bool, str]:
    """Return whether workers live, and a line that says it.

    Each of the names (a queue, `models` or `cpu`) needs one that lives, and none that serves one of them may hang;
    without names any queue counts.
    """
    ours = [s for s in seen if not names or {*names} & {*s.serves}]
    hung = [s for s in ours if s.hung]
    if hung:
        return False, f"hung: process {hung[0].pid} has been silent for {hung[0].age:.0f} s"
    missing = [name for name in names if not any(name in s.serves for s in ours)]
    if missing or not ours:
        wanted = f"that serves {', '.join(missing)} " if missing else ""
        others = sorted({name for s in seen for name in s.serves})
        return False, f"no worker {wanted}runs here" + (f"; those that run serve {', '.join(others)}" if others else "")
    return True, "alive: " + ", ".join(f"process {s.pid}, {max(0.0, s.age):.0f} s ago" for s in ours)


def run_folder(home: Path) -> Path:
    """Return the folder of these files."""
    return home.expanduser().absolute() / "run"


def data_home() -> Path:
    """Return the home folder that is taken when none is set."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "communitree"


def identity(pid: int) -> str:
    """Return what tells this process from a later one with the same number; "" when there is none.

    On Linux the start time in clock ticks, from the 22nd field of `stat`, behind the last bracket of the name.
    A zombie counts as gone.
    """
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    import subprocess

    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()
