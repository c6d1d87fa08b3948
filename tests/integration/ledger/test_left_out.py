"""What a caller did not upload stays with a corpus job, also when it is submitted again or resumed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from communitree import recovery
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.messages import LeftOut
from communitree_shared.contract.options import IndexOptions
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

DOCUMENTS = [{"name": "a", "sha256": "0" * 64, "size": 1}]
EMPTY = LeftOut(reason="empty", count=1, names=["b.txt"])


@pytest.fixture
def jobs(settings: Settings) -> Iterator[Jobs]:
    store, ledger = Store(settings), Ledger(redis_client(settings), patience=5)
    store.ensure_bucket()
    publisher = Publisher(settings, ledger)
    yield Jobs(settings, store, ledger, publisher)
    publisher.close()
    ledger.redis.close()


def test_a_resumed_job_tells_of_the_same_files(jobs: Jobs) -> None:
    first = jobs.submit_index("c", DOCUMENTS, IndexOptions(), left_out=[EMPTY]).job
    jobs.cancel(first)
    resumed = recovery.resume(jobs, first)
    assert resumed != first
    request = jobs.store.get_json(jobs.keys.job(resumed, "request.json"))
    assert request["left_out"] == [EMPTY.model_dump()]


def test_a_new_empty_file_beside_the_documents_makes_no_other_request_of_an_idempotency_key(jobs: Jobs) -> None:
    first = jobs.submit_index("k", DOCUMENTS, IndexOptions(), idempotency_key="key")
    again = jobs.submit_index("k", DOCUMENTS, IndexOptions(), idempotency_key="key", left_out=[EMPTY])
    assert again.job == first.job
