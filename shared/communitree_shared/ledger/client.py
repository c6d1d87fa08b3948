"""The ledger's scripts as methods. Times are milliseconds of the Redis server's clock."""

from __future__ import annotations

import importlib.resources
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

import redis

from communitree_shared import crash
from communitree_shared.errors import IntegrityError, ServerRefuses
from communitree_shared.faults import of_redis
from communitree_shared.ledger.query import QueryLedger
from communitree_shared.ledger.stages import Stage, Step, compact
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import where_of
from communitree_shared.trouble import trouble_with

T = TypeVar("T")

#: Messages of a stage beyond this many are staged in parts, so that no single command is huge; parts live so long (s).
STAGING_ABOVE = 500
STAGING_TTL = 600

#: So many units of a stage are expired by one script, each some thirty commands.
EXPIRED_AT_ONCE = 100


@dataclass(frozen=True)
class Outgoing:
    """A message in the outbox: it must be published, then marked as published."""

    member: str
    queue: str
    body: str


@dataclass(frozen=True)
class Begun:
    """What `begin` allows: the attempt number of each unit that may be worked on now.

    `request`: the job's request (JSON), if it was wanted and the ledger has it.
    """

    state: str
    deadline: float | None
    attempts: dict[str, int]
    verdicts: dict[str, str]
    outgoing: list[Outgoing]
    request: str = ""


