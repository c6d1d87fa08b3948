"""Stops the calls of cancelled jobs while they run: one task looks after all calls of a process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from communitree_shared.errors import Cancelled
from communitree_workers.model.chat import CallContext

#: Seconds between two looks.
EVERY = 0.25


class Watch:
    """The calls under way whose jobs can be cancelled."""

    def __init__(self) -> None:
        self._watched: dict[asyncio.Task[Any], CallContext] = {}
        self._stopped: set[asyncio.Task[Any]] = set()
        self._looking: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def over(self, context: CallContext) -> Iterator[None]:
        """Watch the current task while the block runs.

        Raises:
            Cancelled: the job was cancelled; what the block awaited was stopped.
        """
        task = asyncio.current_task()
        if context.cancelled is None or task is None:
            yield
            return
        self._watched[task] = context
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._stopped or task.uncancel() > 0:
                raise
            raise Cancelled("The job was cancelled.") from None
        finally:
            self._watched.pop(task, None)
            self._stopped.discard(task)

    async def _look(self) -> None:
        while self._watched:
            for task, context in list(self._watched.items()):
                if task not in self._stopped and context.is_cancelled():
                    self._stopped.add(task)
                    task.cancel()
            await asyncio.sleep(EVERY)

    def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
