"""The embedded servers, once a test process; a key prefix and a Redis database of its own for each test that asks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from communitree.embedded.servers import Endpoints, Servers
from communitree_shared.settings import Settings

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """Valkey and S3, running until the last test has ended."""
    with Servers(tmp_path_factory.mktemp("servers")) as endpoints:
        yield endpoints


@pytest.fixture(scope="session")
def valkey_url(servers: Endpoints) -> str:
    return servers.redis_url


@pytest.fixture
def settings(servers: Endpoints, tmp_path: Path) -> Settings:
    """Settings of a client or worker: a Redis database and a key prefix that no other test uses.

    Only eight databases are dealt out in turn: each is emptied before it is given.
    """
    import redis

    number = next(_numbers)
    url = servers.redis_url.removesuffix("/0") + f"/{1 + number % 8}"
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
    filled = servers.into(Settings(home=tmp_path / "home"))
    return filled.model_copy(update={"redis_url": SecretStr(url), "s3_prefix": f"test-{number}"})
