"""The scripts under random interleavings from eight threads: one close, the first outcome wins, nothing is left."""

from __future__ import annotations

from communitree_shared.settings import Settings
from support.interleavings import Race


def test_no_order_of_calls_breaks_a_rule(settings: Settings) -> None:
    race = Race(settings)
    try:
        for seed in range(40):
            race.run(seed)
        assert race.at_rest() == []
        assert race.calls > 5_000
    finally:
        race.close()
