"""What the ledger holds for one query between its plan and its answer, each read in one round trip."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import redis

from communitree_shared.ledger.entry import models_text
from communitree_shared.redis_server import rediskeys as rk

T = TypeVar("T")

#: A plan goes when its job ends; one that is made for a job that has ended meanwhile goes by itself (s).
PLAN_TTL = 30 * 24 * 3600


class QueryLedger:
    """The part of the ledger that only queries use."""

    redis: redis.Redis

    @abstractmethod
    def _call(self, action: Callable[[], T]) -> T:
        """Run a command, waiting out a Redis that is away."""

    def tell_models(self, models: str) -> None:
        """Say which models answer questions (`entry.models_text`); clients look answers up by them."""
        self._call(lambda: self.redis.set(rk.MODELS, models))

    def planned_with(self, tenant: str, job: str, models: Mapping[str, str]) -> None:
        """Write the models of a job's stages into its record, and say that they answer questions now."""
        key = rk.job(tenant, job)

        def tell() -> None:
            pipe = self.redis.pipeline(transaction=False)
            pipe.set(rk.MODELS, models_text(models))
            pipe.exists(key)
            if pipe.execute()[1]:
                self.redis.hset(key, "models", json.dumps(dict(models)))

        self._call(tell)

    def keep_plan(self, tenant: str, job: str, plan: str) -> dict[str, str]:
        """Keep a query's plan (JSON) until the job's end; returns the job's record."""

        def keep() -> dict[str, str]:
            pipe = self.redis.pipeline(transaction=False)
            pipe.set(rk.plan(tenant, job), plan, ex=PLAN_TTL)
            pipe.hgetall(rk.job(tenant, job))
            return dict(pipe.execute()[1])

        return self._call(keep)

    def keep_answer(self, key: str, job: str, ttl_s: float) -> None:
        """Remember the job that has answered a question (`rediskeys.answer`)."""
        self._call(lambda: self.redis.set(key, job, ex=int(ttl_s)))

    def drop_answer(self, key: str) -> None:
        """Forget it."""
        self._call(lambda: self.redis.delete(key))

    def gathered(self, tenant: str, job: str, stage: str) -> tuple[str | None, dict[str, dict[str, Any]]]:
        """Return a query's plan, None where there is none, and the outcome of every ended unit of a stage."""

        def read() -> tuple[str | None, dict[str, str]]:
            pipe = self.redis.pipeline(transaction=False)
            pipe.get(rk.plan(tenant, job))
            pipe.hgetall(rk.stage(tenant, job, stage) + ":done")
            plan, done = pipe.execute()
            return plan, done

        plan, done = self._call(read)
        return plan, {unit: json.loads(body) for unit, body in sorted(done.items())}

    def records(self, tenant: str, job: str, stages: Sequence[str]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """Return the record of a job and those of its stages, in one round trip; empty where there is none."""

        def read() -> list[dict[str, str]]:
            pipe = self.redis.pipeline(transaction=False)
            for key in (rk.job(tenant, job), *(rk.stage(tenant, job, name) for name in stages)):
                pipe.hgetall(key)
            return [dict(found) for found in pipe.execute()]

        record, *found = self._call(read)
        return record, dict(zip(stages, found, strict=True))
