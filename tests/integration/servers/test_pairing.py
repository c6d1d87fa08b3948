"""A worker of another bucket would fail every job that it takes: it is refused before it takes one."""

from __future__ import annotations

from typing import Any

import pytest

from communitree_shared.errors import ServerRefuses
from communitree_shared.objects.keys import bucket_name
from communitree_shared.objects.pairing import check_pair
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from communitree_workers.runtime.consume import Worker


def paired(settings: Settings) -> None:
    client, store = redis_client(settings), Store(settings, patience=5)
    try:
        store.ensure_bucket()
        check_pair(settings, store, client)
    finally:
        client.close()


@pytest.mark.parametrize("other", [{"s3_bucket": "another-bucket"}, {"s3_prefix": "another/ground"}])
def test_a_worker_of_another_bucket_is_refused_at_start(settings: Settings, other: dict[str, Any]) -> None:
    paired(settings)
    with pytest.raises(ServerRefuses, match="in another bucket") as refused:
        Worker(settings.model_copy(update=other), ["cpu"], {}).run()
    assert "COMMUNITREE_S3_BUCKET" in refused.value.hint
    assert rk.BUCKET in refused.value.hint
    paired(settings)


def test_a_redis_that_was_emptied_or_replaced_takes_the_bucket_as_it_is(settings: Settings) -> None:
    paired(settings)
    client = redis_client(settings)
    client.flushdb()
    paired(settings)
    assert client.get(rk.BUCKET) == Store(settings).get(bucket_name(settings.s3_prefix)).decode()
    client.close()


def test_a_bucket_that_was_moved_is_the_same(settings: Settings) -> None:
    paired(settings)
    moved = settings.model_copy(update={"s3_bucket": "moved-to"})
    target = Store(moved, patience=5)
    target.ensure_bucket()
    target.put(bucket_name(settings.s3_prefix), Store(settings).get(bucket_name(settings.s3_prefix)))
    paired(moved)
