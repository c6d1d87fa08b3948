"""Memory that was freed goes back to the system before a step that needs much of its own.

Whole columns come and go while tables are read and prepared. Arrow and the C library keep what is freed for later,
in pieces that the next large step does not fit into: at a million entities more than half a gigabyte.
"""

from __future__ import annotations

import ctypes
import sys

import pyarrow as pa


def give_back() -> None:
    """Return freed memory to the system, where the allocators can: a few milliseconds, and no effect on any value."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; musl has none
        if trim is not None:
            trim(0)
