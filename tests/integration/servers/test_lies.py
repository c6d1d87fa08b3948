"""A store that does not keep what it promises: nothing is taken for stored, or for whole, that is not."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree_shared.errors import InfrastructureError, ServerRefuses
from communitree_shared.ledger import Ledger
from communitree_shared.objects.keys import Keys, MissingObject
from communitree_shared.objects.pairing import check_pair
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from support.lying_store import LyingStore, lying_store
from support.valkey import running_valkey

DATA = b"what was sent " * 1000
LARGE = 33 * 2**20


@pytest.fixture
def lying(settings: Settings) -> Iterator[tuple[LyingStore, Store]]:
    with lying_store(settings.s3_endpoint) as proxy:
        store = Store(settings.model_copy(update={"s3_endpoint": proxy.endpoint}), patience=0.5)
        store.ensure_bucket()
        proxy.asked.clear()
        yield proxy, store


def test_the_truth_costs_nothing(lying: tuple[LyingStore, Store]) -> None:
    proxy, store = lying
    store.put("lies/a", DATA)
    assert store.get("lies/a") == DATA
    store.put("lies/empty", b"")
    assert store.get("lies/empty") == b""
    assert store.put_new("lies/new" + str(time.time()), DATA)
    assert store.get_range("lies/a", 5, 8) == DATA[5:13]
    assert proxy.asked == {"PUT": 3, "GET": 3}


@pytest.mark.parametrize("size", [LARGE, 32 * 2**20, 16 * 2**20, 16 * 2**20 + 1])
def test_parts_prove_the_whole(lying: tuple[LyingStore, Store], size: int) -> None:
    proxy, store = lying
    store.put_file("lies/large", io.BytesIO(b"\x07" * size), size)
    assert proxy.asked["HEAD"] == 0
    assert store.get("lies/large") == b"\x07" * size
    assert proxy.asked["HEAD"] == 0


@pytest.mark.parametrize("lie", ["takes and stores nothing", "takes and stores nothing, without ETag"])
def test_what_was_not_stored_is_not_taken_for_stored(lying: tuple[LyingStore, Store], lie: str) -> None:
    proxy, store = lying
    proxy.lie = lie
    key = f"lies/nothing{time.time()}"
    with pytest.raises(InfrastructureError, match=f"has not stored what was sent.*{key}"):
        store.put(key, DATA)
    with pytest.raises(InfrastructureError, match="has not stored what was sent"):
        store.put_new(key, DATA)
    proxy.lie, store.patience = "", 20
    store.put(key, DATA)
    assert store.get(key) == DATA


@pytest.mark.parametrize("lie", ["gives half", "gives half and hangs up"])
def test_half_an_object_is_not_taken_for_whole(lying: tuple[LyingStore, Store], lie: str) -> None:
    proxy, store = lying
    store.put("lies/half", DATA)
    proxy.lie = lie
    with pytest.raises(InfrastructureError, match="lies/half"):
        store.get("lies/half")
    with pytest.raises(InfrastructureError, match="lies/half"):
        store.get_range("lies/half", 0, 1000)
    proxy.lie, store.patience = "", 20
    assert store.get("lies/half") == DATA


def test_a_store_without_ranges_is_no_store_of_ranges(lying: tuple[LyingStore, Store]) -> None:
    proxy, store = lying
    store.put("lies/ranges", DATA)
    proxy.lie = "knows no ranges"
    with pytest.raises(InfrastructureError, match="knows no ranges"):
        store.get_range("lies/ranges", 5, 8)


def test_etags_that_are_no_md5_are_looked_into_once(lying: tuple[LyingStore, Store]) -> None:
    proxy, store = lying
    proxy.lie = "other ETags"
    store.put("lies/kms", DATA)
    assert proxy.asked == {"PUT": 1, "HEAD": 1, "GET": 1}
    for _ in range(5):
        store.put("lies/kms", DATA)
        assert store.get("lies/kms") == DATA
    assert proxy.asked == {"PUT": 6, "HEAD": 1, "GET": 6}


def test_a_reader_learns_of_such_etags_too(lying: tuple[LyingStore, Store]) -> None:
    proxy, store = lying
    store.put("lies/read", DATA)
    proxy.lie = "other ETags"
    for _ in range(3):
        assert store.get("lies/read") == DATA
    assert proxy.asked == {"PUT": 1, "HEAD": 1, "GET": 4}


@pytest.mark.parametrize("lie", ["no conditions", "conditions passed over"])
def test_a_store_without_conditional_writes_is_a_clear_no_at_the_start(
    settings: Settings, lying: tuple[LyingStore, Store], lie: str
) -> None:
    proxy, store = lying
    client = redis_client(settings)
    check_pair(settings, store, client)
    proxy.lie = lie
    began = time.monotonic()
    with pytest.raises(ServerRefuses, match="no conditional writes") as refused:
        check_pair(settings, store, client)
    assert time.monotonic() - began < 2
    client.close()
    assert "Managed S3" in refused.value.hint


def test_a_clock_that_is_off_is_named(settings: Settings, lying: tuple[LyingStore, Store]) -> None:
    proxy, store = lying
    proxy.lie = "an hour behind"
    for ask in (store.ensure_bucket, lambda: store.get("lies/a")):
        with pytest.raises(ServerRefuses, match=r"The clock of this machine is 60 min ahead of the clock of .*") as off:
            ask()
        assert "NTP" in off.value.hint


def test_a_missing_object_is_named_with_what_should_be_there(lying: tuple[LyingStore, Store]) -> None:
    _, store = lying
    keys = Keys("acme")
    for key, what in (
        (keys.manifest("红楼", "v-1"), "the manifest of the version v-1 of the corpus '红楼' is missing"),
        (keys.table("c", "v-1", "entities"), "entities.parquet of the version v-1 of the corpus 'c' is missing"),
        (keys.unit("c", "report", "abc"), "what a unit of the stage report made of the corpus 'c' is missing"),
        (keys.job("j-1", "request.json"), "request of the job j-1 is missing"),
    ):
        with pytest.raises(MissingObject) as missing:
            store.get(key)
        assert f"no object {key} in the bucket {store.bucket}: {what}" in str(missing.value)
        assert isinstance(missing.value, KeyError)


def test_a_tls_address_of_a_plain_port_and_a_missing_password_end_soon(tmp_path: Path) -> None:
    with running_valkey(tmp_path / "plain") as valkey:
        client = redis_client(Settings(redis_url=valkey.url.replace("redis://", "rediss://")))
        began = time.monotonic()
        with pytest.raises(ServerRefuses, match="speaks no TLS") as refused:
            Ledger(client, patience=60).wait()
        assert time.monotonic() - began < 15
        assert "rediss://" in refused.value.hint
    with running_valkey(tmp_path / "closed", "--requirepass", "x") as valkey:
        with pytest.raises(ServerRefuses, match="wants a password, and none is set") as refused:
            Ledger(redis_client(Settings(redis_url=valkey.url)), patience=60).wait()
        assert "redis://:password@host" in refused.value.hint
