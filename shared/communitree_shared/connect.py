"""Connections to Redis from settings."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import redis
import redis.asyncio

from communitree_shared.errors import InfrastructureError, StackNotRunning
from communitree_shared.settings import Settings

_OPTIONS: dict[str, Any] = {
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 10,
    "decode_responses": True,
    "encoding_errors": "replace",  # what anyone may write into a stream must not end the reader
}


def redis_url(settings: Settings) -> str:
    """Return the URL of Redis.

    Raises:
        StackNotRunning: none is set.
    """
    url = settings.redis_url.get_secret_value()
    if not url:
        raise StackNotRunning(
            "No servers are set and no embedded stack is known.",
            hint="Run `communitree up`, or set COMMUNITREE_REDIS_URL and COMMUNITREE_S3_ENDPOINT.",
        )
    return url.replace("valkey://", "redis://", 1).replace("valkeys://", "rediss://", 1)


def redis_client(settings: Settings) -> redis.Redis:
    """Return a Redis client (strings, not bytes); it connects at its first command."""
    url = redis_url(settings)
    if url.startswith("sentinel://"):
        return _sentinel(url)
    return redis.Redis.from_url(url, **_OPTIONS)


def async_redis_client(settings: Settings) -> redis.asyncio.Redis:
    """Return an asyncio Redis client for the loop it is first used in."""
    return redis.asyncio.Redis.from_url(redis_url(settings), **_OPTIONS)


def _sentinel(url: str) -> redis.Redis:
    """`sentinel://[:password@]host:port[;host:port…]/DB?master_name=NAME`, as kombu reads it."""
    from redis.sentinel import Sentinel

    first = urlsplit(url.split(";")[0])
    hosts = [urlsplit("//" + part.split("://")[-1]).netloc.rsplit("@", 1)[-1] for part in url.split("?")[0].split(";")]
    query = dict(parse_qsl(urlsplit(url).query))
    nodes = [(h.rsplit(":", 1)[0], int(h.rsplit(":", 1)[1].split("/")[0])) for h in hosts]
    sentinel: Any = Sentinel(nodes, socket_timeout=5)  # type: ignore[no-untyped-call]
    master: redis.Redis = sentinel.master_for(query.get("master_name", "mymaster"), password=first.password, **_OPTIONS)
    return master


def check_server(client: redis.Redis) -> None:
    """Refuse a Redis that would lose keys or cannot run our scripts. Reads INFO only.

    Raises:
        InfrastructureError: eviction is on, or the server is in cluster mode.
    """
    info: dict[str, Any] = client.info()
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise InfrastructureError(
            f"Redis evicts keys (maxmemory-policy {policy}): jobs would be lost in silence.",
            hint="Set maxmemory-policy noeviction.",
        )
    if info.get("redis_mode") == "cluster" or info.get("cluster_enabled") == 1:
        raise InfrastructureError(
            "Redis is in cluster mode, which the message transport does not support.",
            hint="Use a single primary (with replicas or Sentinel).",
        )
