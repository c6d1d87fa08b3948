"""What goes into a model call and what comes out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from communitree_shared.contract.results import Usage

#: One message of a chat: `{"role": "system" | "user" | "assistant", "content": text}`.
Message = dict[str, str]

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call, independent of endpoint and model.

    `schema`: JSON Schema of the reply (used where the endpoint takes one; the prompt must state the shape in words
    anyway). `json`: the reply is JSON without a schema. `as_format`: the endpoint is told so where it takes that;
    otherwise the prompt alone asks for it. `prompt_tokens`: the caller's count, reserved at the limits; 0 means that it
    is guessed from the characters. `reply_words`: about how long a reply may get, reserved where nothing limits it.
    `on_token` is called in the loop's thread with each piece of a
    streamed reply; `on_restart` when a stream broke after pieces were handed out: the text starts again from nothing.
    """

    messages: Sequence[Message]
    schema: dict[str, Any] | None = None
    json: bool = False
    as_format: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    prompt_tokens: int = 0
    reply_words: int = 0
    on_token: Callable[[str], None] | None = None
    on_restart: Callable[[], None] | None = None

    @property
    def wants_json(self) -> bool:
        """Whether the reply is to be parsed."""
        return self.json or self.schema is not None

    @property
    def format_asked(self) -> bool:
        """Whether the endpoint is told that the reply is JSON."""
        return self.wants_json and self.as_format


class HoldHook(Protocol):
    """A call's part of a budget."""

    async def settle(self, usage: Usage) -> None:
        """Replace what was reserved by what was used."""


class BudgetHook(Protocol):
    """A job's ceiling of money and tokens; see `budget.JobBudget`."""

    usd: float | None

    async def reserve(self, estimate: Usage) -> HoldHook | None:
        """Reserve for a call; None: ask again; raises BudgetReached when it does not fit."""


@dataclass(slots=True)
class CallContext:
    """On whose behalf a call is made, and until when.

    `deadline` is absolute, in unix seconds. `cancelled` is an event or a cheap function, looked at before every try and
    a few times a second while one runs. `spent` adds up what the calls with this context have used, also where a call
    ended in an error. `bulk`: where others of its tenant wait for the limits, they are served first.
    """

    tenant: str = "default"
    job: str = ""
    deadline: float | None = None
    cancelled: asyncio.Event | Callable[[], bool] | None = None
    budget: BudgetHook | None = None
    bulk: bool = False
    spent: Usage = field(default_factory=Usage)

    def is_cancelled(self) -> bool:
        """Whether the job was cancelled."""
        if self.cancelled is None:
            return False
        return self.cancelled.is_set() if isinstance(self.cancelled, asyncio.Event) else self.cancelled()


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply. `value`: the parsed JSON, None where none was asked for or none could be read.

    `finish_reason` "length": the reply ended at its limit and `value` holds what came before. `repairs` counts the
    places at which the JSON was put right, a repair call included. `tries` counts requests sent.
    """

    text: str
    value: Any = None
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    repairs: int = 0
    tries: int = 1
    model: str = ""
