"""Our end of `communitree_shared.notify`: which of our children serve."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import tempfile
from pathlib import Path

from communitree_shared.notify import VARIABLE

#: Bytes of a socket's path, on any system.
_LONGEST = 100

_PID = re.compile(rb"^MAINPID=(\d+)$", re.MULTILINE)


class Ready:
    """A socket that children tell when they serve.

    Args:
        folder: where it stands; the temporary folder, if that path is too long for a socket.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ready.sock"
        self._own = len(os.fsencode(self._path)) > _LONGEST
        if self._own:
            self._path = Path(tempfile.mkdtemp(prefix="communitree-"), "ready.sock")
        self._path.unlink(missing_ok=True)  # of a killed stack
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(str(self._path))
        self.environment = {VARIABLE: str(self._path)}
        self.pids: set[int] = set()

    def hear(self) -> set[int]:
        """Take in what was told since; return the process ids of all that have said they serve."""
        with contextlib.suppress(BlockingIOError):
            while told := self.socket.recv(4096):
                if b"READY=1" in told.split(b"\n"):
                    self.pids |= {int(pid) for pid in _PID.findall(told)}
        return self.pids

    def close(self) -> None:
        """Close the socket and remove it."""
        self.socket.close()
        self._path.unlink(missing_ok=True)
        if self._own:
            self._path.parent.rmdir()
