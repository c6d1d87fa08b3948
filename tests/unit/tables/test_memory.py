"""Memory is given back without a change to what is held."""

from __future__ import annotations

import pyarrow as pa

from communitree_workers.tables.memory import give_back


def test_what_is_held_stays_and_what_arrow_freed_goes() -> None:
    held = pa.array(["a" * 1000] * 10_000)
    allocated = pa.total_allocated_bytes()
    give_back()
    assert pa.total_allocated_bytes() == allocated
    assert held[9_999].as_py() == "a" * 1000
