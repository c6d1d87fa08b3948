"""The Celery app of a worker. What consumes with it is `communitree_workers.runtime.consume`.

The settings follow from measurements of the Redis transport: late acknowledgements, marks that a heartbeat keeps young
(`layout.TAKEN`), no prefetch, no result backend, no ETA. Delivery is at least once; the ledger makes it enough.
"""

from __future__ import annotations

from celery import Celery

from communitree_shared.broker.transport import transport_of, transport_options
from communitree_shared.redis_server.connect import address
from communitree_shared.settings import Settings


def make_app(settings: Settings) -> Celery:
    """Return the Celery app of a worker; nothing is connected yet, and no other app of the process knows of it."""
    found = address(settings)
    app = Celery("communitree", broker=found.broker_url(), set_as_current=False)
    app.conf.update(
        broker_transport=transport_of(settings),
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
