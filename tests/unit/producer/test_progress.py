from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from communitree.events import Event
from communitree.render.progress import Progress


def event(seq: int, of: str, /, **fields: Any) -> Event:
    return Event(f"{seq}-0", seq, of, 1_000.0 + seq, fields)


STORY = [
    event(1, "job.submitted", kind="corpus", corpus="c"),
    event(2, "stage.started", stage="ingest", kind="ingest", total=1),
    event(3, "job.started"),
    event(4, "unit.ended", stage="ingest", unit="ingest", ok=True),
    event(5, "stage.ended", stage="ingest", done=1, failed=0, total=1),
    event(6, "stage.started", stage="level-3", kind="level", total=1),
    event(7, "stage.ended", stage="level-3", done=1, failed=0, total=1),
    event(8, "stage.started", stage="report-3", kind="report", level=3, total=4),
    event(9, "unit.ended", stage="report-3", unit="a", level=3, ok=True),
    event(10, "unit.retried", stage="report-3", unit="b", attempt=2),
    event(11, "unit.ended", stage="report-3", unit="b", level=3, ok=False),
]


def told(*events: Event) -> Progress:
    progress = Progress()
    for one in events:
        progress.take(one)
    return progress


def test_a_stage_is_told_after_the_one_that_began_before_it() -> None:
    quick = [
        event(1, "stage.started", stage="plan", kind="plan", total=1),
        event(2, "stage.started", stage="map", kind="map", total=6),
        event(3, "stage.ended", stage="map", done=6, failed=0, total=6),
    ]
    progress = told(*quick)
    assert list(progress.new_lines()) == []
    progress.take(event(4, "stage.ended", stage="plan", done=1, failed=0, total=1))
    assert list(progress.new_lines()) == ["plan: 3.0 s", "map: 6/6, 1.0 s"]
    cut_off = told(*quick)
    cut_off.ended = True
    assert list(cut_off.new_lines()) == ["map: 6/6, 1.0 s"]


def test_lines_come_once_when_a_stage_has_ended_and_steps_in_between_are_quiet() -> None:
    progress = told(*STORY)
    assert list(progress.new_lines()) == ["ingest: 3.0 s"]
    assert list(progress.new_lines()) == []
    assert progress.where() == "report level 3: 2/4, 1 failed, 1 tried again"  # too few for a guess
    progress.take(event(20, "stage.ended", stage="report-3", level=3, done=4, failed=1, total=4))
    assert list(progress.new_lines()) == ["report level 3: 4/4, 1 failed, 1 tried again, 12 s"]
    assert progress.where() == ""


def test_what_was_reused_and_spent_and_how_long_it_will_take() -> None:
    progress = told(
        event(1, "stage.started", stage="level-2", kind="level", total=1),
        event(2, "stage.started", stage="report-2", kind="report", level=2, total=20),
        event(3, "unit.ended", stage="level-2", unit="level-2", level=2, reports=27, reused=7, ok=True),
        *[event(12, "unit.ended", stage="report-2", unit=str(i), level=2, ok=True, tokens=500) for i in range(10)],
    )
    said = progress.where()
    assert said.startswith("report level 2: 10/20, 7 reused, 5,000 tokens, about 1")
    assert said.endswith(" s left")
    progress.take(event(30, "stage.ended", stage="report-2", level=2, done=20, failed=0, total=20))
    (line,) = progress.new_lines()
    assert line == "report level 2: 20/20, 7 reused, 5,000 tokens, 28 s"


def test_a_quiet_step_that_fails_is_told() -> None:
    progress = told(
        event(1, "stage.started", stage="publish", kind="publish", total=1),
        event(2, "stage.ended", stage="publish", done=1, failed=1, total=1),
    )
    assert list(progress.new_lines()) == ["publish: 1 failed, 1.0 s"]


def test_warnings_and_the_reason_of_the_end_are_notes() -> None:
    progress = told(event(1, "warning", message="a file is odd"), event(2, "job.ended", status="failed", reason="why"))
    assert progress.new_notes() == ["a file is odd", "failed: why"]
    silent = Progress(with_reason=False)
    silent.take(event(1, "job.ended", status="failed", reason="why"))
    assert silent.new_notes() == []
    assert progress.new_notes() == []


def test_a_job_counts_as_taken_when_a_worker_has_begun() -> None:
    assert not told(*STORY[:2]).taken
    assert told(*STORY[:3]).taken


def test_the_live_table_has_a_row_for_each_stage_and_level() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(told(*STORY).table())
    rows = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert len(rows) == 2
    assert rows[0].startswith("✓ ingest")
    assert "report level 3" in rows[1]
    assert "2/4, 1 failed" in rows[1]
