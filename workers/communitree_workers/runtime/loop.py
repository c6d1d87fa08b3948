"""Where coroutines run: one event loop a process, for its whole life."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

#: So long (s) the end of a loop may take.
CLOSING = 5.0


def _fast_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop, which needs half the time for a small request; asyncio's where there is no uvloop."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


async def _end(last: Iterable[Coroutine[Any, Any, Any]]) -> None:
    await asyncio.gather(*last, return_exceptions=True)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class LoopThread:
    """An event loop in a thread of its own: hundreds of model calls in flight, submitted from pool threads."""

    def __init__(self) -> None:
        self.loop = _fast_loop()
        # Reads and writes of objects, so that a slow store does not hold up the loop.
        self._objects = concurrent.futures.ThreadPoolExecutor(64, thread_name_prefix="objects")
        self.loop.set_default_executor(self._objects)
        # Calls of the ledger have threads of their own: behind sixty-four reads of a slow store none would be told.
        self.ledger_calls = concurrent.futures.ThreadPoolExecutor(16, thread_name_prefix="ledger")
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def close(self, last: Iterable[Coroutine[Any, Any, Any]] = ()) -> None:
        """Run what is to be done last, end all coroutines, and wait until the loop's thread and its helpers have ended.

        A thread in the loop's C code while the interpreter goes down around it takes the process with it.
        """
        with contextlib.suppress(Exception):  # it hangs, or fails: the process ends nevertheless
            self.submit(_end(last)).result(CLOSING)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSING)
        for helpers in (self._objects, self.ledger_calls):
            helpers.shutdown(wait=False, cancel_futures=True)

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine; cancelling the future cancels the coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)


class LoopHere:
    """An event loop in the calling thread, for processes that compute and await nothing for long."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def close(self, last: Iterable[Coroutine[Any, Any, Any]] = ()) -> None:
        """Run what is to be done last, and close the loop."""
        self.loop.run_until_complete(_end(last))
        self.loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine to its end and return its finished future."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            future.set_result(self.loop.run_until_complete(work))
        except Exception as error:
            future.set_exception(error)
        return future
