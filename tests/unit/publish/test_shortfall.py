"""When a version is no shell: which failures count, and what they are compared with."""

from __future__ import annotations

import pytest

from communitree_shared.contract.results import Failures
from communitree_workers.publish.shortfall import StageEnd, shares_of, worse


def ended(units: int, succeeded: int, failed: int, cause: str = "model", stage: str = "report") -> StageEnd:
    groups = [Failures(stage=stage, cause=cause, message="Incorrect API key.", count=failed)] if failed else []
    return StageEnd(stage, units, succeeded, failed, groups)


@pytest.mark.parametrize(
    ("stage", "short"),
    [
        (ended(100, 100, 0), False),
        (ended(100, 0, 0), False),  # all were found again
        (ended(100, 95, 5), False),
        (ended(100, 94, 6), True),
        (ended(10, 8, 2), False),  # a fifth, but two are few
        (ended(10, 7, 3), True),
        (ended(100, 0, 1), True),  # the only call of this job
        (ended(3, 0, 3), True),
        (ended(10, 0, 10, "content_refused"), False),
        (ended(10, 0, 10, "budget"), False),
    ],
)
def test_too_many_failures(stage: StageEnd, short: bool) -> None:
    assert stage.fell_short(0.05) is short


def test_only_a_version_with_less_fallbacks_is_kept() -> None:
    stage = ended(4, 0, 4)
    assert worse([stage], 0.05, None) == []
    assert worse([stage], 0.05, {"fallbacks": {}}) == [stage]
    assert worse([stage], 0.05, {"fallbacks": {"report": 0.5}}) == [stage]
    assert worse([stage], 0.05, {"fallbacks": {"report": 1.0}}) == []
    assert worse([ended(4, 4, 0)], 0.05, {"fallbacks": {}}) == []


def test_versions_of_older_releases_are_judged_by_their_counts() -> None:
    assert shares_of({"result": {"status": "published"}}) == {}
    result = {"status": "partial", "counts": {"text_units": 8, "reports": 10}, "reports": {"extractive": 5}}
    assert shares_of({"result": result, "extract": {"failed": 2}}) == {"extract": 0.25, "report": 0.5}


def test_a_line_names_the_cause_that_counts() -> None:
    groups = [
        Failures(stage="extract", cause="content_refused", message="A filter refuses it.", count=9),
        Failures(stage="extract", cause="model", message="No such model.", count=4),
    ]
    stage = StageEnd("extract", 20, 7, 13, groups)
    assert stage.failed == 4
    assert stage.line() == "extract: 4 of 20 failed, most of them so: No such model."
