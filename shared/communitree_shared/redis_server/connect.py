"""Connections to Redis from settings."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Callable
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.backoff
import redis.retry
import redis.sentinel

from communitree_shared.errors import ServerRefuses, StackNotRunning
from communitree_shared.faults import of_redis
from communitree_shared.redis_server import address as redis_address
from communitree_shared.redis_server.address import RedisAddress
from communitree_shared.settings import Settings

#: Older servers lack commands that the scripts and the intake use (XAUTOCLAIM, ZADD … GT).
OLDEST = (6, 2)


def _discreet() -> dict[str, Any]:
    """Return what keeps redis-py from CLIENT, at each connection: some servers do not know what it asks, or forbid it.

    It would tell its own name (SETINFO, from 7.2 on) and offer to hear of maintenance (a service of one vendor).
    """
    found: dict[str, Any] = {}
    if importlib.util.find_spec("redis.maint_notifications"):
        from redis.maint_notifications import MaintNotificationsConfig

        found["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    if importlib.util.find_spec("redis.driver_info"):
        return {**found, "driver_info": None}
    return {**found, "lib_name": None, "lib_version": None}


DISCREET = _discreet()

_OPTIONS: dict[str, Any] = {
    **DISCREET,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 10,
    "decode_responses": True,
    "encoding_errors": "replace",  # what anyone may write into a stream must not end the reader
    "max_connections": 2000,  # one for each thread of a worker that uses it at once; a hundred would be refused
}


def address(settings: Settings) -> RedisAddress:
    """Return where Redis is.

    Raises:
        StackNotRunning: nothing is set. UsageError: the URL is none.
    """
    url = settings.redis_url.get_secret_value()
    if not url:
        raise StackNotRunning(
            "No servers are set and no embedded stack is known.",
            hint="Run `communitree up`, or set COMMUNITREE_REDIS_URL and COMMUNITREE_S3_ENDPOINT.",
        )
    return redis_address.parse(
        url, ca=settings.redis_ca_bundle, certificate=settings.redis_certificate, key=settings.redis_private_key,
        sentinel_password=settings.redis_sentinel_password.get_secret_value(),
    )  # fmt: skip


class _ToPrimary:
    """Drops a connection whose server has become a replica: the name may lead to the new primary by now.

    redis-py does so where sentinels name the primary; behind a name or an address that moves it would go on asking the
    old one.
    """

    def read_response(self, *args: Any, **options: Any) -> Any:
        """Return the server's answer.

        Raises:
            ConnectionError: it takes no writes any more. Others as redis-py does.
        """
        try:
            return super().read_response(*args, **options)  # type: ignore[misc]
        except redis.ResponseError as error:
            if not _of_a_replica(error):
                raise
            self.disconnect()  # type: ignore[attr-defined]
            raise redis.ConnectionError(f"the primary has become a replica: {error}") from error


def _of_a_replica(error: redis.ResponseError) -> bool:
    return isinstance(error, redis.ReadOnlyError) or str(error).startswith("UNBLOCKED ")


class PlainConnection(_ToPrimary, redis.Connection):
    """A connection to one server."""


class TLSConnection(_ToPrimary, redis.SSLConnection):
    """A connection to one server behind TLS.

    It says at once that a port speaks no TLS: such a server waits for the end of a line, and we for its certificate.
    """

    def _wrap_socket_with_ssl(self, sock: socket.socket) -> Any:
        sock.settimeout(self.socket_connect_timeout)
        try:
            wrapped = super()._wrap_socket_with_ssl(sock)  # type: ignore[no-untyped-call]
            wrapped.settimeout(self.socket_timeout)
            return wrapped
        except (redis.RedisError, OSError):
            if _speaks_plainly(self.host, self.port):
                raise redis.RedisError("WRONG_VERSION_NUMBER: this port speaks no TLS") from None
            raise


def _speaks_plainly(host: str, port: int) -> bool:
    """Say whether a Redis answers on a port without TLS."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(1) in {b"+", b"-"}
    except OSError:
        return False


class _LaterToPrimary:
    """The same for asyncio."""

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """Return the server's answer."""
        try:
            return await super().read_response(*args, **options)  # type: ignore[misc]
        except redis.ResponseError as error:
            if not _of_a_replica(error):
                raise
            await self.disconnect(nowait=True)  # type: ignore[attr-defined]
            raise redis.ConnectionError(f"the primary has become a replica: {error}") from error


class _LaterPlainConnection(_LaterToPrimary, redis.asyncio.Connection):
    pass


class _LaterTLSConnection(_LaterToPrimary, redis.asyncio.SSLConnection):
    pass


