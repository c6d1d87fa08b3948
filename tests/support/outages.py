"""A corpus job whose servers go away in the middle: what both the short and the long form of the outage tests do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from communitree.client import Client
from communitree.embedded.servers import Servers
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from support.fleet import Fleet, running_fleet, until
from support.provider import Provider, fake_provider
from support.relay import Relay, relay

#: Longer than an outage and what a busy machine adds to it: no heartbeat that comes late looks like a death.
LEASE = {"COMMUNITREE_LEASE": "8", "COMMUNITREE_VISIBILITY_TIMEOUT": "20"}


@dataclass
class Lines:
    """Workers behind relays, and a client that talks to the servers directly."""

    fleet: Fleet
    client: Client
    settings: Settings
    redis: Relay
    s3: Relay
    model: Relay
    provider: Provider

    def submit(self, source: Path, corpus: str) -> str:
        """Start a corpus job and wait until its first report is written."""
        job = self.client.submit_index(source, corpus)
        until(lambda: self.reports(job), 60, self.fleet.logs)
        return job

    def reports(self, job: str) -> int:
        """Return how many report units of a job have ended."""
        return sum(e["type"] == "unit.ended" and str(e["stage"]).startswith("report-") for e in self.client.job(job).events)  # fmt: skip  # noqa: E501

    def attempts(self, job: str) -> dict[str, int]:
        """Return how often each unit of a job was begun."""
        found: Any = self.client._redis.hgetall(rk.attempts(self.settings.tenant, job))
        return {unit: int(n) for unit, n in found.items() if not unit.startswith("why|")}

    def measured(self, seconds: float, wire: Relay) -> int:
        """Let an outage last, and see that nobody spins meanwhile. Returns how often the server was tried."""
        before, tries, began = self.fleet.cpu_seconds(), wire.tries, time.monotonic()
        time.sleep(seconds)
        lasted = time.monotonic() - began
        # Two workers, their children and threads: at rest they take a few hundredths of a core.
        assert self.fleet.cpu_seconds() - before < 1.0 + 0.4 * lasted
        tries = wire.tries - tries
        assert tries < 120 + 10 * lasted, tries
        return tries

    @contextlib.contextmanager
    def other_password(self) -> Iterator[None]:
        """Make Redis refuse whoever connects with the password of the settings."""
        client = self.client._redis
        password = client.connection_pool.connection_kwargs["password"]
        with redis.Redis(port=client.connection_pool.connection_kwargs["port"], password=password) as own:
            own.config_set("requirepass", "another")
            own.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            try:
                yield
            finally:
                own.config_set("requirepass", password)


@contextlib.contextmanager
def running_lines(folder: Path, **env: str) -> Iterator[Lines]:
    """Run both servers, a provider and workers; the workers see all three through relays."""
    with (
        Servers(folder / "servers") as endpoints,
        fake_provider() as provider,
        relay(f"127.0.0.1:{endpoints.redis_port}") as to_redis,
        relay(endpoints.s3_endpoint) as to_s3,
        relay(provider.url.removeprefix("http://").removesuffix("/v1")) as to_model,
    ):
        direct = endpoints.into(Settings(home=folder / "home"))
        through = direct.model_copy(update={"s3_endpoint": to_s3.endpoint})
        through.redis_url = type(direct.redis_url)(
            endpoints.redis_url.replace(f"127.0.0.1:{endpoints.redis_port}", to_redis.endpoint)
        )
        stages: dict[str, str] = {}
        for stage in ("report", "map", "reduce"):
            stages |= provider.settings(stage)
            stages[f"COMMUNITREE_LLM_{stage.upper()}_BASE_URL"] = f"http://{to_model.endpoint}/v1"
        with (
            running_fleet(folder / "logs", through, "models", "cpu", env={**stages, **LEASE, **env}) as fleet,
            Client(direct) as client,
        ):
            fleet.ready()
            yield Lines(fleet, client, direct, to_redis, to_s3, to_model, provider)
