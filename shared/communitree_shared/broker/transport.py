"""kombu's Redis transport as our connections use it: subclasses, so that kombu stays as it is for everybody else.

- What comes from a queue passes `envelope.opened`, and gets an id and a delivery tag of its own: two copies of a
  message must not take each other off the books.
- Its keys are ours (`layout`), its times those of the Redis server (`clock`).
- A primary that has become a replica is away: its connections are dropped, and made anew.
"""

# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False
from __future__ import annotations

import logging
import uuid
from queue import Empty
from typing import Any

import redis
import redis.sentinel
from kombu.connection import Connection
from kombu.message import Message as PlainMessage
from kombu.transport import redis as stock
from kombu.transport import virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps

from communitree_shared import clock
from communitree_shared.broker import layout
from communitree_shared.broker.envelope import RUBBISH, headers, opened, properties, sealed
from communitree_shared.redis_server.connect import DISCREET, PlainConnection, TLSConnection, address
from communitree_shared.settings import Settings

log = logging.getLogger(__name__)


def transport_options(settings: Settings) -> dict[str, Any]:
    """Return the transport's options. All processes of one Redis database must use the same ones."""
    found = address(settings)
    sentinel = {"master_name": found.master_name, "sentinel_kwargs": found.sentinel_options, "sentinels": found.hosts}
    return {
        **(sentinel if found.master_name else {}),
        "visibility_timeout": settings.visibility_timeout,
        "unacked_key": layout.UNACKED,
        "unacked_index_key": layout.TAKEN,
        "unacked_mutex_key": layout.MUTEX,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 30,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
        "priority_steps": [0],
    }


def transport_of(settings: Settings) -> type[Transport]:
    """Return the transport for where Redis is."""
    return SentinelTransport if address(settings).master_name else Transport


def connection(settings: Settings) -> Any:
    """Return a connection of kombu's that uses our transport; it connects when it is used."""
    found = address(settings)
    return Connection(
        found.broker_url(), ssl=found.broker_ssl(), transport=transport_of(settings),
        transport_options=transport_options(settings),
    )  # fmt: skip


class Message(virtual.Message):
    """A message of which only our reading (`envelope`) is there. Made of (queue, entry); never raises.

    It is decoded already: Celery hands the argument to its pool as it is, and reads nothing.
    """

    def __init__(self, payload: tuple[str, bytes | str], channel: Any = None, **options: Any) -> None:
        queue, entry = payload
        self.envelope = opened(entry)
        tag = uuid.uuid4().hex
        self._raw = sealed(self.envelope, queue, tag)
        said = properties(queue, tag)
        PlainMessage.__init__(
            self, body=self.envelope.text, channel=channel, delivery_tag=tag, content_type="application/json",
            content_encoding="utf-8", headers=headers(self.envelope.task, tag), properties=said,
            delivery_info=said["delivery_info"], **options,
        )  # fmt: skip
        self._decoded_cache = {"args": [self.envelope.body], "kwargs": {}}


class QoS(stock.QoS):
    """kombu's books of what was taken, kept by the clock of Redis."""

    def append(self, message: Message, delivery_tag: str) -> None:
        """Note that a message was taken."""
        where = message.delivery_info
        entry = dumps([message._raw, where["exchange"], where["routing_key"]])
        with self.pipe_or_acquire() as pipe:
            pipe.zadd(self.unacked_index_key, {delivery_tag: clock.now()}).hset(self.unacked_key, delivery_tag, entry)
            pipe.execute()
        virtual.QoS.append(self, message, delivery_tag)

    def forget(self, delivery_tag: str) -> None:
        """Count a message no longer among those that this channel holds; in Redis it stays, until it is given back."""
        virtual.QoS.ack(self, delivery_tag)

    def restore_visible(self, start: int = 0, num: int | None = 10, interval: int = 10) -> None:
        """Give back what nobody has marked for the visibility timeout, unless another does so just now."""
        before = clock.now() - self.visibility_timeout
        with self.channel.conn_or_acquire() as client:
            try:
                with stock.Mutex(client, self.unacked_mutex_key, self.unacked_mutex_expire):
                    most = -1 if num is None else num
                    for tag in client.zrangebyscore(self.unacked_index_key, 0, before, start=start, num=most):
                        self.give_back(bytes_to_str(tag), client)
            except stock.MutexHeld:
                pass

    def give_back(self, tag: str, client: Any = None) -> None:
        """Put a message where it is taken next, unless it is acknowledged by now; what is none is let be."""
        try:
            self.restore_by_tag(tag, client)
        except RUBBISH as error:
            log.error("what was taken as %s is no message and is let be: %s", tag, error)
            with self.channel.conn_or_acquire(client) as connected:
                connected.zrem(self.unacked_index_key, tag)


