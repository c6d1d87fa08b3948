from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import minio
import psutil
import pytest
import redis
import urllib3

from communitree.embedded.home import SECOND
from communitree.embedded.servers import Endpoints, Servers
from communitree_shared.errors import InfrastructureError, UsageError


def s3(endpoints: Endpoints, secret: str | None = None) -> minio.Minio:
    return minio.Minio(
        endpoint=endpoints.s3_endpoint,
        access_key=endpoints.s3_access_key,
        secret_key=secret or endpoints.s3_secret_key,
        secure=False,
        region="us-east-1",
        http_client=urllib3.PoolManager(retries=False),
    )


def put(endpoints: Endpoints, name: str, body: bytes) -> None:
    s3(endpoints).put_object(bucket_name="communitree", object_name=name, data=io.BytesIO(body), length=len(body))


def get(endpoints: Endpoints, name: str) -> bytes:
    reply = s3(endpoints).get_object(bucket_name="communitree", object_name=name)
    try:
        return reply.read()
    finally:
        reply.close()
        reply.release_conn()


def test_broker_keeps_its_promises_to_the_ledger(servers: Endpoints) -> None:
    with redis.Redis.from_url(servers.redis_url) as connection:
        found = connection.config_get("append*") | connection.config_get("maxmemory-policy")
    assert found["appendonly"] == "yes"
    assert found["appendfsync"] == "everysec"
    assert found["maxmemory-policy"] == "noeviction"


def test_both_refuse_strangers(servers: Endpoints) -> None:
    with redis.Redis(port=servers.redis_port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    with pytest.raises(minio.error.S3Error, match="SignatureDoesNotMatch"):
        s3(servers, secret="wrong").list_buckets()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{servers.s3_endpoint}/communitree/.ready", timeout=5)
    refused.value.close()
    assert refused.value.code == 403


def test_conditional_put_lets_one_writer_win(servers: Endpoints) -> None:
    client = s3(servers)
    headers = {"If-None-Match": "*"}
    client._execute("PUT", "communitree", "only-once", body=b"first", headers=headers).close()
    with pytest.raises(minio.error.S3Error, match="PreconditionFailed"):
        client._execute("PUT", "communitree", "only-once", body=b"second", headers=headers)
    assert get(servers, "only-once") == b"first"


def test_passwords_stand_on_no_command_line_and_in_no_open_file(tmp_path: Path) -> None:
    stack = Servers(tmp_path)
    with stack as endpoints:
        secrets = [endpoints.redis_password, endpoints.s3_access_key, endpoints.s3_secret_key]
        lines = [" ".join(psutil.Process(child.pid).cmdline()) for child in stack.children]
        assert not [line for line in lines for secret in secrets if secret in line]
        assert not [secret for secret in secrets if secret in repr(endpoints)]
        holders = [p for p in tmp_path.rglob("*") if p.is_file() and any(s in p.read_text("latin-1") for s in secrets)]
        assert holders
        assert not [p for p in holders if p.stat().st_mode & 0o077]
        assert tmp_path.joinpath("valkey").stat().st_mode & 0o077 == 0


def test_data_and_ports_survive_a_restart_and_a_kill(tmp_path: Path) -> None:
    stack = Servers(tmp_path)
    first = stack.start()
    with redis.Redis.from_url(first.redis_url) as connection:
        connection.set("kept", "yes")
        put(first, "a/kept", b"object")
        for child in stack.children:
            child.popen.kill()
    begun = time.monotonic()
    stack.stop()
    with stack as second:
        assert second == first
        with redis.Redis.from_url(second.redis_url) as connection:
            assert connection.get("kept") == b"yes"
        assert get(second, "a/kept") == b"object"
    assert time.monotonic() - begun < 25


def test_a_taken_port_is_replaced_and_the_data_found_again(tmp_path: Path) -> None:
    stack = Servers(tmp_path)
    with stack as first:
        put(first, "kept", b"object")
    with socket.socket() as other:
        other.bind(("127.0.0.1", first.redis_port))
        other.listen()
        with stack as second:
            assert second.redis_port != first.redis_port
            assert second.s3_endpoint == first.s3_endpoint
            assert get(second, "kept") == b"object"


def test_second_stack_on_one_folder_is_refused(tmp_path: Path) -> None:
    with Servers(tmp_path), pytest.raises(UsageError, match=f"already runs on .* \\(process {os.getpid()}\\)"):
        Servers(tmp_path).start()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    stack = Servers(tmp_path)
    with stack:
        pids = [child.pid for child in stack.children]
        ports = [number for port in stack._ports.values() for number in (port, port + SECOND)]
        begun = time.monotonic()
    assert time.monotonic() - begun < 8
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert not list((tmp_path / "run").iterdir())
    assert not [p for p in Path("/tmp").glob("seaweedfs-*.sock") if any(f"-{port}.sock" in p.name for port in ports)]


def test_a_server_that_cannot_start_says_why_with_the_end_of_its_log(tmp_path: Path) -> None:
    with Servers(tmp_path):
        pass
    manifest = next((tmp_path / "valkey" / "appendonlydir").glob("*.manifest"))
    manifest.write_text("not a manifest\n")
    with (
        pytest.raises(InfrastructureError, match=r"(?s)valkey ended with code 1 .*valkey\.log.*manifest"),
        Servers(tmp_path),
    ):
        pass
    manifest.unlink()


def test_servers_end_when_their_starter_is_killed_and_the_folder_can_be_used_at_once(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from communitree.embedded.servers import Servers\n"
        "s = Servers(Path(sys.argv[1])); s.start(); print(*[c.pid for c in s.children], flush=True); time.sleep(60)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pids = [int(pid) for pid in starter.stdout.readline().split()]
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    with Servers(tmp_path) as endpoints:  # must wait for the old ones: they share its data
        assert len(pids) == 2
        assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]
        put(endpoints, "new", b"1")
