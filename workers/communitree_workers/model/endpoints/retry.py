"""Which failures are tried again, and when.

Five waits of the six default tries lie in windows that grow by four and end past two minutes: an endpoint that is away
for a minute fails no unit, and calls that failed together do not come back together.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from communitree_shared.contract.results import Usage
from communitree_workers.model.endpoints.failure import CallFailed

#: Seconds after the first failure within which try 2, 3, 4 … starts, anywhere inside (full jitter).
WINDOWS = ((0.0, 1.9), (1.9, 7.5), (7.5, 30.0), (30.0, 120.0), (120.0, 180.0))

#: A refusal for too many requests is no failure of the call: it waits this long in all, however many tries that takes.
RATE_LIMITED_FOR = 600.0

#: Nobody waits for longer than this because a `Retry-After` says so; such a limit is a quota, and the call fails.
LONGEST_RETRY_AFTER = 600.0


def retry_after(header: str | None, now: float | None = None) -> float | None:
    """Return the seconds a `Retry-After` header asks for: a number or an HTTP date; None where it says neither."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


@dataclass(slots=True)
class Tries:
    """The tries of one call: counts them and what they cost, and says how long to wait for the next.

    `spread` scales the windows (1.0 = two minutes); tests shrink it.
    """

    limit: int
    rng: random.Random
    spread: float = 1.0
    made: int = 0
    failed: int = 0
    limited: int = 0
    first_failure: float | None = None
    first_limit: float | None = None
    paid: Usage = field(default_factory=Usage)

    def wait(self, failure: CallFailed, now: float, remaining: float | None = None) -> float | None:
        """Return the seconds until the next try, None when there is none.

        `now` is a monotonic clock, `remaining` what is left until the deadline: jitter alone never waits past half of
        it, a `Retry-After` is kept whatever it costs.
        """
        if not failure.retryable or (failure.retry_after or 0.0) > LONGEST_RETRY_AFTER:
            return None
        if failure.rate_limited:
            self.first_limit = now if self.first_limit is None else self.first_limit
            if now - self.first_limit > RATE_LIMITED_FOR * self.spread:
                return None
            window = WINDOWS[min(self.limited, 2)]
            self.limited += 1
            wait = self.rng.uniform(0.0, window[1]) * self.spread
        else:
            self.first_failure = now if self.first_failure is None else self.first_failure
            self.failed += 1
            if self.failed >= self.limit:
                return None
            wait = self._window(now - self.first_failure)
        if failure.retry_after is not None:
            # A little later than told, each by a different amount: the wait itself must not gather the crowd.
            return failure.retry_after + self.rng.uniform(0.0, min(1.0, 0.1 * failure.retry_after + 0.1))
        return wait if remaining is None else min(wait, max(0.0, remaining) / 2)

    def _window(self, elapsed: float) -> float:
        index = self.failed - 1
        low, high = WINDOWS[min(index, len(WINDOWS) - 1)]
        later = 60.0 * max(0, index - len(WINDOWS) + 1)
        target = self.rng.uniform(low + later, high + later) * self.spread
        # A try that itself ran into its time limit has used up the window; do not start the next at the same instant.
        return max(target - elapsed, self.rng.uniform(0.0, min(1.9, WINDOWS[0][1])) * self.spread)
