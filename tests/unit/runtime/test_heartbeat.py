"""The heart beats in the worker's loop and beside it; what holds up one beat ends neither."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from communitree_shared.settings import Settings
from communitree_workers.runtime.heartbeat import DEAD_AFTER, Heartbeat

ARGS = [{"tenant": "t", "job": "j", "stage": "map", "units": [{"id": "u"}]}]


class Timer:
    """The timer of a worker's loop."""

    def __init__(self) -> None:
        self.repeated: list[Callable[[], None]] = []
        self.cancelled = threading.Event()

    def call_repeatedly(self, seconds: float, work: Callable[[], None], priority: int = 0) -> Any:
        self.repeated.append(work)
        return SimpleNamespace(cancel=self.cancelled.set)


class Ledger:
    """Counts beats."""

    def __init__(self) -> None:
        self.redis = SimpleNamespace(time=lambda: (int(time.time()), 0), zadd=lambda *_, **__: None)
        self.renewed: list[list[str]] = []
        self.beaten = threading.Event()

    def renew(self, members: list[str], lease_s: float) -> list[str]:
        self.renewed.append(members)
        self.beaten.set()
        return []


def heartbeat(ledger: Ledger, running: Callable[[], dict[str, Any]]) -> Heartbeat:
    settings = Settings(lease_renewal=3600.0, visibility_timeout=4 * 3600.0)
    return Heartbeat(settings, ledger, held=lambda: ["tag"], running=running, lost=lambda lost: None)  # type: ignore[arg-type]


def test_a_set_that_changes_while_it_is_read_costs_one_beat_and_not_the_worker() -> None:
    """Threads of the pool begin and end tasks while the loop reads which run; at a start, Celery would give up."""
    ledger, timer = Ledger(), Timer()
    found: list[Any] = [RuntimeError("Set changed size during iteration"), {"x": ARGS}]

    def running() -> dict[str, Any]:
        one = found.pop(0)
        if isinstance(one, Exception):
            raise one
        return one  # type: ignore[no-any-return]

    heartbeat(ledger, running).inside(timer)
    assert not ledger.renewed
    timer.repeated[0]()
    assert ledger.renewed == [["t|j|map|u"]]


def test_no_time_passes_between_the_last_beat_of_the_loop_and_the_first_beside_it() -> None:
    """Two periods without one would look like death."""
    ledger, timer = Ledger(), Timer()
    heart = heartbeat(ledger, lambda: {"x": ARGS})
    heart.inside(timer)
    ledger.beaten.clear()
    heart.outside()
    assert timer.cancelled.is_set()
    assert ledger.beaten.wait(10)
    heart.inside(timer)  # ends the thread


def test_a_heart_is_sound_until_it_has_been_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("communitree_workers.runtime.heartbeat.time.monotonic", lambda: now[0])
    heart = heartbeat(Ledger(), dict)
    now[0] += 10 * DEAD_AFTER
    assert heart.sound, "it has not begun: the worker waits for its servers"
    heart.beat()
    now[0] += DEAD_AFTER - 1
    assert heart.sound
    now[0] += 2
    assert not heart.sound
    heart.beat()
    assert heart.sound
