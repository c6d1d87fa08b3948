"""Loops whose server is away: told of once, with pauses that grow to a bound."""

from __future__ import annotations

import logging

import pytest

from communitree_shared.trouble import Knocks

log = logging.getLogger("knocks")


def test_a_loop_asks_more_seldom_while_its_server_is_away_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    knocks = Knocks("the intake", log)
    assert [knocks.met(OSError("gone"), 0.5) for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert [r.message for r in caplog.records] == ["the intake waits: gone"]
    knocks.over()
    assert knocks.met(OSError("gone"), 0.5) == 0.5
    assert len(caplog.records) == 2


def test_another_kind_of_failure_is_told_of_and_no_pause_is_shorter_than_the_loops_own() -> None:
    knocks = Knocks("the reconciler", log)
    assert [knocks.met(OSError(), 5.0), knocks.met(OSError(), 5.0)] == [5.0, 5.0]
    assert knocks.met(ValueError(), 0.2) == 0.2
