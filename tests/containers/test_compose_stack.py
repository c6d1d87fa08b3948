"""The compose files with the SeaweedFS overlay, run by a Docker engine of our own: `make test-containers`, as root.

The first test starts them on fresh volumes; each goes on where the one before it ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.containers import Project, compose_command, make_images, running_engine, what_is_missing
from support.house import ROOT

pytestmark = pytest.mark.timeout(1800)

COMMUNITREE = str(ROOT / ".venv" / "bin" / "communitree")
QUESTION = "What are the main themes of this corpus?"


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    missing = what_is_missing()
    assert not missing, missing
    with tempfile.TemporaryDirectory(prefix="communitree-containers-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        parts = {part: folder / part for part in ("engine", "images", "compose", "project")}
        for part in parts.values():
            part.mkdir()
        with running_engine(parts["engine"]) as engine:
            make_images(engine, parts["images"])
            made = Project(engine, parts["project"], compose_command(parts["compose"]))
            try:
                yield made
            finally:
                made.run("down", "--volumes", "--timeout", "5", check=False)


def communitree(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command on this host."""
    done = subprocess.run(
        [COMMUNITREE, *words], env=project.environment(), capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    return done


def asked(project: Project) -> None:
    answer = json.loads(communitree(project, "ask", "docs", QUESTION, "--json").stdout)
    assert answer["status"] == "answered"
    assert answer["citations"]


def test_the_first_index_after_up_on_fresh_volumes_works(project: Project) -> None:
    project.run("up", "--detach")
    result = json.loads(communitree(project, "index", str(ROOT / "docs"), "--corpus", "docs", "--json").stdout)
    assert result["status"] == "published"


def test_all_become_healthy(project: Project) -> None:
    project.wait_healthy(300)


def test_a_question_from_the_host(project: Project) -> None:
    asked(project)


def test_an_index_and_a_question_from_a_container(project: Project) -> None:
    mount = f"{ROOT / 'docs' / 'how-to'}:/documents:ro"
    project.run("run", "--rm", "--no-deps", "--volume", mount, "query", "index", "/documents", "--corpus", "inside")
    said = project.run("run", "--rm", "--no-deps", "query", "ask", "inside", QUESTION, "--json").stdout
    assert json.loads(said)["status"] == "answered"


def test_containers_have_no_more_rights_than_they_need(project: Project) -> None:
    secrets = {path.read_text() for path in (project.folder / "secrets").iterdir()} - {""}
    for name, one in project.containers().items():
        host = one["HostConfig"]
        assert host["ReadonlyRootfs"], name
        assert host["CapDrop"] == ["ALL"], name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        assert host["Memory"], name
        assert host["NanoCpus"], name
        assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "5"}, name
        shown = json.dumps(one["Config"]) + json.dumps(one["Args"])
        assert not [secret for secret in secrets if secret in shown], name
        status = Path(f"/proc/{one['State']['Pid']}/status").read_text()
        rights = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.split()[1:]}
        assert rights["NoNewPrivs"] == "1", name
        assert rights["Seccomp"] == "2", name
        allowed = 1 << 1 if name == "s3-1" else 0  # CAP_DAC_OVERRIDE
        assert int(rights["CapEff"], 16) == allowed, name
        assert (rights["Uid"] == "0") is (name == "s3-1"), name
        assert Path(f"/proc/{one['State']['Pid']}/comm").read_text() != "sh\n", f"{name}: no signal would reach it"
        command_line = Path(f"/proc/{one['State']['Pid']}/cmdline").read_text()
        assert not [secret for secret in secrets if secret in command_line], name


def test_a_worker_that_is_stopped_is_unhealthy_until_it_goes_on(project: Project) -> None:
    pids = project.processes("corpus-1")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        end = time.monotonic() + 120
        while project.health()["corpus-1"] != "unhealthy":
            assert time.monotonic() < end
            time.sleep(1)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    project.wait_healthy(120)


def test_an_index_outlives_the_death_of_every_container(project: Project) -> None:
    """One after the other is killed while a corpus is indexed; Docker starts each again."""
    index = subprocess.Popen(
        [COMMUNITREE, "index", str(ROOT / "docs"), str(ROOT / "workers"), "--corpus", "docs", "--json"],
        env=project.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for name in ("corpus-1", "local-1", "valkey-1", "cluster-1", "s3-1", "query-1"):
        time.sleep(2)
        project.kill(name)
    said, complained = index.communicate(timeout=600)
    assert index.returncode == 0, said + complained
    assert json.loads(said)["status"] == "published"


def test_after_the_death_of_all_at_once_they_come_back_and_answer(project: Project) -> None:
    project.wait_healthy(300)
    project.kill(*project.containers())
    time.sleep(2)
    project.wait_healthy(300)
    asked(project)


def test_one_stage_is_scaled(project: Project) -> None:
    project.run("up", "--detach", "--scale", "map=2", "--no-recreate")
    project.wait_healthy(300)
    assert "map-2" in project.health()


def test_down_leaves_nothing(project: Project) -> None:
    project.run("down", "--volumes", "--timeout", "20")
    assert project.engine.docker("ps", "--all", "--quiet").strip() == ""
    assert project.engine.docker("volume", "ls", "--quiet").strip() == ""
