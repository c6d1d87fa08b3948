"""A busy model worker that is told to stop, ten times (two hundred in tests/soak): it ends, and ends well."""

from __future__ import annotations

from pathlib import Path

from communitree_shared.settings import Settings
from support.busy_stops import busy_stops


def test_a_busy_worker_ends_well_when_told_to_stop(settings: Settings, tmp_path: Path) -> None:
    assert list(busy_stops(tmp_path, settings, 10)) == [(0, [])] * 10
