"""What goes into a model call and what comes out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from communitree_shared.contract.results import Usage
from communitree_shared.errors import OutputCut

#: One message of a chat: `{"role": "system" | "user" | "assistant", "content": text}`.
Message = dict[str, str]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    """What every reply tells. `reason`: the endpoint's own name for how it ended, "" where it gave none.

    `read`: tokens of the prompt that the server says it read, 0 where it says nothing. `thought`: thinking was taken
    off. `repairs` counts the places at which the JSON was put right, a repair call included. `tries`: requests sent.
    """

    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    read: int = 0
    thought: bool = False
    repairs: int = 0
    tries: int = 1
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeReply(_Answered):
    """A reply that came to its end. `value`: the JSON in it, None where none was asked for or none could be read."""

    text: str
    value: Any = None

    def whole(self) -> WholeReply:
        """Return this reply."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class CutReply(_Answered):
    """A reply that ended before its end. It has neither `text` nor `value`: nobody shall take it for whole.

    `part`: the text that came; `held`: what could be read of its JSON, whose last member may be short, or None. `why`
    says what ended it, as part of a sentence.
    """

    part: str
    held: Any = None
    why: str = ""

    def whole(self) -> NoReturn:
        """Raise OutputCut: for a stage that can do nothing with a part."""
        raise OutputCut(
            f"The reply of {self.model!r} was cut off after {self.usage.output_tokens} tokens: {self.why}.",
            hint="Raise COMMUNITREE_LLM_MAX_TOKENS, or ask for less at once.",
        )


#: How a call ends that is no error. A stage that wants the text says first what it does with a cut one.
Reply = WholeReply | CutReply