class _Ours:
    """What our channels do otherwise than kombu's."""

    Message = Message
    QoS = QoS
    keyprefix_queue = layout.BINDINGS
    keyprefix_binding_permanent = layout.LASTING_BINDINGS

    def _connparams(self: Any, asynchronous: bool = False) -> dict[str, Any]:
        return {**super()._connparams(asynchronous), **DISCREET}  # type: ignore[misc]

    def _create_client(self: Any, asynchronous: bool = False) -> Any:
        """Return one client for the channel's life: kombu makes one, with all its callbacks, for each acknowledgement.

        A client holds no connection of its own, only the pool's, and a third of a message's time went into making them.
        """
        make = super()._create_client  # type: ignore[misc]
        if asynchronous:
            return make(asynchronous)
        found = self.__dict__.get("_kept")
        if found is None or found.connection_pool is not self.pool:
            found = self._kept = make()
        return found

    def _brpop_read(self: Any, **options: Any) -> bool:
        """Deliver one entry of a queue as it is: kombu would decode it first, and end the process over some."""
        try:
            try:
                reply = self.client.parse_response(self.client.connection, "BRPOP", **options)
            except self.connection_errors:
                self.client.connection.disconnect()
                raise
            if not reply:
                raise Empty
            queue = bytes_to_str(reply[0])
            self._queue_cycle.rotate(queue)
            self.connection._deliver((queue, reply[1]), queue)
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _get(self: Any, queue: str) -> tuple[str, bytes]:
        with self.conn_or_acquire() as client:
            entry = client.rpop(queue)
        if entry is None:
            raise Empty
        return queue, entry


class Channel(_Ours, stock.Channel):  # type: ignore[misc]
    """A channel to one Redis."""

    connection_class: Any = PlainConnection
    connection_class_ssl: Any = TLSConnection


class SentinelChannel(_Ours, stock.SentinelChannel):  # type: ignore[misc]
    """A channel to the primary that sentinels name."""

    master_name: str
    sentinels: tuple[tuple[str, int], ...]
    sentinel_kwargs: dict[str, Any]
    from_transport_options: Any = (*stock.SentinelChannel.from_transport_options, "sentinels")

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> Any:
        """Return the pool of the primary. kombu wants a URL for each sentinel, whose scheme names another transport."""
        params = self._connparams(asynchronous)
        login = {name: params[name] for name in ("username", "password") if name in params}
        others = {name: value for name, value in params.items() if name not in {"host", "port"}}
        watchers: Any = redis.sentinel.Sentinel(list(self.sentinels), sentinel_kwargs=self.sentinel_kwargs, **others)
        self._sentinel_manager = watchers
        return watchers.master_for(self.master_name, redis.Redis, **login).connection_pool


class _Named(type):
    """Lets a transport be told of by its scheme: kombu puts the class before `://` in what it logs."""

    def __str__(cls) -> str:
        return str(getattr(cls, "scheme", cls.__name__))


class Transport(stock.Transport, metaclass=_Named):
    """kombu's Redis transport with our channels."""

    Channel: Any = Channel
    scheme = "redis"

    #: A refusal (read only, out of memory, a script that holds the server up) is met like an outage: connect again.
    #: What is no passing state is told apart by the worker (`consume.py`).
    connection_errors = (*stock.Transport.connection_errors, redis.ResponseError)


class SentinelTransport(Transport):
    """The same for a primary that sentinels name."""

    Channel = SentinelChannel
    scheme = "sentinel"
    default_port: Any = stock.SentinelTransport.default_port
