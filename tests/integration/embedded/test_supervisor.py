"""The supervisor with stand-ins for workers: each starts a child of its own, as a prefork pool does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from communitree.embedded.discover import discover, read_stack
from communitree.embedded.home import Home
from communitree.embedded.ready import Ready
from communitree.embedded.servers import Endpoints, Servers
from communitree.embedded.supervisor import Supervisor
from communitree_shared.errors import InfrastructureError, StackNotRunning
from communitree_shared.settings import Settings

# A worker that ignores SIGTERM, as one does that waits for a running task.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(120)"
subprocess.Popen([sys.executable, "-c", code, "stub-worker-child"])
time.sleep(120)
"""
DIES = "import sys; sys.exit('no such module: worker')"

SLOW = """
import os, time
from communitree_shared.notify import tell_ready
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.05)
tell_ready()
time.sleep(120)
"""

# Serves, ends at once, and serves in its second life when it is let.
FALLS = """
import os, sys, time
from communitree_shared.notify import tell_ready
fell, again = os.environ["GO"] + ".fell", os.environ["GO"] + ".again"
if not os.path.exists(fell):
    open(fell, "w").close()
    tell_ready()
    sys.exit("fell")
while not os.path.exists(again):
    time.sleep(0.05)
tell_ready()
time.sleep(120)
"""

UP = """
import sys
from pathlib import Path
from communitree.embedded.supervisor import Supervisor, WorkerCommand
from communitree_shared.settings import Settings

codes = sys.argv[2:]
workers = [WorkerCommand(f"stub-{i}", (sys.executable, "-c", code, "stub-worker")) for i, code in enumerate(codes)]
supervisor = Supervisor(Settings(home=Path(sys.argv[1])), workers, lambda line: print(line, flush=True))
supervisor.run(lambda stack: print("ready", flush=True))
print("ended", flush=True)
"""


