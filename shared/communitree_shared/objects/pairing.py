"""Queues and objects belong together: a worker that looks for a job's objects in another bucket would fail the job.

The bucket carries a name of its own (an object beside the tenants' folders), and Redis knows the name of the one that
its jobs lie in. A bucket that is copied to another server takes its name along.
"""

from __future__ import annotations

import uuid

import redis

from communitree_shared.errors import OtherBucket
from communitree_shared.faults import no_conditions
from communitree_shared.objects.keys import bucket_name
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import where_of
from communitree_shared.settings import Settings


def check_pair(settings: Settings, store: Store, client: redis.Redis) -> None:
    """Refuse a bucket (or a prefix in it) that is not the one of the jobs in this Redis.

    A bucket gets its name from the first who asks, and only while Redis knows of none: later a bucket without one is
    another, or has lost what it held.

    Raises:
        OtherBucket: jobs in this Redis lie in another one.
        ServerRefuses: the store knows no conditional writes.
        InfrastructureError: a server is away.
    """
    key = bucket_name(settings.s3_prefix)
    known = client.get(rk.BUCKET)
    mine = store.find(key)
    if mine is None and not known:
        store.put_new(key, uuid.uuid4().hex.encode())
        mine = store.get(key)
    if mine is not None:
        if store.put_new(key, mine):  # the same bytes: nothing is lost where it is written over
            raise no_conditions(settings.s3_endpoint, "the condition was passed over")
        client.set(rk.BUCKET, mine, nx=True)
        if client.get(rk.BUCKET) == mine.decode():
            return
    place = settings.s3_bucket + (f" below {settings.s3_prefix}" if settings.s3_prefix else "")
    gone = "" if mine else f", or it has lost its data: there is no {key}"
    raise OtherBucket(
        f"The jobs in Redis at {where_of(client)} lie in another bucket than {place} at {settings.s3_endpoint}{gone}.",
        hint="Set COMMUNITREE_S3_BUCKET and COMMUNITREE_S3_PREFIX as all other workers have them, or use a Redis "
        f"database of its own. Where the bucket was replaced on purpose: DEL {rk.BUCKET}.",
    )
