"""What an endpoint can do, learned from its refusals: json_schema → json_object → plain text, optional parameters,
system messages, streams.

A refusal that names the thing is believed at once. One that does not (some servers answer a bare 500 to a schema) is a
guess: the next rung is tried, and only its success is remembered, for a short while.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson
import redis.asyncio
from redis.exceptions import RedisError

from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.link import Link

Mode = Literal["json_schema", "json_object", "text"]
Streams = Literal["followed", "always", "never"]

RUNGS: tuple[Mode, ...] = ("json_schema", "json_object", "text")

#: Seconds for which a plain refusal, and a guess, are remembered.
KNOWN_FOR = 24 * 3600.0
GUESSED_FOR = 600.0

_ABOUT_FORMAT = (
    "response_format", "response format", "json_schema", "json_object", "json schema", "json mode", "jsonschema",
    "structured output", "structured_output", "guided", "grammar", "'text' or", "format type",
)  # fmt: skip

_OPTIONAL = ("stream_options", "seed", "temperature", "prompt_cache_key")

_REFUSES = (
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra",
    "invalid",
    "unsupported",
)


@dataclass(frozen=True, slots=True)
class Abilities:
    """How a request to an endpoint and model may look."""

    mode: Mode = "json_schema"
    max_tokens_name: str = "max_tokens"
    dropped: frozenset[str] = frozenset()
    #: System messages are refused: instructions and data go as one user message.
    one_message: bool = False
    #: Replies come as streams when someone follows, always, or never.
    streams: Streams = "followed"
    #: Thinking comes without its opening mark, so that nothing may be told before its closing one.
    unopened: bool = False

    def to_json(self) -> bytes:
        """Return the stored form."""
        more = [self.one_message, self.streams, self.unopened]
        return orjson.dumps([self.mode, self.max_tokens_name, sorted(self.dropped), *more])

    @classmethod
    def from_json(cls, raw: bytes | str) -> Abilities:
        """Read the stored form; raises ValueError when it is none."""
        mode, name, dropped, *more = orjson.loads(raw)
        one_message: bool
        streams: Streams
        one_message, streams, unopened = more or (False, "followed", False)  # an older release kept three
        if mode not in RUNGS or streams not in ("followed", "always", "never"):
            raise ValueError(f"no rung of the ladder: {mode!r}, {streams!r}")
        return cls(mode, str(name), frozenset(map(str, dropped)), bool(one_message), streams, bool(unopened))


def below(mode: Mode) -> Mode | None:
    """Return the next rung down, None below plain text."""
    index = RUNGS.index(mode) + 1
    return RUNGS[index] if index < len(RUNGS) else None


def refused(abilities: Abilities, failure: CallFailed, wants_json: bool) -> Abilities | None:
    """Return what to try instead when a refusal names a parameter, a role or the reply's format, else None."""
    if failure.no_system and not abilities.one_message:
        return replace(abilities, one_message=True)
    if failure.only_stream and abilities.streams != "always":
        return replace(abilities, streams="always")
    if failure.no_stream and abilities.streams == "followed":
        return replace(abilities, streams="never")
    if failure.status not in (400, 404, 415, 422, 500, 501):
        return None
    text = failure.text
    if "max_completion_tokens" in text and abilities.max_tokens_name == "max_tokens":
        return replace(abilities, max_tokens_name="max_completion_tokens")
    lower = below(abilities.mode)
    if wants_json and lower is not None and any(sign in text for sign in _ABOUT_FORMAT):
        return replace(abilities, mode=lower)
    if failure.status in (400, 422) and any(sign in text for sign in _REFUSES):
        for name in _OPTIONAL:
            if name in text and name not in abilities.dropped:
                return replace(abilities, dropped=abilities.dropped | {name})
    return None


def suspected(
    abilities: Abilities, failure: CallFailed, wants_json: bool, proven: bool, failures: int
) -> Abilities | None:
    """Return what to try when a refusal may be about the format without saying so.

    Only on a rung that has never worked here. A 500 may be an accident, so the second one in a row counts.
    """
    lower = below(abilities.mode)
    if not wants_json or proven or lower is None or failure.too_long:
        return None
    if failure.status in (400, 422, 501) or (failure.status == 500 and failures >= 2):
        return replace(abilities, mode=lower)
    return None


@dataclass(slots=True)
class _Entry:
    abilities: Abilities
    until: float
    proven: set[Mode] = field(default_factory=set)


class Ladder:
    """Remembers abilities by endpoint and model: in the process, and in Redis for the others."""

    def __init__(self, client: redis.asyncio.Redis | None, key_prefix: str) -> None:
        self._redis = client
        self._prefix = key_prefix
        self._known: dict[str, _Entry] = {}
        self._fetching = asyncio.Lock()
        self._link = Link()

    def _key(self, kind: str) -> str:
        return f"{self._prefix}:limits:abilities:{kind}"

    async def start(self, kind: str, setting: Literal["auto", "json_schema", "json_object", "text"]) -> Abilities:
        """Return what is known of an endpoint; a mode that is set is taken as it is."""
        entry = self._known.get(kind)
        if entry is None or entry.until < time.monotonic():
            async with self._fetching:  # hundreds of calls begin together: one of them asks
                entry = self._known.get(kind)
                if entry is None or entry.until < time.monotonic():
                    found, left = await self._fetch(kind)
                    entry = self._known[kind] = _Entry(found or Abilities(), time.monotonic() + left)
        return entry.abilities if setting == "auto" else replace(entry.abilities, mode=setting)

    async def _fetch(self, kind: str) -> tuple[Abilities | None, float]:
        if self._redis is not None:
            with contextlib.suppress(RedisError, OSError, ValueError, TypeError):
                client, key = self._redis, self._key(kind)
                raw = await self._link.run(lambda: client.get(key))
                if raw is not None:
                    left = await self._link.run(lambda: client.pttl(key))
                    return Abilities.from_json(raw), max(1.0, left / 1000)
        return None, KNOWN_FOR

    def is_proven(self, kind: str, mode: Mode) -> bool:
        """Whether this rung has worked here since the process began."""
        entry = self._known.get(kind)
        return entry is not None and mode in entry.proven

    def worked(self, kind: str, mode: Mode) -> None:
        """Note that a rung works."""
        entry = self._known.get(kind)
        if entry is not None:
            entry.proven.add(mode)

    async def learn(self, kind: str, abilities: Abilities, *, guess: bool = False, keep_mode: bool = False) -> None:
        """Remember what an endpoint takes; `keep_mode`: the mode was set by hand and teaches nothing."""
        seconds = GUESSED_FOR if guess else KNOWN_FOR
        old = self._known.get(kind)
        if keep_mode and old is not None:
            abilities = replace(abilities, mode=old.abilities.mode)
        if old is not None and old.abilities == abilities:
            return
        self._known[kind] = _Entry(abilities, time.monotonic() + seconds, old.proven if old else set())
        if self._redis is not None:
            with contextlib.suppress(RedisError, OSError):
                client, key = self._redis, self._key(kind)
                await self._link.run(lambda: client.set(key, abilities.to_json(), ex=int(seconds)))
