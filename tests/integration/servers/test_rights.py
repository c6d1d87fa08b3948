"""A Redis user with the documented rights and no others can do everything; CONFIG is not among them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import SecretStr

from communitree.client import Client
from communitree_shared.contract.options import QueryOptions
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from support import tls
from support.acl import documented_commands, documented_user
from support.fleet import Fleet, running_fleet, until
from support.forbidding import forbidding
from support.house import ROOT
from support.provider import fake_provider
from support.relay import relay
from support.topics import write_topics
from support.valkey import running_valkey

#: No other test that shares the bucket has a corpus of this name.
CORPUS = "few-rights"


def test_every_command_of_the_scripts_is_documented() -> None:
    sources = [p for f in ("shared", "workers") for kind in ("lua", "py") for p in ROOT.glob(f"{f}/**/*.{kind}")]
    found = (re.findall(r"""redis\.call\(["']([A-Z]+)["']""", path.read_text(encoding="utf-8")) for path in sources)
    used = {name.lower() for names in found for name in names}
    assert used
    assert used <= documented_commands(), used - documented_commands()
    assert not {"config", "keys", "flushdb", "flushall"} & documented_commands()


@pytest.fixture
def few_rights(settings: Settings, tmp_path: Path) -> Iterator[tuple[Settings, redis.Redis]]:
    """All that a managed server may want at once, and an administrator who looks at what was denied.

    The documented user alone, TLS with certificates on both sides, a region and a prefix of one's own.
    """
    acl = tmp_path / "users.acl"
    user = documented_user().replace("PASSWORD", "of-the-test")
    acl.write_text(f"user default off\nuser admin on >admin ~* &* +@all\n{user}\n")
    with (
        running_valkey(tmp_path / "valkey", "--aclfile", str(acl)) as valkey,
        relay(f"127.0.0.1:{valkey.port}", tls.server_context(wants_certificate=True)) as to_redis,
        relay(settings.s3_endpoint, tls.server_context()) as to_s3,
    ):
        admin = redis.Redis(port=valkey.port, username="admin", password="admin", decode_responses=True)
        yield settings.model_copy(
            update={
                "redis_url": SecretStr(f"rediss://communitree:of-the-test@{to_redis.endpoint}/0"),
                "redis_ca_bundle": tls.CA, "redis_certificate": tls.CLIENT, "redis_private_key": tls.CLIENT,
                "s3_endpoint": to_s3.endpoint, "s3_secure": True, "s3_ca_bundle": tls.CA,
                "s3_prefix": "team/one", "s3_region": "eu-central-1",
            }
        ), admin  # fmt: skip
        admin.close()


def everything(client: Client, fleet: Fleet, topics: Path) -> None:
    """Use whatever there is: jobs with and without a model, looks, the intake, cancel, resume, gc, delete."""
    result = client.index(topics, CORPUS)
    assert result.status == "published", fleet.logs()
    assert client.ask(CORPUS, "What is said of tuples?", QueryOptions()).status == "answered"
    assert client.tree(CORPUS).communities
    cancelled = client.submit(CORPUS, "Too late?", QueryOptions(cache=False)).job
    client.cancel(cancelled)
    request = json.dumps({"kind": "query", "corpus": CORPUS, "question": "From elsewhere?"})
    client._redis.xadd(rk.requests("default"), {"request": request})
    until(lambda: client._redis.xrange(rk.results("default")) and _accepted(client), 30, fleet.logs)
    client.dead_letters()
    client.redrive()
    client.jobs()
    keys = set(client._store.keys(""))
    assert any(key.startswith(f"team/one/default/corpora/{CORPUS}/") for key in keys)
    assert not any(f"/corpora/{CORPUS}/" in key for key in keys if not key.startswith("team/one/"))
    client.collect(older_than=0.0)
    client.delete(CORPUS)


def _accepted(client: Client) -> bool:
    return any(fields.get("type") == "accepted" for _, fields in client._redis.xrange(rk.results("default")))


def calls(admin: redis.Redis) -> dict[str, int]:
    """Return how often each command was called so far."""
    found: Any = admin.info("commandstats")
    return {name.removeprefix("cmdstat_").lower(): int(entry["calls"]) for name, entry in found.items()}


def test_the_documented_rights_are_enough(few_rights: tuple[Settings, redis.Redis], tmp_path: Path) -> None:
    settings, admin = few_rights
    before = calls(admin)  # the server itself asks for its configuration at its start
    topics = write_topics(tmp_path / "topics", 4)
    with fake_provider() as provider:
        stages = {**provider.settings("report"), **provider.settings("map"), **provider.settings("reduce")}
        limits = {"COMMUNITREE_LLM_REQUESTS_PER_MINUTE": "100000", "COMMUNITREE_LLM_CONCURRENCY": "20"}
        with (
            running_fleet(tmp_path / "logs", settings, "models", "cpu", env={**stages, **limits}) as fleet,
            fleet.client() as client,
        ):
            everything(client, fleet, topics)
            fleet.workers[0].kill()  # and what the broker does to take a dead worker's messages back
            time.sleep(1)
            denied = [(entry["reason"], entry["object"]) for entry in admin.acl_log()]
            after = calls(admin)
    assert denied == [], (denied, fleet.logs())
    used = {name.split("|")[0] for name, n in after.items() if n > before.get(name, 0)}
    assert used - documented_commands() <= {"acl"}


#: What managed services forbid, each some of it.
FORBIDDEN = {
    "CONFIG", "DEBUG", "CLIENT", "KEYS", "FLUSHALL", "FLUSHDB", "MONITOR", "SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN",
    "REPLICAOF", "SLAVEOF", "ACL", "MODULE", "CLUSTER", "SWAPDB", "MIGRATE", "LATENCY", "MEMORY", "SLOWLOG", "COMMAND",
    "RANDOMKEY", "SORT", "WAIT", "FUNCTION", "FCALL", "SCRIPT|KILL", "SCRIPT|FLUSH", "SCRIPT|DEBUG", "OBJECT",
}  # fmt: skip


def test_nothing_is_asked_that_managed_services_forbid(settings: Settings, tmp_path: Path) -> None:
    topics = write_topics(tmp_path / "topics", 4)
    with (
        running_valkey(tmp_path / "valkey") as valkey,
        forbidding(f"127.0.0.1:{valkey.port}", FORBIDDEN) as (endpoint, asked),
    ):
        with redis.Redis.from_url(f"redis://{endpoint}/0") as probe, pytest.raises(redis.ResponseError):
            probe.config_get("maxmemory")
        assert asked["CONFIG|GET"] == 1
        asked.clear()  # and what the library tells of itself at each connection
        own = settings.model_copy(update={"redis_url": SecretStr(f"redis://{endpoint}/0"), "s3_prefix": "team/one"})
        with fake_provider() as provider:
            stages = {**provider.settings("report"), **provider.settings("map"), **provider.settings("reduce")}
            with (
                running_fleet(tmp_path / "logs", own, "models", "cpu", env=stages) as fleet,
                fleet.client() as client,
            ):
                everything(client, fleet, topics)
                assert all(worker.poll() is None for worker in fleet.workers)
        assert asked == {}
