"""A server that refuses us: one clear line that names the remedy, at once, and no loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from communitree_shared.errors import InfrastructureError, ServerRefuses
from communitree_shared.ledger import Ledger
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import memory_fault, redis_client, where_of
from communitree_shared.settings import Settings
from communitree_shared.trouble import trouble_with
from communitree_workers.runtime.consume import Worker
from support.relay import Relay, relay
from support.valkey import FREE, running_valkey


def start(settings: Settings) -> None:
    """Start a worker as far as its looks at the servers."""
    Worker(settings, ["cpu"], {}).run()


@pytest.mark.parametrize(
    ("options", "says", "remedy"),
    [
        (["--maxmemory-policy", "allkeys-lru"], "evicts keys", "noeviction"),
        (["--maxmemory-policy", "volatile-ttl"], "evicts keys", "noeviction"),
        (["--cluster-enabled", "yes", "--cluster-port", FREE], "cluster mode", "single primary"),
        (["--replicaof", "127.0.0.1 1"], "replica", "sentinel://"),
        (["--requirepass", "another"], "password", "COMMUNITREE_REDIS_URL"),
    ],
)
def test_a_redis_that_would_lose_jobs_is_refused_at_start(
    settings: Settings, tmp_path: Path, options: list[str], says: str, remedy: str
) -> None:
    with running_valkey(tmp_path / "valkey", *options) as valkey:
        url = f"redis://:hush-hush@127.0.0.1:{valkey.port}/0" if "--requirepass" in options else valkey.url
        with pytest.raises(ServerRefuses, match=says) as refused:
            start(settings.model_copy(update={"redis_url": SecretStr(url)}))
    assert remedy in refused.value.hint
    assert "\n" not in f"{refused.value} {refused.value.hint}"
    assert "hush" not in f"{refused.value} {refused.value.hint} {refused.value!r}"
    assert str(valkey.port) in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "says", "remedy"),
    [
        ({"s3_secret_key": SecretStr("hush-hush")}, "SignatureDoesNotMatch|AccessDenied", "COMMUNITREE_S3_SECRET_KEY"),
        ({"s3_access_key": SecretStr("nobody")}, "InvalidAccessKeyId|AccessDenied", "COMMUNITREE_S3_ACCESS_KEY"),
        ({"s3_bucket": "not-there", "s3_create_bucket": False}, "not-there", "COMMUNITREE_S3_CREATE_BUCKET"),
        ({"s3_secure": True}, "No trusted connection", "COMMUNITREE_S3_SECURE"),
    ],
)
def test_an_object_store_that_refuses_us_is_named_at_start(
    settings: Settings, changes: dict[str, object], says: str, remedy: str
) -> None:
    wrong = settings.model_copy(update=changes)
    began = time.monotonic()
    with pytest.raises(ServerRefuses, match=says) as refused:
        start(wrong)
    assert time.monotonic() - began < 20
    assert remedy in refused.value.hint
    assert "hush" not in f"{refused.value} {refused.value.hint} {refused.value!r}"


@pytest.fixture
def between(settings: Settings) -> Iterator[tuple[Relay, Settings]]:
    """A relay in front of the object store, and settings that lead through it."""
    with relay(settings.s3_endpoint) as made:
        yield made, settings.model_copy(update={"s3_endpoint": made.endpoint})


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (403, "AccessDenied", "s3:PutObject"),
        (403, "RequestTimeTooSkewed", "NTP"),
        (507, "XMinioStorageFull", "space"),
        (507, "", "space"),
        (404, "NoSuchBucket", "COMMUNITREE_S3_BUCKET"),
        (400, "AuthorizationHeaderMalformed", "COMMUNITREE_S3_REGION"),
    ],
)
def test_a_refusal_in_the_middle_is_said_at_once_to_a_caller(
    between: tuple[Relay, Settings], status: int, code: str, remedy: str
) -> None:
    wire, settings = between
    store = Store(settings, patience=30)
    store.ensure_bucket()
    store.put("a", b"1")
    wire.reply(status, code)
    with pytest.raises(ServerRefuses) as refused:
        store.put("a", b"2")
    assert wire.tries == 1
    assert remedy in refused.value.hint
    wire.up()
    assert store.get("a") == b"1"


def test_a_worker_waits_for_a_refusal_to_end_and_tells_of_it(between: tuple[Relay, Settings]) -> None:
    wire, settings = between
    store = Store(settings, patience=30, refusal_patience=30)
    store.ensure_bucket()
    told: list[InfrastructureError] = []
    store.trouble.listeners.append(lambda error, lasted: told.append(error))
    wire.reply(403, "AccessDenied")
    threading.Timer(1.5, wire.up).start()
    store.put("a", b"1")
    assert store.get("a") == b"1"
    assert told
    assert all(isinstance(error, ServerRefuses) for error in told)


def test_many_calls_knock_at_a_dead_server_in_turn(between: tuple[Relay, Settings]) -> None:
    """Sixty calls wait three seconds: were each to ask by itself, there were hundreds of requests."""
    wire, settings = between
    store = Store(settings, patience=30)
    store.ensure_bucket()
    wire.reply(503, "SlowDown")
    ended: list[bytes] = []

    def put(n: int) -> None:
        store.put(f"many/{n}", b"%d" % n)
        ended.append(store.get(f"many/{n}"))

    threads = [threading.Thread(target=put, args=(n,)) for n in range(60)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    tries, before = wire.tries, list(ended)
    wire.up()
    for thread in threads:
        thread.join(30)
    assert before == []
    assert sorted(map(int, ended)) == list(range(60))
    assert tries < 60 + 15  # one each before the first failure was known, then one a turn


def test_a_fault_that_ends_opens_the_door_for_all() -> None:
    trouble = trouble_with("a server of this test")
    assert trouble.turn(0) is None
    trouble.met(InfrastructureError("away"))
    blocked = trouble.turn(time.monotonic())
    assert blocked is not None
    assert blocked.message == "away"
    trouble.over()
    assert trouble.turn(0) is None


def fill(ledger: Ledger) -> None:
    for n in range(10_000):
        ledger._call(lambda n=n: ledger.redis.set(f"k{n}", "x" * 10_000))  # type: ignore[misc]


def test_a_redis_without_memory_is_named_to_who_waits(settings: Settings, tmp_path: Path) -> None:
    with running_valkey(tmp_path / "valkey", "--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as valkey:
        full = settings.model_copy(update={"redis_url": SecretStr(valkey.url)})
        client = redis_client(full)
        assert memory_fault(client, where_of(client)) == ""
        with pytest.raises(ServerRefuses, match="used memory") as refused:
            fill(Ledger(client, patience=0))
        assert "maxmemory" in refused.value.hint
        assert "is full" in memory_fault(client, where_of(client))
        client.close()


def test_a_user_without_rights_is_told_which_list_to_follow(settings: Settings, tmp_path: Path) -> None:
    acl = tmp_path / "users.acl"
    acl.write_text("user default off\nuser few on >pw ~* &* -@all +ping +info +time\n")
    with running_valkey(tmp_path / "valkey", "--aclfile", str(acl)) as valkey:
        few = settings.model_copy(update={"redis_url": SecretStr(f"redis://few:pw@127.0.0.1:{valkey.port}/0")})
        client = redis_client(few)
        with pytest.raises(ServerRefuses, match="permission") as refused:
            Ledger(client, patience=5).record("default", "job")
        assert "operations.md" in refused.value.hint
        client.close()
