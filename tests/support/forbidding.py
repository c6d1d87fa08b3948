"""A relay in front of a Redis that forbids commands, as managed services do: the server then does not know them.

`with forbidding("127.0.0.1:6379", {"CONFIG", "CLIENT"}) as (endpoint, asked)`: `asked` counts what was asked for all
the same.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator, Set
from typing import IO, Any


def _command(stream: IO[bytes]) -> list[bytes]:
    """Read one command as clients send it; [] at the end."""
    head = stream.readline()
    if not head.startswith(b"*"):
        return []
    words = []
    for _ in range(int(head[1:])):
        length = int(stream.readline()[1:])
        words.append(stream.read(length))
        stream.read(2)
    return words


def _packed(words: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


@contextlib.contextmanager
def forbidding(target: str, forbidden: Set[str]) -> Iterator[tuple[str, Counter[str]]]:
    """Relay to a server until the block ends. What is forbidden is a command, or one subcommand (`SCRIPT|KILL`)."""
    host, _, port = target.rpartition(":")
    asked: Counter[str] = Counter()

    def passed(words: list[bytes]) -> list[bytes]:
        names = [word.decode(errors="replace").upper() for word in words[:2]]
        if not forbidden.isdisjoint((names[0], "|".join(names))):
            asked["|".join(names)] += 1
            return [b"FORBIDDEN", *words]
        return words

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(port))) as server:
                back = threading.Thread(target=_pump, args=(server, self.request), daemon=True)
                back.start()
                with contextlib.suppress(OSError, ValueError):
                    while words := _command(self.rfile):
                        server.sendall(_packed(passed(words)))
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_WR)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is nothing to tell of."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
