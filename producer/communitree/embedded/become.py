"""Become another program that ends with its parent. Run by path with `python -I -S`; imports nothing of ours.

    python -I -S become.py PARENT_PID SIGNAL PROGRAM ARGUMENT…

The kernel sends SIGNAL when the parent dies. This runs in the child itself because code between fork and exec
(`preexec_fn`) may deadlock when the parent has threads. Where there is no prctl, the keeper does the same, later.
"""

import os
import sys

_PR_SET_PDEATHSIG = 1


def _main() -> None:
    parent, signal_number, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before the kernel knew of our wish
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    _main()