class Up:
    def __init__(self, home: Path, *codes: str) -> None:
        self.home, self.log = home, home.with_suffix(".log")
        self.go = home.with_suffix(".go")
        ours = {"COMMUNITREE_LLM_MODEL": "of-the-caller", "COMMUNITREE_HOME": "elsewhere", "GO": str(self.go)}
        self.environ = {**os.environ, **ours}
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", UP, str(home), *codes], stdout=log, stderr=log, env=self.environ
            )
        self.until(lambda: read_stack(Home(home)).get("pid") == self.popen.pid)

    def said(self) -> str:
        return self.log.read_text()

    def until(self, true: Callable[[], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, self.said()
            assert self.popen.poll() is None, self.said()
            time.sleep(0.02)

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.popen.pid).children(recursive=True)

    def workers(self) -> list[psutil.Process]:
        return [p for p in psutil.Process(self.popen.pid).children() if alive(p) and "stub-worker" in p.cmdline()]


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(processes: list[psutil.Process], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(map(alive, processes)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    ups: list[Up] = []

    def start(*codes: str) -> Up:
        ups.append(Up(tmp_path / "home", *codes))
        return ups[-1]

    yield start
    for up in ups:
        with contextlib.suppress(subprocess.TimeoutExpired):
            up.popen.terminate()
            up.popen.wait(20)
        up.popen.kill()
        up.popen.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_everything_on_a_signal(started: Callable[..., Up], number: int) -> None:
    up = started(STUBBORN)
    up.until(lambda: len(up.family()) == 5)  # valkey, s3, keeper, worker and its child
    family = up.family()
    begun = time.monotonic()
    up.popen.send_signal(number)
    assert up.popen.wait(20) == 0
    assert time.monotonic() - begun < 12
    assert gone(family, 0.5)
    assert up.said().endswith("ended\n")
    assert not Home(up.home).stack_file.exists()


def test_a_second_signal_ends_the_patience(started: Callable[..., Up]) -> None:
    up = started(STUBBORN)
    up.until(lambda: len(up.family()) == 5)
    family = up.family()
    begun = time.monotonic()
    up.popen.send_signal(signal.SIGINT)
    time.sleep(0.3)
    up.popen.send_signal(signal.SIGINT)
    assert up.popen.wait(20) == 0
    assert time.monotonic() - begun < 2.5
    assert gone(family, 0.5)


def test_nothing_is_left_when_it_is_killed(started: Callable[..., Up]) -> None:
    up = started(STUBBORN, STUBBORN)
    up.until(lambda: len(up.family()) == 7)
    family = up.family()
    up.popen.kill()
    up.popen.wait()
    assert gone(family, 8)
    with pytest.raises(StackNotRunning, match="No stack is running"):
        discover(Settings(home=up.home))
    again = started(STUBBORN)  # the folder is usable at once
    assert discover(Settings(home=again.home)).s3_endpoint


def test_nothing_is_left_when_it_and_its_keeper_are_killed(started: Callable[..., Up]) -> None:
    up = started("import time; time.sleep(120)")
    up.until(lambda: len(up.family()) == 4)
    family = up.family()
    next(p for p in family if "keeper.py" in " ".join(p.cmdline())).kill()
    up.popen.kill()
    up.popen.wait()
    assert gone(family, 8)


def test_a_killed_worker_is_started_again_at_once_and_its_children_end(started: Callable[..., Up]) -> None:
    up = started(STUBBORN)
    up.until(lambda: len(up.family()) == 5)
    time.sleep(1.0)  # one that dies within its first second has to wait
    (worker,) = up.workers()
    child = worker.children()[0]
    worker.kill()
    up.until(lambda: any(other.pid != worker.pid for other in up.workers()))
    assert gone([child], 10)
    assert "stub-0 was ended by SIGKILL; started again\n" in up.said()
    assert "next try in" not in up.said()


def test_a_worker_that_cannot_start_is_tried_ever_more_slowly_and_says_why(started: Callable[..., Up]) -> None:
    up = started(DIES)
    up.until(lambda: up.said().count("next try in") >= 3)
    assert [f"next try in {delay} s: no such module: worker" in up.said() for delay in ("0.5", "1.0", "2.0")] == [
        True
    ] * 3


def test_a_worker_that_gives_up_after_its_imports_is_not_started_in_circles(started: Callable[..., Up]) -> None:
    up = started("import sys, time; time.sleep(1.5); sys.exit(3)")
    up.until(lambda: "stub-0 ended with code 3 after 1." in up.said() and "next try in 0.5 s" in up.said())


def test_a_killed_server_and_a_killed_keeper_come_back(started: Callable[..., Up]) -> None:
    up = started(STUBBORN)
    up.until(lambda: len(up.family()) == 5)
    settings = discover(Settings(home=up.home))
    time.sleep(1.0)
    for name in ("valkey-server", "keeper.py"):
        victim = next(p for p in up.family() if name in " ".join(p.cmdline()))
        victim.kill()
        up.until(
            lambda victim=victim, name=name: any(
                name in " ".join(p.cmdline()) and p.pid != victim.pid for p in up.family() if alive(p)
            )
        )
    assert discover(Settings(home=up.home)) == settings
    family = up.family()
    up.popen.kill()
    up.popen.wait()
    assert gone(family, 8)  # the new keeper knows them all


def test_workers_get_the_callers_settings_and_the_stacks_connections(started: Callable[..., Up]) -> None:
    up = started(STUBBORN)
    up.until(up.workers)
    found = up.workers()[0].environ()
    settings = discover(Settings(home=up.home))
    assert found["COMMUNITREE_HOME"] == str(up.home)
    assert found["COMMUNITREE_LLM_MODEL"] == "of-the-caller"
    assert found["COMMUNITREE_REDIS_URL"] == settings.redis_url.get_secret_value()
    assert found["COMMUNITREE_S3_ENDPOINT"] == settings.s3_endpoint
    assert found["COMMUNITREE_S3_SECRET_KEY"] == settings.s3_secret_key.get_secret_value()
    assert found["COMMUNITREE_S3_BUCKET"] == settings.s3_bucket == "communitree"
    stack = json.loads(Home(up.home).stack_file.read_text())
    assert stack["pid"] == up.popen.pid
    assert settings.redis_url.get_secret_value() not in json.dumps(stack)


def test_it_is_ready_when_every_worker_serves(started: Callable[..., Up]) -> None:
    """Jobs may come before: the stack can be found as soon as its servers take data."""
    up = started(SLOW, SLOW)
    assert discover(Settings(home=up.home)).s3_endpoint
    up.until(lambda: len(up.workers()) == 2)
    victim, other = up.workers()
    victim.kill()  # what it would have said is waited for from the one that takes its place
    up.until(lambda: len(up.workers()) == 2 and victim.pid not in {w.pid for w in up.workers()})
    assert "ready\n" not in up.said()
    up.go.touch()
    up.until(lambda: "ready\n" in up.said())
    assert up.said().count("ready\n") == 1
    assert alive(other)
    told = Path(up.workers()[0].environ()["NOTIFY_SOCKET"])
    up.popen.terminate()
    up.popen.wait(20)
    assert not told.exists()


def test_a_worker_that_ended_after_it_had_said_ready_does_not_serve(started: Callable[..., Up]) -> None:
    up = started(FALLS, SLOW)
    up.until(lambda: "stub-0 ended with code 1" in up.said())
    up.go.touch()
    up.until(lambda: len(up.workers()) == 2)
    time.sleep(0.3)  # the other one has said ready meanwhile
    assert "ready\n" not in up.said()
    Path(f"{up.go}.again").touch()
    up.until(lambda: "ready\n" in up.said())
    assert "next try in" in up.said()


def test_workers_that_are_started_again_and_again_are_all_heard(started: Callable[..., Up]) -> None:
    """Long after the stack is ready: nobody's word stays in the socket, where only a few have room."""
    up = started(SLOW)
    up.go.touch()
    up.until(lambda: "ready\n" in up.said())
    told = up.workers()[0].environ()["NOTIFY_SOCKET"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.settimeout(20)
        for _ in range(40):
            link.sendto(b"READY=1\nMAINPID=1\n", told)
    assert up.said().count("ready\n") == 1


def test_a_start_that_fails_keeps_the_folder_until_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would remove the socket and the process ids of the stack that was started next."""
    home, close, owners = Home(tmp_path / "home"), Ready.close, []

    def fails(servers: Servers, meanwhile: Callable[[Endpoints], None]) -> Endpoints:
        meanwhile(Endpoints(1, "127.0.0.1:1", "", "", ""))
        raise InfrastructureError("It does not start.")

    def closing(ready: Ready) -> None:
        owners.append(home.owner())
        close(ready)

    monkeypatch.setattr(Servers, "_start_once", fails)
    monkeypatch.setattr(Ready, "close", closing)
    with pytest.raises(InfrastructureError, match="does not start"):
        Supervisor(Settings(home=home.folder), [], print).run(lambda stack: None)
    assert owners == [os.getpid()]
    assert home.owner() == 0
