from __future__ import annotations

import time
from typing import Any

import pytest

from communitree_shared import clock


class Server:
    def __init__(self, ahead: float) -> None:
        self.ahead, self.asked = ahead, 0

    def time(self) -> tuple[int, int]:
        self.asked += 1
        now = time.time() + self.ahead
        return int(now), int(now % 1 * 1e6)


def test_time_is_the_servers_and_asked_for_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_measured", None)
    assert abs(clock.now() - time.time()) < 1  # before it was asked
    server: Any = Server(ahead=-300)
    for _ in range(5):
        assert abs(clock.now_of(server) - (time.time() - 300)) < 5
    assert server.asked == 1
    monkeypatch.setattr(time, "time", lambda: 0.0)  # somebody sets the machine's clock
    assert clock.now() > 1e9


def test_a_server_that_is_away_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_measured", (5e9, time.monotonic() - 100))

    class Away:
        def time(self) -> None:
            raise ConnectionResetError

    away: Any = Away()
    assert clock.now_of(away) > 5e9
