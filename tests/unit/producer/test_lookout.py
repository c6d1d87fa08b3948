from __future__ import annotations

import pytest

from communitree.embedded.lookout import Lookout
from communitree.embedded.servers import Endpoints
from communitree_shared.settings import Settings


@pytest.fixture
def lookout() -> Lookout:
    return Lookout(Settings(), Endpoints(1, "127.0.0.1:1", "", "", ""))


def test_what_is_gone_once_is_not_lost_yet(lookout: Lookout) -> None:
    assert lookout.judge("gone", "why", 100.0) == ""
    assert lookout.judge("gone", "why", 103.0) == ""
    assert lookout.judge("", "", 106.0) == ""
    assert lookout.judge("gone", "why", 109.0) == ""
    assert lookout.judge("gone", "why", 115.0) == "why"


def test_what_cannot_be_read_gets_a_minute(lookout: Lookout) -> None:
    assert lookout.judge("unreadable", "why", 100.0) == ""
    assert lookout.judge("unreadable", "why", 159.0) == ""
    assert lookout.judge("unreadable", "why", 160.0) == "why"


def test_each_state_has_its_own_time(lookout: Lookout) -> None:
    lookout.judge("unreadable", "why", 100.0)
    assert lookout.judge("gone", "why", 130.0) == ""
    assert lookout.judge("unreadable", "why", 165.0) == ""