class Arrival(NamedTuple):
    """The end of a unit. `outcome` is kept with the stage, `event` is told to who follows the job."""

    unit: str
    ok: bool
    outcome: dict[str, Any]
    event: dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What may be open before a submission is refused: jobs and units that have not ended, of a tenant and of all."""

    jobs: int = 10_000
    all_jobs: int = 100_000
    units: int = 2_000_000
    all_units: int = 10_000_000


@cache
def _source(name: str) -> str:
    folder = importlib.resources.files("communitree_shared.ledger") / "scripts"
    return (folder / "prelude.lua").read_text() + (folder / f"{name}.lua").read_text()


def _outgoing(triples: Sequence[str]) -> list[Outgoing]:
    return [Outgoing(*triples[i : i + 3]) for i in range(0, len(triples), 3)]


class Ledger(QueryLedger):
    """One Redis client's view of the ledger.

    Every method waits out a Redis that is away for up to `patience` seconds, then raises InfrastructureError; one that
    refuses us (password, rights, memory) for up to `refusal_patience` seconds, then ServerRefuses.
    All scripts may be repeated: a call whose reply was lost changes nothing the second time.
    """

    def __init__(self, client: redis.Redis, *, patience: float = 120.0, refusal_patience: float = 0.0) -> None:
        self.redis = client
        self.patience, self.refusal_patience = patience, refusal_patience
        self._where = where_of(client)
        self.token = uuid.uuid4().hex
        self._scripts: dict[str, Any] = {}

    # --- jobs -----------------------------------------------------------------------------------------------

    def submit(
        self, tenant: str, job: str, record: dict[str, str], first: Step, *, lock: str = "", in_flight: str = "",
        limits: Limits = Limits(), deadline_ms: int = 0, request: str = "",
    ) -> tuple[str, str, list[Outgoing]]:  # fmt: skip
        """Record a job and its first step. Returns (`ok`|`exists`|`busy`|`shared`|`full`, detail, outgoing)."""
        reply = self._run(
            "submit", tenant, job, compact(record), compact(first.spec(tenant, job)), lock, in_flight, deadline_ms,
            limits.jobs, limits.all_jobs, limits.units, limits.all_units, request,
        )  # fmt: skip
        if reply[0] == "ok":
            return "ok", job, _outgoing(reply[1:])
        return reply[0], reply[1], []

    def record(self, tenant: str, job: str) -> dict[str, str]:
        """Return a job's record; empty where there is none."""
        return self._call(lambda: dict(self.redis.hgetall(rk.job(tenant, job))))  # type: ignore[arg-type]

    def update(self, tenant: str, job: str, fields: dict[str, str]) -> None:
        """Set fields of an open job's record."""
        key = rk.job(tenant, job)

        def update() -> None:
            if self.redis.exists(key):
                self.redis.hset(key, mapping=dict[Any, Any](fields))

        self._call(update)

    def first(self, tenant: str, job: str, what: str, unit: str) -> bool:
        """Say whether a unit is the first of an open job to claim something; it stays so when it is tried again."""
        key = rk.job(tenant, job)

        def claim() -> bool:
            if not self.redis.exists(key):
                return False
            return bool(self.redis.hsetnx(key, what, unit)) or self.redis.hget(key, what) == unit

        return self._call(claim)

    def jobs(self, tenant: str, limit: int = 100) -> list[str]:
        """Return the newest jobs of a tenant."""
        return self._call(lambda: list(self.redis.zrevrange(rk.jobs(tenant), 0, limit - 1)))  # type: ignore[arg-type]

    def finish(
        self, tenant: str, job: str, state: str, summary: dict[str, str], ttl_s: float, reason: str = "",
        result: str = "",
    ) -> tuple[str, list[Outgoing]]:  # fmt: skip
        """End a job, once. `result` (JSON, small) is kept for a minute, for those who wait for it.

        Returns (`ok`|`already`|`gone`, messages of others that may go now).
        """
        reply = self._run("finish", tenant, job, state, compact(summary), int(ttl_s * 1000), reason, result)
        return reply[0], _outgoing(reply[1:])

    def cancel(self, tenant: str, job: str, call: str, ttl_s: float, reason: str = "") -> tuple[str, list[Outgoing]]:
        """Take one caller from a job; the last one ends it. A `call` counts once, however often it is made.

        Returns (`detached`|`cancelled`|`ended`|`gone`, messages of others that may go now).
        """
        reply = self._run("cancel", tenant, job, call, int(ttl_s * 1000), reason)
        return reply[0], _outgoing(reply[1:])

    # --- stages ---------------------------------------------------------------------------------------------

    def open(
        self, tenant: str, job: str, stage: Stage, messages: list[tuple[str, str, list[str], str]]
    ) -> tuple[str, list[Outgoing]]:
        """Seal a stage. Returns (`ok`|`exists`|`gone`, outgoing); a stage that exists stays as it is.

        Raises:
            IntegrityError: a unit stands in it twice: it would arrive once, and the stage never close.
        """
        every = [unit for _, _, units, _ in messages for unit in units]
        if len(set(every)) < len(every):
            twice = next(unit for unit, n in Counter(every).items() if n > 1)
            raise IntegrityError(f"The unit {twice} stands twice in the stage {stage.stage} of job {job}.")
        spec = compact(stage.spec(tenant, job, len(every)))
        flat = [part for i, q, units, body in messages for part in (i, q, compact(units), body)]
        if len(messages) <= STAGING_ABOVE:
            reply = self._run("open", tenant, job, spec, "", *flat)
        else:
            reply = ["again"]
            while reply[0] == "again":  # its parts outlive any pause but the longest
                staging = rk.staging(tenant, job, uuid.uuid4().hex)
                for n, start in enumerate(range(0, len(flat), 4 * STAGING_ABOVE)):
                    part = flat[start : start + 4 * STAGING_ABOVE]
                    self._run("stage", staging, n, STAGING_TTL * 1000, *part)
                reply = self._run("open", tenant, job, spec, staging)
        return reply[0], _outgoing(reply[1:])

    def step(self, tenant: str, job: str, step: Step) -> list[Outgoing]:
        """Open a stage of one unit; one that exists stays as it is."""
        return _outgoing(self._run("step", tenant, job, compact(step.spec(tenant, job)))[1:])

    def begin(
        self, tenant: str, job: str, stage: str, message: str, units: list[str], lease_s: float, allowed: int,
        *, wants_request: bool = False, direct: bool = False,
    ) -> Begun:  # fmt: skip
        """Ask for leases on a message's units, and count the attempt. `direct`: it did not come through its queue."""
        nonce = uuid.uuid4().hex
        state, deadline, request, n, *rest = self._run(
            "begin", tenant, job, stage, message, self.token, int(lease_s * 1000), allowed, nonce, int(wants_request),
            int(direct), *units,
        )  # fmt: skip
        verdicts = {unit: rest[2 * i] for i, unit in enumerate(units)}
        attempts = {unit: int(rest[2 * i + 1]) for i, unit in enumerate(units) if verdicts[unit] == "go"}
        until = float(deadline) if deadline else None
        return Begun(state, until, attempts, verdicts, _outgoing(rest[2 * int(n) :]), request)

    def arrive(
        self, tenant: str, job: str, stage: str, unit: str, *, ok: bool, outcome: dict[str, Any], event: dict[str, Any]
    ) -> tuple[str, list[Outgoing]]:
        """Record the end of a unit. Returns (`new`|`duplicate`|`closed`|`gone`, outgoing)."""
        (status,), outgoing = self.arrive_all(tenant, job, stage, [Arrival(unit, ok, outcome, event)])
        return status, outgoing

    def arrive_all(
        self, tenant: str, job: str, stage: str, arrivals: Sequence[Arrival]
    ) -> tuple[list[str], list[Outgoing]]:
        """Record the ends of units of one message in one step, one after the other. Returns as `arrive`, for each."""
        flat: list[Any] = []
        for unit, ok, outcome, event in arrivals:
            fields = [str(part) for pair in event.items() for part in pair]
            flat += [unit, int(ok), compact({**outcome, "ok": ok}), compact(fields)]
        reply = self._run("arrive", tenant, job, stage, *flat)
        n = int(reply[0])
        return list(reply[1 : 1 + n]), _outgoing(reply[1 + n :])

    def give_back(
        self, tenant: str, job: str, stage: str, unit: str, *, delay_s: float, refund: bool, why: str = "",
        owner: str = "",
    ) -> None:  # fmt: skip
        """End a lease of ours after a delay: the unit is tried again; `refund`: it was no attempt.

        `owner`: a child of ours that died with the unit's message in its hands. What it had not begun is tried again,
        too.
        """
        self._run(
            "give_back", tenant, job, stage, unit, owner or self.token, int(delay_s * 1000), int(refund), why,
            int(bool(owner)),
        )  # fmt: skip

    def renew(self, members: list[str], lease_s: float) -> list[str]:
        """Keep leases alive that are ours or our children's (`<our token>:…`); returns those that no longer are."""
        return list(self._run("renew", self.token, int(lease_s * 1000), *members)) if members else []

    def expire(self, tenant: str, job: str, stage: str, cause: str) -> list[Outgoing]:
        """End all units of a stage that have not ended, in short scripts; who is cut off in between may begin anew."""
        outgoing: list[Outgoing] = []
        cursor, more = "0", True
        while more:
            status, cursor, *triples = self._run("expire", tenant, job, stage, cause, cursor, EXPIRED_AT_ONCE)
            outgoing += _outgoing(triples)
            more = status == "more"
        return outgoing

    def outcomes(self, tenant: str, job: str, stage: str) -> dict[str, dict[str, Any]]:
        """Return the outcome of every ended unit of a stage."""
        key = rk.stage(tenant, job, stage) + ":done"
        done: dict[str, str] = self._call(lambda: dict(self.redis.hgetall(key)))  # type: ignore[arg-type]
        return {unit: json.loads(body) for unit, body in sorted(done.items())}

    def stage_record(self, tenant: str, job: str, stage: str) -> dict[str, str]:
        """Return a stage's record (total, done, failed, state, opened, closed …)."""
        return self._call(lambda: dict(self.redis.hgetall(rk.stage(tenant, job, stage))))  # type: ignore[arg-type]

    def stage_names(self, tenant: str, job: str) -> list[str]:
        """Return the names of a job's stages."""
        return sorted(self._call(lambda: set(self.redis.smembers(rk.stages(tenant, job)))))  # type: ignore[arg-type]

    # --- outbox and events ------------------------------------------------------------------------------------

    def published(self, outgoing: list[Outgoing]) -> None:
        """Take published messages out of the outbox."""
        if outgoing:
            self._call(lambda: self.redis.zrem(rk.OUTBOX, *[o.member for o in outgoing]))

    def overdue(
        self, outbox_age_s: float, lost_age_s: float, cap: int = 500, lease_s: float = 15.0, *, outage: bool = False
    ) -> list[tuple[str, Outgoing]]:
        """Return (why, message) of what must be published again. `outage`: nobody could renew a lease just now."""
        reply = self._run(
            "overdue", int(outbox_age_s * 1000), int(lost_age_s * 1000), cap, int(lease_s * 1000), int(outage)
        )
        return [(reply[i], Outgoing(*reply[i + 1 : i + 4])) for i in range(0, len(reply), 4)]

    def park(self, queue: str, entry: str, most: int, ttl_s: float) -> str:
        """Keep a message for a newer worker. Returns `parked`, `there` (it waits already) or `full`."""
        return str(self._run("park", queue, entry, most, int(ttl_s * 1000)))

    def event(self, tenant: str, job: str, kind: str, **fields: Any) -> None:
        """Append an event to a job's stream, if the job is known."""
        self._run("event", tenant, job, kind, compact([str(p) for pair in fields.items() for p in pair]))

    def events(
        self, tenant: str, job: str, after: str = "-", block_ms: int = 0, most: int | None = None
    ) -> list[tuple[str, dict[str, str]]]:
        """Return (stream id, fields) of a job's events after a stream id, waiting up to `block_ms` for the first."""
        key = rk.events(tenant, job)
        if block_ms and after != "-":
            found: Any = self._call(lambda: self.redis.xread({key: after}, block=block_ms, count=1000))
            return list(found[0][1]) if found else []
        start = "-" if after == "-" else f"({after}"
        return self._call(lambda: list(self.redis.xrange(key, start, count=most)))  # type: ignore[arg-type]

    def ended(self, tenant: str, job: str, block_ms: int) -> bool:
        """Return whether a job has ended within the last minute, waiting up to `block_ms` for it."""
        return bool(self._call(lambda: self.redis.xread({rk.ended(tenant, job): "0"}, block=block_ms)))

    def value(self, key: str) -> str | None:
        """Return the value of a key."""
        return self._call(lambda: self.redis.get(key))  # type: ignore[return-value]

    def claim(self, key: str, value: str, ttl_s: float) -> str:
        """Give a key a value unless it has one; return the value it has."""

        def claim() -> str:
            taken = self.redis.set(key, value, nx=True, ex=int(ttl_s))
            return value if taken else str(self.redis.get(key) or value)

        return self._call(claim)

    def wait(self) -> None:
        """Wait until Redis answers."""
        self._call(self.redis.ping)

    # --- plumbing -------------------------------------------------------------------------------------------

    def _run(self, name: str, *args: Any) -> Any:
        script = self._scripts.get(name)
        if script is None:
            script = self._scripts[name] = self.redis.register_script(_source(name))
        crash.point(f"{name}.before")
        reply = self._call(lambda: script(args=args))
        crash.point(f"{name}.after")
        return reply

    def _call(self, action: Callable[[], T]) -> T:
        began = time.monotonic()
        until, refused_until = began + self.patience, began + self.refusal_patience
        trouble = trouble_with(f"Redis at {self._where}")  # not kept: a forked child has its own
        while True:
            fault = trouble.turn(until) if self.patience else None  # a heartbeat asks whenever it beats
            if fault is None:
                try:
                    found = action()
                except (redis.RedisError, OSError) as error:
                    fault = of_redis(error, self._where)
                    if fault is None:
                        raise
                else:
                    trouble.over()
                    return found
                waits = time.monotonic() < (refused_until if isinstance(fault, ServerRefuses) else until)
                trouble.met(fault, waits=waits)
            if time.monotonic() >= (refused_until if isinstance(fault, ServerRefuses) else until):
                raise type(fault)(fault.message, hint=fault.hint)
