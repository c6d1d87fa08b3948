"""A worker's pulse: who is seen as alive, hung, dead or not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree.cli import main
from communitree_shared import alive
from communitree_shared.alive import Pulse, Seen, look, run_folder, verdict


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alive, "PERIOD", 0.05)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process with a pulse that beats often."""
    program = (
        "import sys, time; from pathlib import Path; from communitree_shared import alive; alive.PERIOD = 0.05\n"
        "with alive.Pulse(Path(sys.argv[1]), ['models', 'map']): print('on', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def grow_old(home: Path, seconds: float) -> None:
    for path in run_folder(home).glob("worker-*.json"):
        then = time.time() - seconds
        os.utime(path, (then, then))


def test_a_pulse_is_seen_while_it_lasts_and_leaves_nothing(tmp_path: Path) -> None:
    assert not verdict(look(tmp_path), [])[0]
    with Pulse(tmp_path, ["models", "map"]):
        assert verdict(look(tmp_path), ["map"])[0]
        grow_old(tmp_path, 1000)
        end = time.monotonic() + 5
        while not verdict(look(tmp_path), ["models"])[0]:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert not verdict(look(tmp_path), [])[0]
    assert not list(run_folder(tmp_path).iterdir())


def test_a_stopped_process_is_hung_and_alive_again_when_it_goes_on(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    assert verdict(look(tmp_path), ["map"])[0]
    other.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    grow_old(tmp_path, alive.SILENCE + 1)
    lives, line = verdict(look(tmp_path), [])
    assert not lives
    assert f"hung: process {other.pid}" in line
    other.send_signal(signal.SIGCONT)
    end = time.monotonic() + 5
    while not verdict(look(tmp_path), [])[0]:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_process_is_not_alive_and_what_it_left_stands_in_nobodys_way(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    other.kill()
    other.wait()
    assert list(run_folder(tmp_path).iterdir())
    assert look(tmp_path) == []
    with Pulse(tmp_path, ["cpu"]):
        assert verdict(look(tmp_path), [])[0]


def test_another_process_with_the_number_of_a_dead_one_is_not_taken_for_it(tmp_path: Path) -> None:
    run_folder(tmp_path).mkdir(parents=True)
    told = {"pid": os.getpid(), "identity": "1", "serves": ["map"]}
    (run_folder(tmp_path) / f"worker-{os.getpid()}.json").write_text(json.dumps(told))
    assert look(tmp_path) == []


def test_a_main_process_that_does_nothing_lets_its_file_grow_old(tmp_path: Path) -> None:
    with Pulse(tmp_path, ["map"], sound=lambda: False):
        grow_old(tmp_path, alive.SILENCE + 1)
        time.sleep(0.3)
        assert not verdict(look(tmp_path), [])[0]


def test_a_home_that_it_makes_is_its_owners_alone(tmp_path: Path) -> None:
    """`communitree up` refuses another."""
    before = os.umask(0)
    try:
        with Pulse(tmp_path / "new" / "home", ["map"]):
            pass
    finally:
        os.umask(before)
    for folder in (tmp_path / "new" / "home", tmp_path / "new" / "home" / "run"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_file_that_was_swept_away_comes_back(tmp_path: Path) -> None:
    with Pulse(tmp_path, ["map"]):
        next(run_folder(tmp_path).iterdir()).unlink()
        end = time.monotonic() + 5
        while not look(tmp_path):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_folder_that_cannot_be_written_is_said_and_hinders_no_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("a file")
    with Pulse(tmp_path, ["map"]):
        pass
    assert "COMMUNITREE_HOME" in caplog.text


@pytest.mark.parametrize(
    ("ages", "names", "lives", "says"),
    [
        ([], [], False, "no worker runs here"),
        ([], ["map"], False, "no worker that serves map runs here"),
        ([0], [], True, "alive"),
        ([0], ["map"], True, "alive"),
        ([39], ["map"], True, "alive"),
        ([41], ["map"], False, "hung"),
        ([0], ["reduce"], False, "serve map"),
        ([0], ["map", "reduce"], False, "serves reduce"),
        ([0, 41], ["map"], False, "hung"),
        ([-3600], ["map"], False, "hung"),
    ],
)
def test_the_verdict(ages: list[float], names: list[str], lives: bool, says: str) -> None:
    found, line = verdict([Seen(7, ("map",), age) for age in ages], names)
    assert found is lives
    assert says in line


def test_the_command_says_it_by_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMUNITREE_HOME", str(tmp_path))
    assert main(["worker", "--check"]) == 1
    assert "no worker" in capsys.readouterr().err
    with Pulse(tmp_path, ["models", "map"]):
        assert main(["worker", "--check"]) == 0
        assert main(["worker", "map", "--check"]) == 0
        assert main(["worker", "--check", "reduce"]) == 1
        monkeypatch.delenv("COMMUNITREE_HOME")
        assert main(["worker", "--check", "--home", str(tmp_path)]) == 0
        config = tmp_path / "settings.toml"
        config.write_text(f'home = "{tmp_path}"\n')
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
        monkeypatch.delenv("COMMUNITREE_HOME", raising=False)
        assert main(["worker", "--check"]) == 1
        monkeypatch.setenv("COMMUNITREE_CONFIG", str(config))
        assert main(["worker", "--check"]) == 0
    capsys.readouterr()
    monkeypatch.setenv("COMMUNITREE_CONFIG", str(tmp_path / "not-there"))
    assert main(["worker", "--check"]) == 2
    assert capsys.readouterr().err.startswith("Error: COMMUNITREE_CONFIG names ")


def test_the_command_imports_next_to_nothing() -> None:
    program = (
        "import sys; from communitree.cli import main; main(['worker', '--check']); "
        "print(sorted({'pydantic', 'rich', 'typer', 'redis', 'celery', 'subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
