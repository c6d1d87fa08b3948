"""What has happened to a job, read from its one stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from communitree_shared.contract.results import Answer
from communitree_shared.errors import InfrastructureError
from communitree_shared.ledger.jobs import ENDED, Jobs

#: The last event of every job.
ENDED_EVENT = "job.ended"

#: A piece of the answer, with the field `text`.
DELTA_EVENT = "answer.delta"

#: All pieces before it are void: the stream broke, or another worker writes the answer.
RESTART_EVENT = "answer.restart"

#: Something that the caller should know, with the field `message`.
WARNING_EVENT = "warning"

#: Fields that are words even where they look like numbers.
_WORDS = frozenset(("type", "stage", "kind", "unit", "text", "message", "reason", "title", "status", "corpus", "cause"))

_BLOCK_MS = 1000

#: Events come in bursts (a batch ends, and the next one): so many seconds of them are read together.
_GATHER = 0.005

#: So long a job may be unknown to Redis (which may have lost it) before following it is given up.
_LOST_SECONDS = 60.0


@dataclass(frozen=True)
class Event:
    """One event. `id` is where to go on reading; `at` is in unix seconds, by the clock of Redis."""

    id: str
    seq: int
    type: str
    at: float
    fields: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, stream_id: str, raw: dict[str, str]) -> Event:
        """Return an event from its stream entry, numbers as numbers."""
        fields: dict[str, Any] = {name: _value(name, text) for name, text in raw.items()}
        seq, kind, at = int(fields.pop("seq", 0)), str(fields.pop("type", "")), float(fields.pop("at", 0))
        return cls(stream_id, seq, kind, at / 1000, fields)

    def as_json(self) -> dict[str, Any]:
        """Return it flat: seq, at, type, then its fields."""
        return {"seq": self.seq, "at": self.at, "type": self.type, **self.fields}


@dataclass(frozen=True)
class Restart:
    """Stands in a stream of an answer's text where it begins again: what came before is void."""


def text_of(events: Iterable[Event | None]) -> Iterator[str | Restart]:
    """Yield the pieces of an answer's text among a job's events, and Restart where told pieces are void."""
    told = False
    for event in events:
        if event is None:
            continue
        if event.type == DELTA_EVENT:
            told = True
            yield str(event.fields.get("text", ""))
        elif event.type == RESTART_EVENT and told:
            told = False
            yield Restart()


def to_the_end(pieces: Iterable[str | Restart], wait: Callable[[], Answer]) -> Iterator[str | Restart | Answer]:
    """Yield the pieces of an answer's text, what is missing of it, and the answer: the text is the answer's then."""
    told = ""
    for piece in pieces:
        told = "" if isinstance(piece, Restart) else told + piece
        yield piece
    answer = wait()
    if told and told != answer.answer:  # its worker died, or the job was cancelled
        yield Restart()
    if answer.answer and told != answer.answer:
        yield answer.answer
    yield answer


def _value(name: str, text: str) -> Any:
    if name in _WORDS:
        return text
    if name == "ok":
        return text == "1"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def past(jobs: Jobs, job: str) -> list[Event]:
    """Return the events of a job so far."""
    return [Event.of(i, raw) for i, raw in jobs.ledger.events(jobs.tenant, job)]


class JobLost(InfrastructureError):
    """Redis does not know the job any more, and nobody has taken it up again."""


class _Waiting:
    """How long a job is waited for."""

    def __init__(self, jobs: Jobs, job: str, timeout: float | None, lost_after: float) -> None:
        self._jobs, self._job, self._timeout, self._lost_after = jobs, job, timeout, lost_after
        self._end = None if timeout is None else time.monotonic() + timeout
        self._lost_since: float | None = None

    @property
    def block_ms(self) -> int:
        """Return how long the next read may block."""
        left = _BLOCK_MS if self._end is None else int(1000 * (self._end - time.monotonic()))
        return max(1, min(_BLOCK_MS, left))

    def in_vain(self) -> bool:
        """Say, after a read that found nothing, whether the job has ended.

        Raises:
            TimeoutError, JobLost: as `follow`.
        """
        state = self._jobs.record(self._job).get("state", "")
        if state in ENDED:
            return True
        now = time.monotonic()
        self._lost_since = (self._lost_since or now) if state == "lost" else None
        if self._lost_since is not None and now - self._lost_since > self._lost_after:
            raise JobLost(
                f"Redis has lost job {self._job}.", hint=f"`communitree resume {self._job}` takes it up again."
            )
        if self._end is not None and now >= self._end:
            raise TimeoutError(f"job {self._job} has not ended within {self._timeout:g} s")
        return False


def ending(jobs: Jobs, job: str, timeout: float | None = None, *, lost_after: float = _LOST_SECONDS) -> Iterator[None]:
    """Yield about once a second until a job has ended: for who wants the end alone, and none of its many events.

    Raises:
        TimeoutError, InfrastructureError, JobLost: as `follow`.
    """
    waiting = _Waiting(jobs, job, timeout, lost_after)
    while not jobs.ledger.ended(jobs.tenant, job, waiting.block_ms) and not waiting.in_vain():
        yield None


def follow(
    jobs: Jobs, job: str, after: str = "", timeout: float | None = None, *, lost_after: float = _LOST_SECONDS
) -> Iterator[Event | None]:
    """Yield a job's events from its start (or after an event's id) until its last; None while nothing happens.

    Goes on through a Redis that is away for a while and through a job that was rebuilt from the object store.

    Raises:
        TimeoutError: the job has not ended within `timeout` seconds.
        InfrastructureError: Redis is away for good. JobLost: it has lost the job `lost_after` seconds ago.
    """
    waiting = _Waiting(jobs, job, timeout, lost_after)
    cursor = after or "-"
    while True:
        found = jobs.ledger.events(jobs.tenant, job, cursor, block_ms=waiting.block_ms)
        for stream_id, raw in found:
            cursor = stream_id
            event = Event.of(stream_id, raw)
            yield event
            if event.type == ENDED_EVENT:
                return
        if found:
            time.sleep(_GATHER)
            continue
        if waiting.in_vain() and not jobs.ledger.events(jobs.tenant, job, cursor):
            return
        yield None
        if cursor == "-":
            time.sleep(0.1)
