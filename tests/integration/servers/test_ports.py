"""Servers of tests find a port though other test processes take ports at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from support import valkey


def test_a_port_that_is_taken_in_between_is_given_up_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with valkey.running_valkey(tmp_path / "first") as first:
        ports = iter([first.port, first.port, valkey.free_port()])
        monkeypatch.setattr(valkey, "free_port", lambda: next(ports))
        with valkey.running_valkey(tmp_path / "second") as second:
            assert second.port != first.port
            for server, folder in ((first, "first"), (second, "second")):
                with redis.Redis(port=server.port, decode_responses=True) as client:
                    assert client.config_get("dir")["dir"] == str(tmp_path / folder)
