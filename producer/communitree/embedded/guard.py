"""Our end of the keeper: a helper process that ends our children when we are killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from communitree.embedded.process import Child

_KEEPER = Path(__file__).with_name("keeper.py")


class Guard:
    """Keeps the keeper informed, and alive: a killed keeper is started again with the whole list."""

    def __init__(self) -> None:
        self._groups: dict[int, int] = {}
        self._start()

    def _start(self) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        for group, number in self._groups.items():
            self._tell(f"+{group} {number}")

    def _tell(self, line: str) -> None:
        pipe = self._keeper.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):  # `check` starts it again
            pipe.write(line + "\n")
            pipe.flush()

    def add(self, child: Child) -> None:
        """End this child's group, should we die."""
        self._groups[child.pid] = int(child.spec.death_signal)
        self._tell(f"+{child.pid} {int(child.spec.death_signal)}")

    def remove(self, child: Child) -> None:
        """Forget a child that has ended."""
        self._groups.pop(child.pid, None)
        self._tell(f"-{child.pid}")

    def check(self) -> None:
        """Start the keeper again if it was ended."""
        if self._keeper.poll() is not None:
            self._close_pipe()
            self._start()

    def close(self) -> None:
        """Dismiss the keeper; call it when no child is left."""
        for group in list(self._groups):
            self._tell(f"-{group}")
        self._groups.clear()
        self._close_pipe()
        self._keeper.wait()

    def _close_pipe(self) -> None:
        if self._keeper.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._keeper.stdin.close()
