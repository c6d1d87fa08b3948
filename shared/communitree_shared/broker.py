"""Celery, as far as producers and publishers know it: the app's settings, and how a message is published.

The workers' side (consuming, heartbeat) is `communitree_workers.runtime.consume`; nothing else imports Celery.
The settings follow from measurements of the Redis transport: late acks, marks that a heartbeat keeps young
(`rediskeys.TAKEN`), no prefetch, no result backend, no ETA. Delivery is at least once; the ledger makes it enough.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import kombu.exceptions
import kombu.transport.redis
import redis
from kombu.connection import Connection
from kombu.pools import ProducerPool
from kombu.transport.redis import Channel

from communitree_shared import clock, crash
from communitree_shared.errors import InfrastructureError
from communitree_shared.faults import of_redis
from communitree_shared.ledger.client import Ledger, Outgoing
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import address
from communitree_shared.settings import Settings

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)

_AWAY = (redis.RedisError, kombu.exceptions.KombuError, OSError)


def transport_options(settings: Settings) -> dict[str, Any]:
    """Return the transport's options. All processes of one Redis database must use the same ones."""
    found = address(settings)
    sentinel = {"master_name": found.master_name, "sentinel_kwargs": found.sentinel_options}
    return {
        **(sentinel if found.master_name else {}),
        "visibility_timeout": settings.visibility_timeout,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 30,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
        "client_name": "communitree",
        "priority_steps": [0],
    }


def _keep_clients() -> None:
    """Let a channel keep its client: kombu makes a new one, with all its callbacks, for every acknowledgement.

    A client holds no connection of its own, only the pool's, and a third of a message's time went into making them.
    """
    make: Any = Channel._create_client
    if hasattr(make, "keeps"):
        return

    def kept(channel: Any, asynchronous: bool = False) -> Any:
        if asynchronous:
            return make(channel, asynchronous)
        found = channel.__dict__.get("_kept_client")
        if found is None or found.connection_pool is not channel.pool:
            found = channel.__dict__["_kept_client"] = make(channel)
        return found

    kept.keeps = True  # type: ignore[attr-defined]
    setattr(Channel, "_create_client", kept)  # noqa: B010 - not ours to be typed


def _keep_time() -> None:
    """Let the transport mark what it takes with the server's time, as the heartbeat does (`rediskeys.TAKEN`)."""
    setattr(kombu.transport.redis, "time", clock.now)  # noqa: B010 - not ours to be typed


_keep_clients()
_keep_time()


def make_app(settings: Settings) -> Celery:
    """Return the Celery app of a worker; nothing is connected yet."""
    from celery import Celery  # half a second that a client need not spend

    found = address(settings)
    app = Celery("communitree", broker=found.broker_url(), set_as_current=False)
    app.conf.update(
        broker_use_ssl=found.broker_ssl(),
        task_acks_late=True,
        task_acks_on_failure_or_timeout=True,
        task_reject_on_worker_lost=False,
        task_ignore_result=True,
        result_backend=None,
        task_serializer="json",
        accept_content=["json"],
        enable_utc=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
        worker_proc_alive_timeout=60,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=transport_options(settings),
        task_default_queue="communitree.unrouted",
    )
    return app


class Publisher:
    """Publishes what the ledger put into its outbox, and takes it out there. Needs kombu only."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        found = address(settings)
        connection: Any = Connection(  # type: ignore[no-untyped-call]
            found.broker_url(), ssl=found.broker_ssl(), transport_options=transport_options(settings)
        )
        self._where = found.where
        self._connections: Any = connection.Pool(10)
        self._producers: Any = ProducerPool(self._connections, limit=10)  # type: ignore[no-untyped-call]
        self.ledger = ledger
        self.messages = 0

    def close(self) -> None:
        """Close the connections."""
        self._producers.force_close_all()
        self._connections.force_close_all()

    def publish(self, outgoing: Iterable[Outgoing]) -> None:
        """Publish messages. Where Redis is away they stay in the outbox, and the reconciler publishes them later.

        Raises:
            InfrastructureError: nothing is lost; the caller may go on.
        """
        batch = list(outgoing)
        if not batch:
            return
        crash.point("publish.before")
        try:
            with self._producers.acquire(block=True) as producer, producer.batch():
                for message in batch:
                    self._send(producer, message)
        except _AWAY as error:
            fault = of_redis(error, self._where)
            raise InfrastructureError(f"{len(batch)} messages could not be published: {fault or error}.") from error
        crash.point("publish.after")
        self.messages += len(batch)
        self.ledger.published(batch)
        crash.point("outbox.after")

    def restore(self, tags: Iterable[str]) -> None:
        """Put messages that were taken back where they are taken next; one that is acknowledged by now stays away.

        Raises:
            InfrastructureError: Redis is away; those that are left can be restored later.
        """
        try:
            with self._producers.acquire(block=True) as producer:
                for tag in tags:
                    try:
                        producer.channel.qos.restore_by_tag(tag)
                    except (ValueError, KeyError, TypeError, AttributeError) as error:  # none of ours
                        log.error("what was taken as %s is no message and is let be: %s", tag, error)
                        self.ledger.redis.zrem(rk.TAKEN, tag)
        except _AWAY as error:
            raise InfrastructureError(
                f"Messages could not be restored: {of_redis(error, self._where) or error}."
            ) from error

    def _send(self, producer: Any, message: Outgoing) -> None:
        """Celery's message protocol 2, written directly: the body is JSON already and is not parsed again."""
        identity = uuid.uuid4().hex
        task = _task_of(message.body)
        producer.publish(
            f'[[{message.body}],{{}},{{"callbacks":null,"errbacks":null,"chain":null,"chord":null}}]',
            exchange="",
            routing_key=message.queue,
            content_type="application/json",
            content_encoding="utf-8",
            headers={"lang": "py", "task": task, "id": identity, "root_id": identity, "argsrepr": "", "retries": 0},
            delivery_mode=2,
        )


def _task_of(body: str) -> str:
    """Return the task's name from a message's JSON (keys are sorted: only plain ids stand before it)."""
    start = body.index('"task": "') + len('"task": "')
    return body[start : body.index('"', start)]
