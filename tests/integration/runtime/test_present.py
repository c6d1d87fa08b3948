"""Which of a level's units exist is asked for, not what all versions of the corpus have ever made."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from communitree_shared.objects.store import Store
from communitree_shared.settings import Settings

OLD = [hashlib.sha256(str(n).encode()).hexdigest()[:40] for n in range(1200)]


@pytest.fixture
def folder(settings: Settings) -> tuple[Store, str]:
    store, folder = Store(settings, patience=10), f"{settings.s3_prefix}/units/report/"
    store.ensure_bucket()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put(folder + name, b"x"), OLD))
    return store, folder


def test_few_are_asked_for_one_by_one_and_many_by_pages(folder: tuple[Store, str]) -> None:
    store, path = folder
    for wanted, most in ((OLD[:3], 4), (OLD[:60], 61), (OLD[::7], 4), (OLD, 4)):
        absent = [name[:-1] + "g" for name in wanted[:2]]
        before = store.requests
        assert store.present(path, [*wanted, *absent, *wanted]) == set(wanted)
        assert store.requests - before <= most + len(absent)
    assert store.present(path, []) == set()
    assert store.present(path + "nowhere/", OLD[:100]) == set()
    first = sorted(OLD)[:100]
    before = store.requests
    assert store.present(path, first) == set(first)
    assert store.requests - before == 1  # the second page is not read
