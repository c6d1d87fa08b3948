"""A TCP relay in front of a real server that can make it go away, be slow or silent, or answer with our own errors.

`with relay("127.0.0.1:9000") as r:` … `r.down()`, `r.slow(3)`, `r.reply(503, "SlowDown")`, `r.up()`. Whatever changes,
open connections are cut, so that everyone meets the change. `r.tries` counts connections and, while it answers itself,
requests.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

#: The first byte of a TLS connection.
HANDSHAKE = b"\x16"

#: Of a refusal while the relay answers by itself: which requests are let through.
Spares = Callable[[str, str], bool]


class Relay:
    """One relay: what it does now, and how often it was tried since that changed."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))
        self.endpoint = ""
        self.tries = 0
        self._mode: tuple[Any, ...] = ("up",)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def up(self) -> None:
        """Relay again."""
        self._become("up")

    def down(self) -> None:
        """Cut every connection at once."""
        self._become("down")

    def slow(self, seconds: float) -> None:
        """Hold each piece that the server sends for so long."""
        self._become("slow", seconds)

    def silent(self) -> None:
        """Take requests and answer none."""
        self._become("silent")

    def reply(self, status: int, code: str = "", *, spares: Spares = lambda method, path: False) -> None:
        """Answer requests with an S3 error, except those that are spared."""
        self._become("reply", status, code, spares)

    def _become(self, *mode: Any) -> None:
        with self._lock:
            self._mode, self.tries = mode, 0
            connections, self._open = self._open, set()
        for connection in connections:
            _cut(connection)

    def serve(self, client: socket.socket) -> None:
        """Serve one connection until either side ends it."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            mode = self._mode
            self.tries += mode[0] != "reply"
            self._open.add(client)
        try:
            if mode[0] == "down":
                _cut(client)
            elif mode[0] == "reply":
                self._answer(client, *mode[1:])
            elif mode[0] == "silent":
                while client.recv(65536):
                    pass
            else:
                self._relay(client, mode[1] if mode[0] == "slow" else 0.0)
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(client)

    def _relay(self, client: socket.socket, delay: float, sent: bytes = b"") -> None:
        with socket.create_connection(self.target) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(server)
            server.sendall(sent)
            back = threading.Thread(target=_pump, args=(server, client, delay), daemon=True)
            back.start()
            _pump(client, server, 0.0)
            back.join()
            with self._lock:
                self._open.discard(server)

    def _answer(self, client: socket.socket, status: int, code: str, spares: Spares) -> None:
        stream = client.makefile("rb")
        while head := _head(stream):
            method, path = head[0].split(" ")[:2]
            length = next((int(h.split(":")[1]) for h in head if h.lower().startswith("content-length:")), 0)
            body = stream.read(length)
            if spares(method, path):
                text = "\r\n".join(h for h in head if not h.lower().startswith("connection:"))
                sent = f"{text}\r\nConnection: close\r\n\r\n".encode("latin-1") + body
                self._relay(client, 0.0, sent)
                return
            with self._lock:
                self.tries += 1
            told = f"<Error><Code>{code}</Code><Message>as the test wants it</Message></Error>" if code else ""
            kind = "application/xml" if code else "text/plain"
            answer = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(told)}\r\n\r\n"
            client.sendall((answer + ("" if method == "HEAD" else told)).encode())


def _head(stream: Any) -> list[str]:
    lines = []
    while (line := stream.readline()) not in (b"", b"\r\n"):
        lines.append(line.decode("latin-1").rstrip("\r\n"))
    return lines


def _pump(source: socket.socket, target: socket.socket, delay: float) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if delay:
                threading.Event().wait(delay)
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextlib.contextmanager
def relay(target: str, tls: ssl.SSLContext | None = None, *, plain_too: bool = False) -> Iterator[Relay]:
    """Run a relay to a server (`host:port`), speaking TLS to its clients where a context is given.

    `plain_too`: a client that does not begin with a TLS handshake is served without.
    """
    made = Relay(target)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            client = self.request
            if tls is not None and not (plain_too and client.recv(1, socket.MSG_PEEK) != HANDSHAKE):
                try:
                    client = tls.wrap_socket(client, server_side=True)
                except OSError:
                    return
            made.serve(client)
            with contextlib.suppress(OSError):
                client.close()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is what is wanted here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        made.endpoint = f"127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()
            made.down()
