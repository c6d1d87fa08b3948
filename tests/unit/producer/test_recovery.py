from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from communitree import recovery
from communitree_shared.errors import CorpusBusy, CorpusNotFound


@pytest.mark.parametrize(
    ("error", "state", "cleared"),
    [
        (CorpusBusy("it is being indexed"), "failed", []),
        (CorpusNotFound("it was deleted"), "failed", ["1-0"]),
        (recovery.UsageError("nothing is left to do"), "published", ["1-0"]),
        (recovery.UsageError("its options are refused"), "failed", []),
    ],
)
def test_a_letter_stays_until_its_job_is_taken_up_or_needs_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, state: str, cleared: list[str]
) -> None:
    gone: list[str] = []
    redis = SimpleNamespace(xrevrange=lambda *_, **__: [("1-0", {"job": "j"})], xdel=lambda _, *ids: gone.extend(ids))
    jobs: Any = SimpleNamespace(tenant="t", ledger=SimpleNamespace(redis=redis), record=lambda job: {"state": state})

    def refuses(*_: Any) -> str:
        raise error

    monkeypatch.setattr(recovery, "resume", refuses)
    assert recovery.redrive(jobs) == []
    assert gone == cleared
