"""End what a killed `communitree up` leaves behind. Run by path with `python -I -S`; imports nothing of ours.

It reads `+GROUP SIGNAL` and `-GROUP` lines from a pipe that only `up` holds. End of file means that `up` is gone,
in whatever way: every process group still on the list gets its signal, then SIGKILL. The kernel's parent-death
signal reaches children only; the groups reach a worker's own children too, and work without prctl.
"""

import contextlib
import os
import signal
import sys
import time

_GRACE = 5.0


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: dict[int, int] = {}
    for line in sys.stdin:
        group, _, number = line[1:].strip().partition(" ")
        if line[0] == "+":
            groups[int(group)] = int(number)
        else:
            groups.pop(int(group), None)
    for group, number in groups.items():
        with contextlib.suppress(OSError):
            os.killpg(group, number)
    end = time.monotonic() + _GRACE
    while any(map(_alive, groups)) and time.monotonic() < end:
        time.sleep(0.05)
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _main()
