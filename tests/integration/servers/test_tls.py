"""TLS to both servers, with a certificate authority of one's own; and what is said where there is no trust."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu.exceptions
import pytest
from pydantic import SecretStr

from communitree_shared.broker.transport import connection
from communitree_shared.errors import ServerRefuses
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import (
    async_redis_client,
    check_server,
    close,
    redis_client,
    where_of,
)
from communitree_shared.settings import Settings
from support import tls
from support.relay import relay
from support.sentinel import MASTER, PASSWORD, sentinel_of
from support.valkey import running_valkey


@pytest.fixture(params=[False, True], ids=["server", "both"])
def behind_tls(settings: Settings, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings that lead to both servers through TLS; `both`: Redis wants a certificate of its clients, too."""
    login, _, rest = settings.redis_url.get_secret_value().removeprefix("redis://").rpartition("@")
    plain, _, db = rest.partition("/")
    context = tls.server_context(wants_certificate=request.param)
    with relay(plain, context) as to_redis, relay(settings.s3_endpoint, tls.server_context()) as to_s3:
        mine = {"redis_certificate": tls.CLIENT, "redis_private_key": tls.CLIENT} if request.param else {}
        yield settings.model_copy(
            update={
                "redis_url": SecretStr(f"rediss://{login}@{to_redis.endpoint}/{db}"), "redis_ca_bundle": tls.CA,
                "s3_endpoint": to_s3.endpoint, "s3_secure": True, "s3_ca_bundle": tls.CA, **mine,
            }
        )  # fmt: skip


async def test_every_kind_of_connection_speaks_tls(behind_tls: Settings) -> None:
    client = redis_client(behind_tls)
    check_server(client)
    client.close()
    later = async_redis_client(behind_tls)
    assert await later.ping()
    await later.aclose()
    with connection(behind_tls) as broker:
        broker.ensure_connection(max_retries=1)
    store = Store(behind_tls, patience=5)
    store.ensure_bucket()
    store.put("a", b"1")
    assert store.get("a") == b"1"


def test_a_server_that_is_not_trusted_is_named(behind_tls: Settings) -> None:
    stranger = behind_tls.model_copy(update={"redis_ca_bundle": "", "s3_ca_bundle": ""})
    client = redis_client(stranger)
    with pytest.raises(ServerRefuses, match="certificate verify failed") as refused:
        check_server(client, where_of(client))
    assert "COMMUNITREE_REDIS_CA_BUNDLE" in refused.value.hint
    with pytest.raises(ServerRefuses, match="No trusted connection") as refused:
        Store(stranger, patience=5).ensure_bucket()
    assert "COMMUNITREE_S3_CA_BUNDLE" in refused.value.hint
    with connection(stranger) as broker, pytest.raises(kombu.exceptions.OperationalError):
        broker.ensure_connection(max_retries=1, interval_start=0)
    client.close()


@pytest.fixture
def sentinels(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """Settings that name a sentinel behind TLS; its primary speaks TLS, too, and both want a certificate of ours."""
    both = tls.server_context(wants_certificate=True)
    with (
        running_valkey(tmp_path / "primary", "--requirepass", PASSWORD) as primary,
        # The sentinel itself watches the primary in plain text.
        relay(f"127.0.0.1:{primary.port}", both, plain_too=True) as to_primary,
        sentinel_of(tmp_path / "sentinel", int(to_primary.endpoint.split(":")[1])) as port,
        relay(f"127.0.0.1:{port}", both) as to_sentinel,
    ):
        url = f"sentinels://:{PASSWORD}@{to_sentinel.endpoint}/0?master_name={MASTER}"
        mine = {"redis_certificate": tls.CLIENT, "redis_private_key": tls.CLIENT}
        yield settings.model_copy(update={"redis_url": SecretStr(url), "redis_ca_bundle": tls.CA, **mine})


async def test_sentinels_are_asked_by_tls_and_so_is_the_primary(sentinels: Settings) -> None:
    client = redis_client(sentinels)
    check_server(client)
    client.set("a", "1")
    close(client)
    later = async_redis_client(sentinels)
    assert await later.get("a") == "1"
    manager: Any = later.connection_pool
    await later.aclose()
    for sentinel in manager.sentinel_manager.sentinels:
        await sentinel.aclose()
    with connection(sentinels) as broker:
        queue = broker.SimpleQueue("of-the-test")
        queue.put({"n": 1})
        message = queue.get(timeout=10)
        assert json.loads(message.envelope.text) == {"n": 1}
        message.ack()
        queue.close()


def test_sentinels_that_are_not_trusted_are_named_at_once(sentinels: Settings) -> None:
    client = redis_client(sentinels.model_copy(update={"redis_ca_bundle": ""}))
    began = time.monotonic()
    with pytest.raises(ServerRefuses, match="certificate verify failed") as refused:
        check_server(client, where_of(client))
    assert time.monotonic() - began < 6  # redis-py's own tries would take 16 s
    assert "COMMUNITREE_REDIS_CA_BUNDLE" in refused.value.hint
    close(client)
