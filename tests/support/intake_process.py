"""An intake in a process of its own, for tests that kill it: `python -m support.intake_process`."""

from __future__ import annotations

from communitree_shared.broker.publisher import Publisher
from communitree_shared.ledger import Ledger
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from communitree_workers.runtime.intake import Intake

if __name__ == "__main__":
    settings = Settings()
    ledger = Ledger(redis_client(settings), patience=5)
    Intake(settings, Store(settings, patience=30), ledger, Publisher(settings, ledger)).run()
