"""The same limits without Redis, in one process: what `acquire.lua` decides, decided here.

For a process that runs alone, and for every process while Redis is away: then with a share of the limits, never
without.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from communitree_shared.settings import ModelSettings

#: Milliseconds by which grants may run ahead of an even spread: enough to bridge the time between two looks.
SLACK = 300.0

#: In the place of a job: all bulk calls of a tenant. Together they get one turn where each of its jobs gets four.
BULK = "bulk"
BULK_COST = 4

#: Calls in flight of one process while Redis is away and no limit is set.
UNKNOWN_SHARE = 16

#: While Redis is away at least so many processes are taken to share an endpoint: the last count may be an old one.
FEWEST_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on one endpoint, model and key; 0 = none."""

    identity: str
    requests_per_minute: float = 0
    tokens_per_minute: float = 0
    concurrency: float = 0

    @classmethod
    def of(cls, identity: str, settings: ModelSettings) -> Limits:
        """Return the limits that a stage's settings name."""
        return cls(
            identity, settings.requests_per_minute or 0, settings.tokens_per_minute or 0, settings.concurrency or 0
        )

    @property
    def any(self) -> bool:
        """Whether there is any limit."""
        return bool(self.requests_per_minute or self.tokens_per_minute or self.concurrency)

    def strictest(self, other: Limits) -> Limits:
        """Return the lower of each limit."""

        def lower(a: float, b: float) -> float:
            return min(a, b) if a and b else a or b

        return Limits(
            self.identity,
            lower(self.requests_per_minute, other.requests_per_minute),
            lower(self.tokens_per_minute, other.tokens_per_minute),
            lower(self.concurrency, other.concurrency),
        )

    def share(self, processes: int) -> Limits:
        """Return one process's part while it cannot ask the others."""
        return Limits(
            self.identity,
            self.requests_per_minute / processes,
            self.tokens_per_minute / processes,
            max(1, math.floor(self.concurrency / processes)) if self.concurrency else UNKNOWN_SHARE,
        )


#: One flow's demand: tenant, job, waiting calls, estimated tokens of the first of them.
Demand = tuple[str, str, int, list[int]]


@dataclass(slots=True)
class Decision:
    """Which flows' calls may start now (indices, in order), and when to ask again, in milliseconds."""

    grants: list[int]
    wait: float = 0.0
    processes: int = 1


@dataclass(slots=True)
class LocalState:
    """What the script keeps in Redis. Times are milliseconds of any clock that does not go back."""

    request_time: float = 0.0
    token_time: float = 0.0
    cool_until: float = 0.0
    served: dict[tuple[str, str], float] = field(default_factory=dict)

    def settle(self, limits: Limits, delta: float, cool_down: float, now: float) -> None:
        """Correct the tokens of ended calls by `delta`, and begin a cool-down (ms) if there is to be one."""
        if limits.tokens_per_minute:
            self.token_time += delta * 60_000 / limits.tokens_per_minute
        if cool_down:
            self.cool_until = max(self.cool_until, now + cool_down)

    def decide(self, limits: Limits, flows: list[Demand], in_flight: int, now: float, most: int = 64) -> Decision:
        """Grant what may start at `now`; the least served tenant first, then its least served job."""
        decision = Decision([])
        left = [n for _, _, n, _ in flows]
        used = [0] * len(flows)
        while len(decision.grants) < most:
            waiting = [index for index, n in enumerate(left) if n > 0]
            if not waiting:
                break
            if now < self.cool_until:
                decision.wait = self.cool_until - now
                break
            if limits.concurrency and in_flight >= limits.concurrency:
                decision.wait = 50.0
                break
            if limits.requests_per_minute and self.request_time - now > SLACK:
                decision.wait = self.request_time - now - SLACK
                break
            if limits.tokens_per_minute and self.token_time - now > SLACK:
                decision.wait = self.token_time - now - SLACK
                break
            best = self._least_served(flows, waiting)
            tenant, job, _, sizes = flows[best]
            size = sizes[min(used[best], len(sizes) - 1)]
            for key, times in (((tenant, ""), 1), ((tenant, "/" + job), BULK_COST if job == BULK else 1)):
                self.served[key] = self.served.get(key, 0.0) + times * (1 + size / 1000)
            if limits.requests_per_minute:
                self.request_time = max(self.request_time, now) + 60_000 / limits.requests_per_minute
            if limits.tokens_per_minute:
                self.token_time = max(self.token_time, now) + size * 60_000 / limits.tokens_per_minute
            left[best] -= 1
            used[best] += 1
            in_flight += 1
            decision.grants.append(best)
        if len(self.served) > 4096:
            self.served.clear()
        return decision

    def _least_served(self, flows: list[Demand], waiting: list[int]) -> int:
        """Newcomers start level with the least served who waits, not with a claim on the past."""
        for first, name in ((True, ""), (False, "/")):
            known = [self.served[key] for i in waiting if (key := _key(flows[i], first)) in self.served]
            floor = min(known, default=0.0)
            for i in waiting:
                self.served.setdefault(_key(flows[i], first), floor)
            del name
        return min(waiting, key=lambda i: (self.served[_key(flows[i], True)], self.served[_key(flows[i], False)], i))


def _key(flow: Demand, tenant_only: bool) -> tuple[str, str]:
    return (flow[0], "" if tenant_only else "/" + flow[1])
