"""Parts of a large object: the right bytes wherever they lie, one request for each block."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from communitree_workers.runtime import services
from communitree_workers.runtime.cache import Cache
from communitree_workers.runtime.services import Services

DATA = random.Random(1).randbytes(1000)


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch) -> tuple[Services, list[int]]:
    """Services over one object of a thousand bytes, and the offsets that were asked of the store."""
    monkeypatch.setattr(services, "_BLOCK", 64)
    asked: list[int] = []

    def get_range(key: str, offset: int, length: int) -> bytes:
        asked.append(offset)
        return DATA[offset : offset + length]

    made = object.__new__(Services)
    made.objects = Cache(10_000)
    made.store = SimpleNamespace(get_range=get_range)  # type: ignore[assignment]
    return made, asked


def test_every_part_is_what_lies_there(holder: tuple[Services, list[int]]) -> None:
    made, asked = holder
    for offset, length in ((0, 1), (0, 1000), (63, 2), (64, 64), (100, 300), (936, 64), (999, 1), (128, 0)):
        assert made.part("k", offset, length) == DATA[offset : offset + length]
    assert sorted(asked) == list(range(0, 1000, 64))


def test_neighbours_share_a_request(holder: tuple[Services, list[int]]) -> None:
    made, asked = holder
    assert [made.part("k", at, 8) for at in range(64, 128, 8)] == [DATA[at : at + 8] for at in range(64, 128, 8)]
    assert asked == [64]
