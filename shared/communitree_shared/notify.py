"""Telling whoever started this process that it serves: systemd's protocol (`NOTIFY_SOCKET`, sd_notify)."""

from __future__ import annotations

import contextlib
import os
import socket

VARIABLE = "NOTIFY_SOCKET"


def tell_ready() -> None:
    """Say that this process serves, where somebody waits for it: `communitree up`, or systemd (`Type=notify`).

    Never waits: a listener that reads no more, whose queue is full, must not keep a process from serving.
    """
    address = os.environ.get(VARIABLE, "")
    if not address or not hasattr(socket, "AF_UNIX"):
        return
    path = "\0" + address[1:] if address.startswith("@") else address  # an abstract address of Linux
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.setblocking(False)
        link.sendto(f"READY=1\nMAINPID={os.getpid()}\n".encode(), path)
