"""Half a million random calls of the ledger's scripts from eight threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from communitree_shared.settings import Settings
from support.interleavings import Race
from support.valkey import running_valkey


@pytest.mark.timeout(3600)
def test_no_order_of_calls_breaks_a_rule(tmp_path: Path) -> None:
    with running_valkey(tmp_path) as valkey:
        race = Race(Settings(redis_url=SecretStr(valkey.url), s3_endpoint="127.0.0.1:1"))
        try:
            for seed in range(1_000, 3_000):
                race.run(seed)
            assert race.at_rest() == []
            assert race.calls > 400_000
        finally:
            race.close()
