"""Start `communitree up` as a child and wait until it is ready: for `demo` and for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from communitree.embedded.discover import read_stack
from communitree.embedded.home import Home
from communitree.embedded.process import Child, ChildSpec, stop
from communitree_shared.errors import InfrastructureError

#: Longer than the stack itself takes to stop: workers, then servers.
_GRACE = 20.0


class Launched:
    """A stack that runs as our child and ends with us; `with` stops it."""

    def __init__(self, child: Child, home: Path) -> None:
        self.child = child
        self.home = home

    def __enter__(self) -> Launched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id of `communitree up`."""
        return self.child.pid

    def stop(self) -> None:
        """Stop it as Ctrl-C does, and wait until nothing of it is left."""
        stop([self.child])

    def kill(self) -> None:
        """Kill `up` alone with SIGKILL, to see that nothing stays behind."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child.pid, signal.SIGKILL)
        self.child.popen.wait()


def launch(
    folder: Path, env: Mapping[str, str] | None = None, arguments: Sequence[str] = (), patience: float = 60.0
) -> Launched:
    """Start `communitree up` on a folder and return when its servers take data and its workers are started.

    Raises:
        InfrastructureError: it ended, or was not ready in time; the message has what it said.
    """
    home = Home(folder)
    home.prepare()
    environment = {**(os.environ if env is None else env), "COMMUNITREE_HOME": str(home.folder)}
    spec = ChildSpec(
        name="up",
        command=(sys.executable, "-P", "-m", "communitree", "up", *arguments),
        cwd=Path.cwd(),
        log=home.folder / "logs" / "up.log",
        pid_file=home.folder / "up.pid",  # not in run/: what is there is ended at the next start
        env=environment,
        grace=_GRACE,
    )
    child = Child(spec)
    end = time.monotonic() + patience
    try:
        while read_stack(home).get("pid") != child.pid:
            if (code := child.poll()) is not None:
                raise InfrastructureError(f"`communitree up` ended with code {code}: {child.tail()}")
            if time.monotonic() > end:
                raise InfrastructureError(f"`communitree up` was not ready after {patience:.0f} s: {child.tail()}")
            time.sleep(0.05)
    except BaseException:
        stop([child])
        raise
    return Launched(child, home.folder)