def redis_client(settings: Settings) -> redis.Redis:
    """Return a Redis client (strings, not bytes); it connects at its first command."""
    found = address(settings)
    # A connection that was idle may have gone: one more try at once. Longer waits are the ledger's.
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 1)
    options = {**_OPTIONS, **found.credentials, "db": found.db, "retry": retry}
    if found.master_name:
        kwargs = {**found.sentinel_options, "retry": retry}
        sentinel: Any = _Sentinels(list(found.hosts), sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
        master: redis.Redis = sentinel.master_for(found.master_name, **options, **found.ssl_options)
        return master
    ((host, port),) = found.hosts
    client = redis.Redis(host=host, port=port, **options, **found.ssl_options)
    client.connection_pool.connection_class = TLSConnection if found.tls else PlainConnection
    return client


class _Sentinels(redis.sentinel.Sentinel):
    """Says that a sentinel refuses us, where redis-py only says that none knows a primary: that would be waited for."""

    def discover_master(self, service_name: str) -> Any:
        """Return host and port of the primary.

        Raises:
            MasterNotFoundError: no sentinel knows it. RedisError: one refuses us.
        """
        try:
            return super().discover_master(service_name)  # type: ignore[no-untyped-call]
        except redis.sentinel.MasterNotFoundError:
            for sentinel in self.sentinels:
                try:
                    sentinel.ping()
                except (redis.RedisError, OSError) as error:
                    if isinstance(of_redis(error, service_name), ServerRefuses):
                        raise error from None
            raise


def async_redis_client(settings: Settings) -> redis.asyncio.Redis:
    """Return an asyncio Redis client for the loop it is first used in. Whoever uses it limits the time of a command.

    With a timeout of its own redis-py would send by `asyncio.wait_for`, which in Python 3.11 swallows a cancellation
    that meets the end of the sending: on a busy machine every second one.
    """
    found = address(settings)
    retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 1)
    options = {**_OPTIONS, **found.credentials, "db": found.db, "retry": retry, "max_connections": 100}
    options["socket_timeout"] = None
    if found.master_name:
        kwargs = {**found.sentinel_options, "retry": retry}
        sentinel: Any = redis.asyncio.sentinel.Sentinel(list(found.hosts), sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
        master: redis.asyncio.Redis = sentinel.master_for(found.master_name, **options, **found.ssl_options)
        return master
    ((host, port),) = found.hosts
    client = redis.asyncio.Redis(host=host, port=port, **options, **found.ssl_options)
    client.connection_pool.connection_class = _LaterTLSConnection if found.tls else _LaterPlainConnection
    return client


def close(client: redis.Redis) -> None:
    """Close a client's connections, those to its sentinels too."""
    client.close()
    for sentinel in getattr(getattr(client.connection_pool, "sentinel_manager", None), "sentinels", ()):
        sentinel.close()


def where_of(client: redis.Redis) -> str:
    """Return which server a client talks to, for messages."""
    options = client.connection_pool.connection_kwargs
    if "host" in options:
        return f"{options['host']}:{options.get('port', 6379)}"
    return f"the sentinels' {getattr(client.connection_pool, 'service_name', 'primary')}"


def check_server(client: redis.Redis, where: str = "the given address") -> None:
    """Refuse a Redis that would lose keys or cannot run our scripts. Reads INFO only: no CONFIG is ever needed.

    Raises:
        ServerRefuses: eviction is on, it is in cluster mode, a replica, or too old; one line that says what to do.
        InfrastructureError: it does not answer.
    """
    info: dict[str, Any] = _asked(lambda: client.info(), where)
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise ServerRefuses(
            f"Redis at {where} evicts keys (maxmemory-policy {policy}): jobs would be lost in silence.",
            hint="Set maxmemory-policy noeviction.",
        )
    if info.get("redis_mode") == "cluster" or info.get("cluster_enabled") == 1:
        raise ServerRefuses(
            f"Redis at {where} is in cluster mode, which the message transport does not support.",
            hint="Use a single primary (with replicas or Sentinel).",
        )
    if info.get("role") == "slave":
        raise ServerRefuses(
            f"Redis at {where} is a replica: it takes no writes.",
            hint="Name the primary in COMMUNITREE_REDIS_URL, or the sentinels: sentinel://…?master_name=NAME.",
        )
    version = str(info.get("redis_version", ""))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers and numbers < OLDEST:
        raise ServerRefuses(
            f"Redis at {where} is {version}, which is too old.", hint="Use Redis 6.2 or newer, or Valkey."
        )


def memory_fault(client: redis.Redis, where: str) -> str:
    """Return why Redis takes no writes just now (its memory or disk is full), "" where it does. Reads INFO only."""
    info: dict[str, Any] = _asked(lambda: client.info(), where)
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    if limit and used >= 0.97 * limit:  # what the next command needs counts, too
        return f"Redis at {where} is full ({used:,} of {limit:,} bytes): jobs wait until it has memory."
    if info.get("aof_last_write_status", "ok") != "ok" or info.get("aof_last_bgrewrite_status", "ok") != "ok":
        return f"Redis at {where} cannot write to its disk: jobs wait until it has space."
    return ""


def _asked(ask: Callable[[], Any], where: str) -> Any:
    try:
        return ask()
    except (redis.RedisError, OSError) as error:
        raise of_redis(error, where) or error from None
