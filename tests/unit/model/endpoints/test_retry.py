from __future__ import annotations

import random
from email.utils import formatdate

import pytest

from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.retry import Tries, retry_after


def waits(seed: int, failures: list[CallFailed], limit: int = 6) -> tuple[list[float], bool]:
    """Return the times of all tries after the first failure, and whether the call gave up in the end."""
    tries = Tries(limit, random.Random(seed))
    now, times = 0.0, []
    for failure in failures:
        wait = tries.wait(failure, now)
        if wait is None:
            return times, True
        now += wait
        times.append(now)
    return times, False


def test_six_tries_outlast_an_endpoint_that_is_away_for_a_minute() -> None:
    away = CallFailed("away")
    for seed in range(200):
        times, gave_up = waits(seed, [away] * 6)
        assert gave_up
        assert len(times) == 5
        assert times[0] <= 1.9
        assert 120 <= times[-1] <= 185


def test_calls_that_failed_together_do_not_come_back_together() -> None:
    seconds = sorted(waits(seed, [CallFailed("away")] * 3)[0][2] for seed in range(200))
    assert seconds[20] < 12
    assert seconds[180] > 25


def test_two_tries_fail_quickly() -> None:
    times, gave_up = waits(1, [CallFailed("away")] * 2, limit=2)
    assert gave_up
    assert times[-1] <= 1.9


def test_being_told_to_slow_down_is_no_failure() -> None:
    limited = CallFailed("slow down", status=429)
    times, gave_up = waits(3, [limited] * 30)
    assert not gave_up
    assert len(times) == 30
    _, gave_up = waits(3, [limited] * 200)
    assert gave_up


def test_retry_after_is_kept_but_not_by_all_at_once() -> None:
    told = CallFailed("busy", status=503, retry_after=20.0)
    seen = {waits(seed, [told])[0][0] for seed in range(50)}
    assert min(seen) >= 20.0
    assert max(seen) <= 21.1
    assert len(seen) == 50


def test_a_quota_of_hours_is_not_waited_for() -> None:
    assert waits(1, [CallFailed("daily limit", status=429, retry_after=3600.0)]) == ([], True)


def test_jitter_leaves_half_of_the_time_to_the_next_try() -> None:
    tries = Tries(6, random.Random(1), failed=4, first_failure=0.0)
    assert tries.wait(CallFailed("away"), 5.0, remaining=10.0) == pytest.approx(5.0)


def test_retry_after_in_both_forms() -> None:
    assert retry_after("2.5") == 2.5
    assert retry_after("0") == 0.0
    assert retry_after(formatdate(1_000_030, usegmt=True), now=1_000_000.0) == pytest.approx(30.0)
    assert retry_after(formatdate(1_000_000, usegmt=True), now=1_000_030.0) == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None
