"""The stack's folder: its lock, its passwords, its ports.

lock               held by the running `communitree up`
stack.json         endpoints of the running stack, for all other commands (no secrets)
credentials.json   generated passwords, readable by the owner only
ports.json         the ports of the last start, used again where they are free
run/ logs/ valkey/ s3/
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shlex
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from communitree.embedded.process import ChildSpec
from communitree_shared.errors import InfrastructureError, UsageError

#: A server's second port, for gRPC, is this far above its first (the S3 server's own rule, in places fixed in it).
SECOND = 10_000

#: With the second ports below the range from which kernels give ports to outgoing connections: none takes ours.
_PORTS = range(12_000, 22_000)

#: How long to wait for a lock that a look at the stack (`owner`) may hold for an instant.
_LOCK_PATIENCE = 0.5


class Home:
    """Paths and small files of one stack's folder. Creates the folder (mode 0700) when `prepare` is called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()
        self.stack_file = self.folder / "stack.json"
        self.credentials_file = self.folder / "credentials.json"
        self._ports_file = self.folder / "ports.json"
        self._lock_file = self.folder / "lock"

    def prepare(self) -> None:
        """Create the folder and those in it.

        Raises:
            UsageError: the folder cannot be created or written, or other users can write it.
        """
        folders = [self.folder, *(self.folder / name for name in ("run", "logs", "valkey", "s3"))]
        try:
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                _check_ours(folder)
            if not os.access(self.folder, os.W_OK):
                raise PermissionError(13, "not writable", str(self.folder))
        except OSError as error:
            raise UsageError(
                f"The stack's folder {self.folder} cannot be used: {error.strerror or error}.",
                hint="Set COMMUNITREE_HOME (or --home) to a folder of your own.",
            ) from error

    def lock(self) -> int:
        """Take the folder for this process; the returned file descriptor holds the lock until it is closed.

        Raises:
            UsageError: another stack runs here. InfrastructureError: not on this system.
        """
        if sys.platform == "win32":
            raise InfrastructureError(
                "The embedded stack runs on Linux and macOS only.",
                hint="Use servers of your own: set COMMUNITREE_REDIS_URL and COMMUNITREE_S3_ENDPOINT.",
            )
        import fcntl

        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        end = time.monotonic() + _LOCK_PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() < end:
                    time.sleep(0.02)
                    continue
                owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise UsageError(
                    f"A stack already runs on {self.folder}{f' (process {owner})' if owner else ''}.",
                    hint="Other commands find it by themselves. To start a second one, set COMMUNITREE_HOME "
                    "(or --home) to another folder.",
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor

    def owner(self) -> int:
        """Return the process id of the stack that runs or starts here; 0 when there is none."""
        if sys.platform == "win32":  # the client works there, with servers elsewhere
            return 0
        import fcntl

        try:
            descriptor = os.open(self._lock_file, os.O_RDONLY)
        except OSError:
            return 0
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            written = os.pread(descriptor, 32, 0).strip()
            return int(written) if written.isdigit() else -1
        finally:
            os.close(descriptor)
        return 0

    def credentials(self) -> dict[str, str]:
        """Return the passwords, made on the first call: `redis`, `s3_access`, `s3_secret`, `jwt_0` … `jwt_3`.

        Raises:
            InfrastructureError: the file is damaged.
        """
        if not self.credentials_file.exists():
            made = {
                "redis": secrets.token_urlsafe(24),
                "s3_access": "k" + secrets.token_hex(9),
                "s3_secret": secrets.token_urlsafe(30),
                **{f"jwt_{i}": secrets.token_hex(24) for i in range(4)},
            }
            write_private(self.credentials_file, json.dumps(made))
        return self.read_credentials()

    def read_credentials(self) -> dict[str, str]:
        """Return the passwords of a stack that has been started at least once."""
        try:
            found = json.loads(self.credentials_file.read_text())
            return {
                name: str(found[name]) for name in ("redis", "s3_access", "s3_secret", *(f"jwt_{i}" for i in range(4)))
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InfrastructureError(
                f"The stack's passwords in {self.credentials_file} cannot be read: {error!r}.",
                hint="Restore the file, or start afresh on another COMMUNITREE_HOME: the data is bound to it.",
            ) from error

    def ports(self, names: Sequence[str], usable: Callable[[int], bool] = lambda port: True) -> dict[str, int]:
        """Return a port for each name, free like its second one; those of the last start where they still are.

        `usable` may refuse a port for another reason than its being taken.
        """
        kept: dict[str, int] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            kept = {name: int(port) for name, port in json.loads(self._ports_file.read_text()).items()}
        chosen: dict[str, int] = {}
        for name in names:
            port = kept.get(name, 0)
            if port in chosen.values() or not (_both_free(port) and usable(port)):
                port = _free_port(set(kept.values()) | set(chosen.values()), usable)
            chosen[name] = port
        write_private(self._ports_file, json.dumps(chosen))
        return chosen

    def child(
        self,
        name: str,
        command: tuple[str, ...],
        cwd: Path,
        env: Mapping[str, str],
        grace: float = 5.0,
        death_signal: int = signal.SIGTERM,
    ) -> ChildSpec:
        """Return how to start a child of this stack, with its log and process id at their places."""
        return ChildSpec(
            name=name,
            command=command,
            cwd=cwd,
            log=self.folder / "logs" / f"{name}.log",
            pid_file=self.folder / "run" / f"{name}.pid",
            env={"PATH": os.defpath, **env},
            grace=grace,
            death_signal=death_signal,
        )

    def write_stack(self, stack: dict[str, Any]) -> None:
        """Tell other commands where the stack is."""
        write_private(self.stack_file, json.dumps(stack, indent=1))


def _check_ours(folder: Path) -> None:
    """Refuse a folder in which another user could put another server's data, or passwords, in the place of ours."""
    if sys.platform == "win32":
        return
    found = folder.stat()
    if found.st_uid != os.geteuid() and os.geteuid() != 0:
        raise UsageError(
            f"The stack's folder {folder} belongs to another user (uid {found.st_uid}).",
            hint="Set COMMUNITREE_HOME (or --home) to a folder of your own.",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"Other users can write the stack's folder {folder}.",
            hint=f"chmod go-w {shlex.quote(str(folder))}, or set COMMUNITREE_HOME (or --home) to another folder.",
        )


def write_private(path: Path, text: str) -> None:
    """Write a file that only the owner can read, in one step: readers see the old text or the new."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    if not 1024 <= port <= 65535:
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free for a server
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _both_free(port: int) -> bool:
    return port_is_free(port) and port_is_free(port + SECOND)


def _free_port(taken: set[int], usable: Callable[[int], bool]) -> int:
    choose = random.SystemRandom()
    for _ in range(200):
        port = choose.choice(_PORTS)
        if port not in taken and _both_free(port) and usable(port):
            return port
    raise InfrastructureError(f"No free loopback port found between {_PORTS.start} and {_PORTS.stop}.")
