from __future__ import annotations

import threading
import time

import pytest

from communitree_workers.corpus.disk import downloads
from communitree_workers.corpus.disk.downloads import in_order, into_file


def test_results_come_in_the_order_of_the_items() -> None:
    def work(n: int) -> int:
        time.sleep(0.02 if n % 3 == 0 else 0)
        return n * n

    assert list(in_order(range(20), work, at_once=4)) == [n * n for n in range(20)]


def test_only_so_many_run_ahead() -> None:
    begun: list[int] = []
    results = in_order(range(100), lambda n: begun.append(n), at_once=5)
    next(results)
    deadline = time.monotonic() + 10
    while len(begun) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(begun) <= 6


def test_several_are_on_their_way_at_once() -> None:
    both = threading.Barrier(2, timeout=10)
    assert list(in_order(range(2), lambda n: both.wait() >= 0, at_once=2)) == [True, True]


def test_a_failure_comes_where_its_item_is() -> None:
    def work(n: int) -> int:
        if n == 3:
            raise KeyError(n)
        return n

    results = in_order(range(10), work, at_once=4)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError):
        next(results)


def test_a_large_object_comes_in_pieces_and_can_be_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_PIECE", 4)
    data, asked = b"0123456789", []

    def read(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return data[offset : offset + length]

    opened = into_file(read, len(data))
    for _ in range(2):
        with opened() as stream:
            assert stream.read() == data
    assert asked == [(0, 4), (4, 4), (8, 2)]
    stream = opened()
    del opened
    assert stream.read(3) == data[:3], "a stream outlives what opened it"
