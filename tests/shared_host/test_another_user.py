"""A whole stack of one user, tried by another user of the same host: `make test-shared-host`, as root.

Root runs the stack; each try is made by a process that has given up root for the user `nobody`.
"""

from __future__ import annotations

import io
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import minio
import psutil
import pytest

from communitree.embedded import weed
from communitree.embedded.discover import discover
from communitree.embedded.home import Home
from communitree.embedded.servers import Servers
from communitree_shared.settings import Settings
from support import stranger
from support.stack import Stack, running_stack

pytestmark = pytest.mark.timeout(300)

NOBODY = 65_534
WORDS = b"of the owner alone"


@pytest.fixture(scope="module", autouse=True)
def _root() -> None:
    assert os.geteuid() == 0, "Another user's processes can be started by root only: sudo make test-shared-host"


@pytest.fixture(scope="module")
def everybodys() -> Iterator[Path]:
    """A folder where everybody may come, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="communitree-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def stack(everybodys: Path) -> Iterator[Stack]:
    """A stack whose home folder's own mode is what keeps others out."""
    with running_stack(everybodys / "home") as running:
        log = running.home / "logs" / "up.log"
        end = time.monotonic() + 60
        while "ready on" not in log.read_text():
            assert time.monotonic() < end, running.logs()
            time.sleep(0.1)
        yield running


@pytest.fixture(scope="module")
def secrets(stack: Stack) -> list[str]:
    """What must not be seen: every password and key of the stack, and an object's content."""
    settings = discover(Settings(home=stack.home))
    client = owner(settings)
    client.put_object(
        bucket_name=settings.s3_bucket, object_name="secret.txt", data=io.BytesIO(WORDS), length=len(WORDS)
    )
    key = (stack.home / "s3" / "tls.key").read_text().split("\n")[1]
    return [*Home(stack.home).read_credentials().values(), key, WORDS.decode()]


def owner(settings: Settings) -> minio.Minio:
    return minio.Minio(
        endpoint=settings.s3_endpoint,
        access_key=settings.s3_access_key.get_secret_value(),
        secret_key=settings.s3_secret_key.get_secret_value(),
        secure=False,
        region="us-east-1",
    )


def names(settings: Settings) -> list[str]:
    return [item.object_name for item in owner(settings).list_objects(bucket_name=settings.s3_bucket, recursive=True)]


def test_the_tries_are_another_users_and_see_what_is_open(everybodys: Path) -> None:
    """Or none of the tests below could fail."""
    assert stranger.as_user(NOBODY, os.geteuid) == NOBODY
    file, path = everybodys / "file", str(everybodys / "open.sock")
    file.write_text("seen")
    file.chmod(0o644)
    assert stranger.as_user(NOBODY, lambda: stranger.readable(file)) == [f"{file}: 4 bytes"]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen()
        assert stranger.as_user(NOBODY, lambda: stranger.reachable([path])) == [path]
        assert stranger.unguarded([path]) == [path]


def test_the_home_folder_shows_nothing(stack: Stack, secrets: list[str]) -> None:
    for folder in (stack.home, *(stack.home / name for name in ("s3", "valkey", "run", "logs", "credentials.json"))):
        assert stranger.as_user(NOBODY, lambda folder=folder: stranger.readable(folder)) == []
    inside = list(stack.home.rglob("*"))
    assert len(inside) > 20
    found = stranger.as_user(NOBODY, lambda: [line for path in inside for line in stranger.readable(path)])
    assert found == []


def test_no_socket_can_be_reached(stack: Stack, secrets: list[str]) -> None:
    _, paths = stranger.listeners(stack.processes())
    absolute = sorted(path if path.startswith("/") else str(stack.home / "s3" / path) for path in paths)
    assert len(absolute) >= 8
    assert stranger.as_user(NOBODY, lambda: stranger.reachable(absolute)) == []


def test_no_port_gives_anything(stack: Stack, secrets: list[str]) -> None:
    settings = discover(Settings(home=stack.home))
    before = names(settings)
    ports, _ = stranger.listeners(stack.processes())
    s3_port = int(settings.s3_endpoint.rpartition(":")[2])
    valkey_port = int(settings.redis_url.get_secret_value().rpartition(":")[2].partition("/")[0])
    inner = set(ports) - {s3_port, valkey_port}
    assert len(inner) == 9
    assert not any(stranger.as_user(NOBODY, lambda: stranger.tried(inner, [])).values())

    def outer() -> dict[str, Any]:
        address = "127.0.0.1"
        said = {**stranger.http((address, s3_port)), **stranger.redis((address, valkey_port))}
        return {name: reply.decode(errors="replace") for name, reply in said.items()}

    said = stranger.as_user(NOBODY, outer)
    assert len(said) == len(stranger.REQUESTS) + len(stranger.REDIS)
    assert not [name for name, reply in said.items() if any(secret in reply for secret in secrets)]
    assert all(said[words].startswith(("-NOAUTH", "-WRONGPASS")) for words in stranger.REDIS)
    assert names(settings) == before
    assert "secret.txt" in before


def test_processes_show_no_secret(stack: Stack, secrets: list[str]) -> None:
    pids = [process.pid for process in stack.processes()]
    assert len(pids) >= 6  # up, its keeper, two servers, two workers

    def seen() -> dict[str, str]:
        found = {}
        for pid in pids:
            for name in ("cmdline", "environ", "maps", "status", "stat", "io", "mem"):
                try:
                    found[f"{pid}/{name}"] = Path(f"/proc/{pid}/{name}").read_bytes()[:100_000].decode(errors="replace")
                except OSError:
                    continue
        return found

    found = stranger.as_user(NOBODY, seen)
    assert {name.partition("/")[2] for name in found} <= {"cmdline", "status", "stat"}
    assert not [name for name, text in found.items() if any(secret in text for secret in secrets)]


def test_a_port_whose_socket_another_user_holds_is_not_taken(tmp_path: Path) -> None:
    servers = Servers(tmp_path / "home")
    with servers:
        first = dict(servers._ports)
    path = f"/tmp/seaweedfs-filer-grpc-{first['filer.port'] + 10_000}.sock"

    def squat() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)

    stranger.as_user(NOBODY, squat)
    try:
        with servers:
            assert servers._ports["filer.port"] != first["filer.port"]
            assert servers._ports["s3.port"] == first["s3.port"]
            assert not weed.has_no_foreign_socket(first["filer.port"])
            assert psutil.pid_exists(servers.children[0].pid)
    finally:
        os.unlink(path)
