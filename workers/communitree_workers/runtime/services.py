"""What a worker process holds for its whole life: connections, caches, the model client, the event loop."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import redis.asyncio

from communitree_shared.broker.publisher import Publisher
from communitree_shared.ledger import Ledger
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import async_redis_client, redis_client
from communitree_shared.redis_server.rediskeys import PREFIX
from communitree_shared.settings import Settings
from communitree_workers.runtime.cache import Cache
from communitree_workers.runtime.loop import LoopHere, LoopThread
from communitree_workers.runtime.waits import Waits
from communitree_workers.tables import io

if TYPE_CHECKING:
    from communitree_workers.model.budget import JobBudget
    from communitree_workers.model.client import ModelClient
    from communitree_workers.model.inflight import CallCache

#: How long a worker waits for servers that are away before it gives a unit back.
PATIENCE = 600.0

#: Bytes of an object that are read at a time for its parts.
_BLOCK = 2**20


class Services:
    """One process's services. `threaded`: pool threads submit coroutines to one loop thread."""

    def __init__(self, settings: Settings, *, threaded: bool, token: str) -> None:
        self.settings = settings
        self.store = Store(settings, patience=PATIENCE, refusal_patience=settings.refusal_patience)
        client = redis_client(settings)
        self.ledger = Ledger(client, patience=PATIENCE, refusal_patience=PATIENCE)
        self.ledger.token = token
        self.waits = Waits(Ledger(client, patience=5), settings.job_ttl)
        self.store.trouble.listeners.append(self.waits.tell)
        self.publisher = Publisher(settings, self.ledger)
        self.loop: LoopThread | LoopHere = LoopThread() if threaded else LoopHere()
        self.objects = Cache(64 * 2**20)
        self.parsed = Cache(512 * 2**20)
        self.pid = os.getpid()

    def close(self) -> None:
        """End what runs beside the pool, which has ended: the loop, its threads and its connections."""
        closing = [self.__dict__[name].close() for name in ("models",) if name in self.__dict__]
        closing += [self.__dict__[name].aclose() for name in ("loop_redis",) if name in self.__dict__]
        self.loop.close(closing)
        self.publisher.close()

    @cached_property
    def loop_redis(self) -> redis.asyncio.Redis:
        """Return the Redis client of the loop."""
        return async_redis_client(self.settings)

    @cached_property
    def models(self) -> ModelClient:
        """Return the model client; its session opens in the loop at the first call."""
        from communitree_workers.model.client import ModelClient

        return ModelClient(self.settings, self.loop_redis, PREFIX)

    @cached_property
    def calls(self) -> CallCache:
        """Return the cache of call results, which also joins equal calls in flight."""
        from communitree_workers.model.inflight import CallCache

        return CallCache(self.loop_redis, PREFIX)

    def budget(self, tenant: str, job: str, usd: float | None, tokens: int | None) -> JobBudget | None:
        """Return a job's ceiling, None where it has none."""
        if usd is None and tokens is None:
            return None
        from communitree_workers.model.budget import JobBudget

        return JobBudget(self.loop_redis, PREFIX, tenant, job, usd=usd, tokens=tokens)

    def keys(self, tenant: str) -> Keys:
        """Return the object keys of a tenant."""
        return Keys(tenant, self.settings.s3_prefix)

    def object(self, key: str) -> bytes:
        """Return an immutable object, from the cache where it is there.

        Raises:
            KeyError: there is none.
        """

        def read() -> tuple[bytes, int]:
            data = self.store.get(key)
            return data, len(data)

        return self.objects.get(key, read)

    def knows(self, key: str) -> bool:
        """Say whether an object is in the cache."""
        return self.objects.peek(key) is not None

    def learn(self, key: str, text: str) -> None:
        """Put an immutable object, of which the ledger has told, into the cache; "" is none."""
        if text:
            data = text.encode()
            self.objects.get(key, lambda: (data, len(data)))

    def part(self, key: str, offset: int, length: int) -> bytes:
        """Return a part of an immutable object. Many small parts of a large one cost one request for each block.

        Raises:
            KeyError: there is none.
        """

        def block(number: int) -> bytes:
            def read() -> tuple[bytes, int]:
                data = self.store.get_range(key, number * _BLOCK, _BLOCK)
                return data, len(data)

            return self.objects.get(f"{key}#{number}", read)

        first, last = offset // _BLOCK, (offset + max(length, 1) - 1) // _BLOCK
        data = b"".join(block(number) for number in range(first, last + 1))
        return data[offset - first * _BLOCK :][:length]

    def table(self, key: str) -> pa.Table:
        """Return a Parquet table, parsed, from the cache where it is there and has not been written again since."""

        def read() -> tuple[pa.Table, int]:
            table = io.from_bytes(self.store.get(key))
            return table, table.nbytes

        return self.parsed.get(f"{key}@{self.store.etag(key)}", read)

    def value(self, key: str, make: Any) -> Any:
        """Return something derived from immutable objects; `make` gives (value, bytes)."""
        return self.parsed.get(key, make)
