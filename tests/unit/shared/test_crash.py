"""Crash points: off unless asked for, at the n-th pass, for whom it was asked, and once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from communitree_shared import crash
for who in ("query.plan", "query.map", "query.map"):
    crash.acting(who)
    crash.point("begin.before")
    print(who, flush=True)
    crash.point("begin.after")
"""


def passes(at: str) -> tuple[int, int]:
    """Return (exit code, how often the point's other side was reached)."""
    env = {k: v for k, v in os.environ.items() if k != "COMMUNITREE_CRASH_AT"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**env, **({"COMMUNITREE_CRASH_AT": at} if at else {})},
        capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout.count("query")


def test_nothing_happens_unless_it_is_asked_for() -> None:
    assert passes("") == (0, 3)
    assert passes("begin.other") == (0, 3)
    assert passes("begin.before/query.reduce") == (0, 3)


def test_it_ends_the_process_at_the_nth_pass_and_for_whom_it_was_asked() -> None:
    assert passes("begin.before") == (-9, 0)
    assert passes("begin.after") == (-9, 1)
    assert passes("begin.before:3") == (-9, 2)
    assert passes("begin.before/query.map:2") == (-9, 2)


def test_it_happens_once(tmp_path: Path) -> None:
    at = f"begin.before@{tmp_path / 'fired'}"
    assert passes(at) == (-9, 0)
    assert passes(at) == (0, 3)


def test_a_file_tells_what_to_do_one_thing_after_another(tmp_path: Path) -> None:
    file = tmp_path / "at"
    assert passes(f"@{file}") == (0, 3)
    file.write_text("begin.after/query.map\nbegin.before")
    assert passes(f"@{file}") == (-9, 2)
    assert file.read_text() == "begin.before"
    assert passes(f"@{file}") == (-9, 0)
    assert passes(f"@{file}") == (0, 3)
    file.write_text("?")
    assert passes(f"@{file}") == (0, 3)
    passed = Path(f"{file}.passed").read_text().splitlines()
    assert passed[:2] == ["begin.before/query.plan", "begin.after/query.plan"]
    assert len(passed) == 6
