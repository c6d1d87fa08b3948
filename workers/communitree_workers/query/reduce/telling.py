"""An answer on its way to who follows its job: told a few times a second, as it will stand, taken back when void."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from communitree_shared.errors import CommunitreeError
from communitree_workers.query.answer.checking import Checked, Checker
from communitree_workers.runtime.context import UnitContext

#: Streamed pieces are told together, at most so often (seconds).
_FLUSH = 0.1


class Telling:
    """`pieces` takes text that is ready; `tell` runs beside until `done` is set, and then tells the rest."""

    def __init__(self, context: UnitContext) -> None:
        self.context = context
        self.pieces: list[str] = []
        self.done = asyncio.Event()
        self.gather: Callable[[], None] = lambda: None  # adds what has become ready meanwhile
        self._told: list[str] = []
        # An earlier attempt may have told something before its worker died.
        self._void = context.attempt > 1

    @property
    def text(self) -> str:
        """What stands before a reader by now."""
        return "".join(self._told)

    def restart(self) -> None:
        """Forget what was not told yet, and take back what was."""
        self.pieces.clear()
        self._void = self._void or bool(self._told)

    async def tell(self) -> None:
        """Append events to the job's stream: `answer.delta`, and `answer.restart` where all before it is void."""
        ended = False
        while not ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.done.wait(), _FLUSH)
            ended = self.done.is_set()
            self.gather()
            if self._void:
                self._void = False
                self._told.clear()
                await self._event("answer.restart")
            text = "".join(self.pieces)
            self.pieces.clear()
            if text:
                self._told.append(text)
                await self._event("answer.delta", text=text)

    async def settle(self, text: str) -> None:
        """Take back what was told, unless it is this text, and tell this one; after the end of `tell`."""
        if self.text != text:
            self.restart()
            self.pieces.append(text)
            await self.tell()

    async def _event(self, kind: str, **fields: str) -> None:
        with contextlib.suppress(CommunitreeError):
            await self.context.in_ledger(lambda: self.context.tell(kind, **fields))


class Writing:
    """The text of a model that streams, checked on its way: a reader sees the marks that the answer will have."""

    def __init__(self, told: Telling, opening: str, checker: Callable[[], Checker]) -> None:
        """`opening`: stands before the text; `checker`: makes a new one, for each time that the text begins."""
        self._told, self._opening, self._new = told, opening, checker
        self._begin()
        told.gather = self._flush

    def _begin(self) -> None:
        self._pieces: list[str] = []
        self._raw, self._shown = "", 0
        self._checker = self._new()

    def take(self, piece: str) -> None:
        """Take the next piece of the model's text: a token, so they are checked some at a time."""
        self._pieces.append(piece)

    def restart(self) -> None:
        """Begin again: what came so far is no part of the text."""
        self._told.restart()
        self._begin()

    def close(self, text: str) -> Checked:
        """Return the checked text. `text`: the reply as a whole, which need not be what was streamed."""
        self._flush()
        if self._raw != text:
            self.restart()
            self._pieces.append(text)
            self._flush()
        checked = self._checker.close()
        self._told.pieces.append(checked.text[self._shown :])
        self._begin()
        return checked

    def _flush(self) -> None:
        if not self._pieces:
            return
        raw = "".join(self._pieces)
        self._pieces.clear()
        text = self._checker.feed(raw)
        self._told.pieces += [text] if self._raw else [self._opening, text]
        self._raw, self._shown = self._raw + raw, self._shown + len(text)


def tell_whole(told: Telling, text: str) -> asyncio.Task[None]:
    """Tell a text that is there already in one piece; return the task that does, to be awaited before the job's end."""
    told.pieces.append(text)
    told.done.set()
    return asyncio.get_running_loop().create_task(told.tell())
