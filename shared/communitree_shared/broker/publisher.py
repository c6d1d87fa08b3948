"""Publishing what the ledger has put into its outbox. Needs kombu, not Celery: a client waits half a second less."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import kombu.exceptions
import redis
from kombu.pools import ProducerPool

from communitree_shared import crash
from communitree_shared.broker.envelope import headers, wrapped
from communitree_shared.broker.transport import connection
from communitree_shared.errors import InfrastructureError
from communitree_shared.faults import of_redis
from communitree_shared.ledger.client import Ledger, Outgoing
from communitree_shared.redis_server.connect import address
from communitree_shared.settings import Settings

_AWAY = (redis.RedisError, kombu.exceptions.KombuError, OSError)


class Publisher:
    """Publishes what the ledger put into its outbox, and takes it out there. Needs kombu only."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self._where = address(settings).where
        self._connections: Any = connection(settings).Pool(10)
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
                    producer.channel.qos.give_back(tag)
        except _AWAY as error:
            raise InfrastructureError(
                f"Messages could not be restored: {of_redis(error, self._where) or error}."
            ) from error

    def _send(self, producer: Any, message: Outgoing) -> None:
        """Celery's message protocol 2, written directly: the body is JSON already and is not parsed again."""
        producer.publish(
            wrapped(message.body),
            exchange="",
            routing_key=message.queue,
            content_type="application/json",
            content_encoding="utf-8",
            headers=headers(_task_of(message.body), uuid.uuid4().hex),
            delivery_mode=2,
        )


def _task_of(body: str) -> str:
    """Return the task's name from a message's JSON (keys are sorted: only plain ids stand before it)."""
    start = body.index('"task": "') + len('"task": "')
    return body[start : body.index('"', start)]
