"""Messages that are set aside: those of a newer version wait for a newer worker, foreign ones are kept with the reason.

What waits is found again by every worker that knows it, also when older ones go on setting such messages aside beside
it. A message is published before it is taken out of the list: who dies in between leaves it twice, not lost.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from communitree_shared import crash
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.messages import QUEUE_PREFIX, TASKS, parse_message
from communitree_shared.errors import BadInput, NewerMessage
from communitree_shared.ledger import Ledger, Outgoing
from communitree_shared.ledger.keeping import FOREIGN, trim
from communitree_shared.redis_server import rediskeys as rk

log = logging.getLogger(__name__)

#: So many messages of a queue wait for a newer worker at most.
MOST_PARKED = 10_000

#: So much of a foreign message is kept.
KEPT_BYTES = 4096


def park(ledger: Ledger, queue: str, entry: dict[str, Any], ttl: float) -> None:
    """Keep a message that this worker does not know; one that waits already is not kept twice.

    Where the list is full it is left to the ledger, which publishes a unit again that nobody has begun.
    """
    status = ledger.park(queue, json.dumps(entry), MOST_PARKED, ttl)
    if status == "full":
        log.error(
            "%d messages of %s wait for a newer worker: this one is published again later. Start newer workers.",
            MOST_PARKED, queue,
        )  # fmt: skip
    else:
        log.warning("parked for a newer worker: %s of %s", entry.get("task", "a message"), queue)


def queue_of_body(body: Any) -> str:
    """Return the queue that a newer message belongs to, as far as it can be told."""
    return QUEUE_PREFIX + TASKS.get(str(body.get("task")), "unknown") if isinstance(body, dict) else "unknown"


def keep_foreign(ledger: Ledger, queue: str, task: str, body: str, why: str) -> None:
    """Keep what no publisher of ours made, with the reason."""
    log.error("a message of %s was set aside: %s", queue or "an unknown queue", why)
    letter = {"queue": queue, "task": task[:200], "why": why[:500], "body": body[:KEPT_BYTES]}
    stream = rk.dead_letters(rk.FOREIGN)
    ledger.redis.xadd(stream, dict[Any, Any](letter))
    trim(ledger, {stream: FOREIGN})  # at once: a flood of them must not fill Redis


class Unparking:
    """Puts back what waited for a worker that knows it, again and again: older workers may go on parking."""

    def __init__(self, ledger: Ledger, publisher: Publisher, queues: list[str]) -> None:
        self.ledger, self.publisher, self.queues = ledger, publisher, queues
        self._seen: dict[str, tuple[int, Any]] = {}

    def look(self) -> int:
        """Publish what this worker knows; return how many messages these were."""
        crash.acting("unparking")
        return sum(self._queue(QUEUE_PREFIX + name) for name in self.queues)

    def _queue(self, queue: str) -> int:
        client, key = self.ledger.redis, rk.parked(queue)
        state: tuple[int, Any] = (client.llen(key), client.lindex(key, 0))
        if state == self._seen.get(queue, (0, None)):
            return 0  # nothing that this worker has not looked at
        found = 0
        entries: Any = client.lrange(key, 0, -1)
        for entry in reversed(entries):  # the oldest first
            try:
                body = _body(str(entry))
            except NewerMessage:
                continue
            except (BadInput, ValueError, KeyError, IndexError, TypeError) as error:
                keep_foreign(self.ledger, queue, "", str(entry), f"parked, but no message of ours: {error}")
            else:
                self.publisher.publish([Outgoing("", queue, body)])
                found += 1
                crash.point("unpark.published")
            client.lrem(key, 1, entry)
        self._seen[queue] = (client.llen(key), client.lindex(key, 0))
        return found


def _body(entry: str) -> str:
    found = json.loads(entry)
    body = json.loads(found["raw"])[0][0] if "raw" in found else found
    parse_message(body)
    return json.dumps(body, sort_keys=True)
