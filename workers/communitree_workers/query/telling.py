"""Pieces of an answer on their way to who follows its job: told a few times a second, taken back when void."""

from __future__ import annotations

import asyncio
import contextlib

from communitree_shared.errors import CommunitreeError
from communitree_workers.runtime.context import UnitContext

#: Streamed pieces are told together, at most so often (seconds).
_FLUSH = 0.1


class Telling:
    """`pieces` takes the text as it comes; `tell` runs beside until `done` is set, and then tells the rest."""

    def __init__(self, context: UnitContext) -> None:
        self.context = context
        self.pieces: list[str] = []
        self.done = asyncio.Event()
        self._told = False
        # An earlier attempt may have told something before its worker died.
        self._void = context.attempt > 1

    def restart(self) -> None:
        """Forget what was not told yet, and take back what was."""
        self.pieces.clear()
        self._void = self._void or self._told

    async def tell(self) -> None:
        """Append events to the job's stream: `answer.delta`, and `answer.restart` where all before it is void."""
        ended = False
        while not ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.done.wait(), _FLUSH)
            ended = self.done.is_set()
            if self._void:
                self._void = self._told = False
                await self._event("answer.restart")
            if self.pieces:
                text = "".join(self.pieces)
                self.pieces.clear()
                self._told = True
                await self._event("answer.delta", text=text)

    async def _event(self, kind: str, **fields: str) -> None:
        with contextlib.suppress(CommunitreeError):
            await self.context.in_ledger(lambda: self.context.tell(kind, **fields))


def tell_whole(context: UnitContext, text: str) -> asyncio.Task[None]:
    """Tell a text that is there already in one piece; return the task that does, to be awaited before the job's end."""
    told = Telling(context)
    told.pieces.append(text)
    told.done.set()
    return asyncio.get_running_loop().create_task(told.tell())
