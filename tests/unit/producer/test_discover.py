from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from pydantic import SecretStr

from communitree.embedded.discover import describe, discover
from communitree.embedded.home import Home, port_is_free
from communitree.embedded.servers import Endpoints
from communitree_shared.alive import identity
from communitree_shared.errors import InfrastructureError, StackNotRunning, UsageError
from communitree_shared.settings import Settings

FOUND = Endpoints(18_001, "127.0.0.1:18002", "pass-word", "access", "secret")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("COMMUNITREE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def running(home: Home, **changes: object) -> int:
    """Pretend to be a stack: hold its lock, write its files."""
    made = home.credentials()
    endpoints = Endpoints(18_001, "127.0.0.1:18002", made["redis"], made["s3_access"], made["s3_secret"])
    lock = home.lock()
    home.write_stack({**describe(Settings(home=home.folder, s3_bucket="its-bucket"), endpoints, []), **changes})
    return lock


def test_finds_a_running_stack(home: Home) -> None:
    lock = running(home)
    found = discover(Settings(home=home.folder))
    os.close(lock)
    made = home.credentials()
    assert found.redis_url.get_secret_value() == f"redis://:{made['redis']}@127.0.0.1:18001/0"
    assert (found.s3_endpoint, found.s3_bucket, found.s3_secure) == ("127.0.0.1:18002", "its-bucket", False)
    assert found.s3_secret_key.get_secret_value() == made["s3_secret"]


def test_the_callers_bucket_wins_over_the_stacks(home: Home) -> None:
    lock = running(home)
    assert discover(Settings(home=home.folder, s3_bucket="mine")).s3_bucket == "mine"
    os.close(lock)


def test_a_killed_stacks_file_deceives_nobody(home: Home) -> None:
    os.close(running(home))
    assert home.stack_file.exists()
    with pytest.raises(StackNotRunning, match="No stack is running") as error:
        discover(Settings(home=home.folder))
    assert error.value.exit_code == 4


def test_a_stack_that_is_starting_is_not_mistaken_for_the_one_before(home: Home) -> None:
    lock = running(home, pid=1)
    with pytest.raises(StackNotRunning, match="starting or stopping"):
        discover(Settings(home=home.folder))
    home.stack_file.unlink()
    with pytest.raises(StackNotRunning, match="starting or stopping"):
        discover(Settings(home=home.folder))
    os.close(lock)


def test_damaged_files_are_named(home: Home) -> None:
    lock = running(home, redis_port="none")
    with pytest.raises(InfrastructureError, match=r"stack\.json is damaged"):
        discover(Settings(home=home.folder))
    home.write_stack({**json.loads(home.stack_file.read_text()), "redis_port": 1})
    home.credentials_file.write_text("{}")
    with pytest.raises(InfrastructureError, match=r"credentials\.json cannot be read"):
        discover(Settings(home=home.folder))
    os.close(lock)


def test_servers_of_the_callers_own_come_first(home: Home) -> None:
    lock = running(home)
    given = Settings(home=home.folder, redis_url=SecretStr("redis://elsewhere"), s3_endpoint="elsewhere:9000")
    assert discover(given) is given
    os.close(lock)


def test_no_folder_no_stack(tmp_path: Path) -> None:
    with pytest.raises(StackNotRunning):
        discover(Settings(home=tmp_path / "never-made"))


def test_secrets_stay_out_of_the_file_that_all_may_see_in_logs(home: Home) -> None:
    lock = running(home)
    os.close(lock)
    made = home.credentials()
    assert not [secret for secret in made.values() if secret in home.stack_file.read_text()]
    assert home.credentials_file.stat().st_mode & 0o777 == 0o600
    assert home.folder.stat().st_mode & 0o777 == 0o700
    assert made == home.credentials()  # made once
    assert "pass-word" not in repr(FOUND)


def test_two_owners_are_refused_and_a_look_does_not_count(home: Home) -> None:
    assert home.owner() == 0
    lock = home.lock()
    assert home.owner() == os.getpid()
    with pytest.raises(UsageError, match=f"already runs on .*process {os.getpid()}"):
        Home(home.folder).lock()
    os.close(lock)
    os.close(home.lock())


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not port_is_free(taken.getsockname()[1])


def test_ports_are_kept_and_a_taken_one_is_replaced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[int] = set()  # said, not done: other processes take and leave ports of this machine meanwhile
    monkeypatch.setattr("communitree.embedded.home.port_is_free", lambda port: port not in taken | {0})
    first = home.ports(["a", "b", "c"])
    assert len(set(first.values())) == 3
    assert home.ports(["a", "b", "c"]) == first
    taken.add(first["b"])
    second = home.ports(["a", "b", "c"])
    assert (second["a"], second["c"]) == (first["a"], first["c"])
    assert second["b"] not in first.values()
    (home.folder / "ports.json").write_text("[]")
    assert set(home.ports(["a"])) == {"a"}


def test_a_port_may_be_refused_for_another_reason_than_being_taken(home: Home) -> None:
    first = home.ports(["a", "b"])
    second = home.ports(["a", "b"], lambda port: port != first["a"])
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]


@pytest.mark.parametrize("inside", ["", "s3", "valkey"])
def test_a_folder_that_others_can_write_is_refused(home: Home, inside: str) -> None:
    (home.folder / inside).chmod(0o770)
    with pytest.raises(UsageError, match="Other users can write") as refused:
        home.prepare()
    assert f"chmod go-w {home.folder / inside}" in refused.value.hint
    (home.folder / inside).chmod(0o755)
    home.prepare()


def test_a_folder_of_another_user_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = home.folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(UsageError, match=f"belongs to another user .uid {owner}"):
        home.prepare()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        Home(tmp_path / "file" / "home").prepare()


def test_identity_tells_processes_apart() -> None:
    assert identity(os.getpid()) == identity(os.getpid()) != ""
    assert identity(os.getpid()) != identity(1)  # the parent may have started in the same tick
    assert identity(2**22 + 1) == ""
