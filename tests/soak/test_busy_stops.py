"""A busy model worker that is told to stop, two hundred times; one in twenty once ended with a segmentation fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree.embedded.servers import Servers
from communitree_shared.settings import Settings
from support.busy_stops import busy_stops

TIMES = 200


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with Servers(tmp_path / "servers") as endpoints:
        yield endpoints.into(Settings(home=tmp_path / "home"))


@pytest.mark.timeout(3600)
def test_two_hundred_busy_stops(settings: Settings, tmp_path: Path) -> None:
    ends = Counter((code, *signs) for code, signs in busy_stops(tmp_path, settings, TIMES, seed=7))
    assert ends == {(0,): TIMES}
