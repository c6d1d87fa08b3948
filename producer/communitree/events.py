"""What has happened to a job, read from its one stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from communitree_shared.contract.results import Answer
from communitree_shared.errors import InfrastructureError
from communitree_shared.ledger.jobs import ENDED, Jobs
from communitree_shared.ledger.keeping import LOST

#: The last event of every job.
ENDED_EVENT = "job.ended"

#: A piece of the answer, with the field `text`.
DELTA_EVENT = "answer.delta"

#: All pieces before it are void: the stream broke, or another worker writes the answer.
RESTART_EVENT = "answer.restart"

#: Something that the caller should know, with the field `message`.
WARNING_EVENT = "warning"

#: Events are missing here, so many as the field `count` says: more came than are kept, or than the reader kept up with.
LOST_EVENT = LOST

#: An `at` above this is in milliseconds, as older workers write it (and `ok` as `1`).
_MILLISECONDS = 1e11

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
        return cls(stream_id, seq, kind, at / 1000 if at > _MILLISECONDS else at, fields)

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
        return text in {"true", "1"}
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


class Gaps:
    """Finds events that are missing, by their numbers. `seen`: the number of the last one that the reader knows."""

    def __init__(self, seen: int = 0) -> None:
        self.seen = seen

    def told(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events, and before each that does not follow the last one an event `lost`."""
        for event in events:
            if event.seq <= self.seen:  # the job was taken up again after a loss of Redis, and counts anew
                self.seen = 0
            if (missing := event.seq - self.seen - 1) > 0:
                yield Event(_before(event.id), self.seen + 1, LOST_EVENT, event.at, {"count": missing})
            self.seen = event.seq
            yield event


def _before(stream_id: str) -> str:
    """Return an id of the stream after which the entry of this id comes next."""
    ms, _, n = stream_id.partition("-")
    return f"{ms}-{int(n) - 1}" if int(n or 0) else f"{int(ms) - 1}-{2**64 - 1}"


def _number(jobs: Jobs, job: str, event: str) -> int:
    """Return the number of an event, by its id; 0 where it is gone."""
    found = jobs.ledger.events(jobs.tenant, job, _before(event), most=1)
    return int(found[0][1].get("seq", 0)) if found and found[0][0] == event else 0


def past(jobs: Jobs, job: str) -> list[Event]:
    """Return the events of a job so far; `lost` first, where they are more than are kept."""
    return list(Gaps().told(Event.of(i, raw) for i, raw in jobs.ledger.events(jobs.tenant, job)))


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

    Goes on through a Redis that is away for a while and through a job that was rebuilt from the object store. Where
    events are missing, an event `lost` says how many (at most, where the event of `after` is gone, too).

    Raises:
        TimeoutError: the job has not ended within `timeout` seconds.
        InfrastructureError: Redis is away for good. JobLost: it has lost the job `lost_after` seconds ago.
    """
    waiting = _Waiting(jobs, job, timeout, lost_after)
    cursor = after or "-"
    gaps = Gaps(_number(jobs, job, after) if after else 0)
    while True:
        found = jobs.ledger.events(jobs.tenant, job, cursor, block_ms=waiting.block_ms)
        for event in gaps.told(Event.of(stream_id, raw) for stream_id, raw in found):
            cursor = event.id
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
