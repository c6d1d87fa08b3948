"""A job's ceiling of money and tokens, kept in Redis and shared by all workers of the job.

A call reserves its estimate before it starts and settles what it really used, so that hundreds of calls in flight do
not overshoot the ceiling together. While calls under way hold what is left, others wait for them to settle.
"""

from __future__ import annotations

import importlib.resources
import uuid
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from communitree_shared.contract.results import Usage
from communitree_shared.errors import BudgetReached
from communitree_workers.model.link import Link

#: Milliseconds after which the reservation of a worker that died comes back; longer than a call with all its tries.
LEASE = 600_000

#: Seconds for which a job's spending is remembered after its last call.
TTL = 7 * 24 * 3600


class Hold:
    """What one call has reserved; `settle` ends it."""

    def __init__(self, budget: JobBudget, id: str) -> None:
        self._budget = budget
        self._id = id

    async def settle(self, usage: Usage) -> None:
        """Replace the reservation by what was used (an empty `Usage` for a call that failed)."""
        await self._budget._settle(usage, self._id)


class JobBudget:
    """One job's ceilings. `usd` and `tokens` (prompt and output together): None = no ceiling."""

    def __init__(
        self, client: redis.asyncio.Redis | None, key_prefix: str, tenant: str, job: str,
        *, usd: float | None = None, tokens: int | None = None,
    ) -> None:  # fmt: skip
        self.usd = usd
        self.tokens = tokens
        key = f"{key_prefix.rstrip(':')}:budget:{tenant}:{job}"
        self._keys = [key, f"{key}:held", f"{key}:until"]
        self._script: Any = None
        if client is not None:
            source = importlib.resources.files("communitree_workers.model") / "budget.lua"
            self._script = client.register_script(source.read_text(encoding="utf-8"))
        self._link = Link()
        self._spent = (0.0, 0)  # as last seen
        self._unsent = Usage()  # spent while Redis was away

    async def check(self) -> None:
        """Raise BudgetReached when the ceiling is reached."""
        if self.usd is None and self.tokens is None:
            return
        await self._ask("settle", Usage(), "")
        if (self.usd is not None and self._spent[0] >= self.usd) or (
            self.tokens is not None and self._spent[1] >= self.tokens
        ):
            raise self._reached()

    async def spent(self) -> tuple[float, int]:
        """Return USD and tokens spent so far by all workers."""
        await self._ask("settle", Usage(), "")
        return self._spent

    async def reserve(self, estimate: Usage) -> Hold | None:
        """Reserve a call's estimate; None while calls under way hold what is left: ask again.

        Raises:
            BudgetReached: the estimate does not fit under the ceiling.
        """
        if self.usd is None and self.tokens is None:
            return Hold(self, "")
        id = uuid.uuid4().hex[:16]
        answer = await self._ask("reserve", estimate, id)
        if answer == 1:
            raise self._reached()
        return None if answer == 2 else Hold(self, id)

    async def _settle(self, usage: Usage, id: str) -> None:
        if id or usage.calls or usage.prompt_tokens or usage.output_tokens:
            await self._ask("settle", usage, id)

    async def _ask(self, step: str, usage: Usage, id: str) -> int:
        settling = step == "settle"
        sum_ = usage + self._unsent if settling else usage
        if self._script is not None:
            try:
                args = [
                    step, -1 if self.usd is None else self.usd, -1 if self.tokens is None else self.tokens,
                    sum_.usd or 0.0, sum_.prompt_tokens + sum_.output_tokens, id, LEASE, TTL * 1000,
                ]  # fmt: skip
                answer, usd, tokens = await self._link.run(lambda: self._script(keys=self._keys, args=args))
            except (RedisError, OSError):
                pass  # counted here until Redis is back: the ceiling holds within this process
            else:
                if settling:
                    self._unsent = Usage()
                self._spent = (float(usd), int(tokens))
                return int(answer)
        usd_now = self._spent[0] + (usage.usd or 0.0)
        tokens_now = self._spent[1] + usage.prompt_tokens + usage.output_tokens
        if settling:
            self._spent = (usd_now, tokens_now)
            if self._script is not None:
                self._unsent = self._unsent + usage
            return 0
        over = (self.usd is not None and usd_now > self.usd) or (self.tokens is not None and tokens_now > self.tokens)
        return 1 if over else 0

    def _reached(self) -> BudgetReached:
        usd, tokens = self._spent
        parts = []
        if self.usd is not None:
            parts.append(f"{usd:.4f} of {self.usd:g} USD")
        if self.tokens is not None:
            parts.append(f"{tokens} of {self.tokens} tokens")
        return BudgetReached(
            f"The job's budget does not allow another call ({', '.join(parts)} spent).",
            hint="Raise --budget-usd or --budget-tokens.",
        )
