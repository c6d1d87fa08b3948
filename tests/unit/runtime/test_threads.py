from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

from communitree_workers.runtime.context import UnitContext
from communitree_workers.runtime.loop import LoopThread


def test_a_call_of_the_ledger_does_not_wait_behind_a_slow_store() -> None:
    loop = LoopThread()
    services, none = cast(Any, SimpleNamespace(loop=loop)), cast(Any, None)
    context = UnitContext(services, none, none, 1, None, lambda: False)
    slow, all_wait = threading.Event(), threading.Barrier(65)

    def read() -> None:
        all_wait.wait(20)
        slow.wait(20)

    reads = [loop.submit(context.to_thread(read)) for _ in range(64)]
    all_wait.wait(20)  # every thread of the store's pool is taken
    assert loop.submit(context.in_ledger(lambda: "told")).result(20) == "told"
    assert not any(future.done() for future in reads)
    slow.set()
    for future in reads:
        future.result(20)
