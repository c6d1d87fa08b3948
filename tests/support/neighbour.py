"""An application with Celery of its own, and a client of ours in one process: `… -m support.neighbour CORPUS TASKS`.

Its worker runs tasks that take longer than two of our heartbeats, while questions are asked beside it. Each run of a
task is counted in Redis (`neighbour:runs`); `neighbour:done` tells that all is over.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from celery import Celery

from communitree.client import Client
from communitree_shared.contract.options import QueryOptions
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

SECONDS, SLOTS = 3.0, 2

settings = Settings()
app = Celery("neighbour", broker=settings.redis_url.get_secret_value(), set_as_current=True)
app.conf.update(task_acks_late=True, task_ignore_result=True, worker_prefetch_multiplier=2,
                broker_connection_retry_on_startup=True)  # fmt: skip


@app.task(name="neighbour.work")
def work(number: int) -> None:
    redis_client(settings).hincrby("neighbour:runs", str(number), 1)
    time.sleep(SECONDS)
    redis_client(settings).hincrby("neighbour:ends", str(number), 1)


def beside(corpus: str, tasks: int) -> None:
    ends = redis_client(settings)
    with Client(settings) as client:
        for number in range(tasks):
            work.delay(number)
        for number in range(5):
            answer = client.ask(corpus, f"What is said of tuples, {number}?", QueryOptions(cache=False))
            assert answer.status in {"answered", "no_data"}
        while ends.hlen("neighbour:ends") < tasks:
            time.sleep(0.1)
        time.sleep(2 * SECONDS)  # what is to run twice does so now
        ends.set("neighbour:done", "1")
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=beside, args=(sys.argv[1], int(sys.argv[2])), daemon=True).start()
    app.Worker(pool="threads", concurrency=SLOTS, loglevel="WARNING").start()
