"""A TCP relay in front of an S3 server that counts requests by method and kind of key."""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

_LINE = re.compile(rb"(?:^|\r\n)(GET|PUT|HEAD|POST|DELETE) (\S+) HTTP/1\.1\r\n")
_KIND = re.compile(r"/(documents|units/[a-z]+|versions|batches|current\.json|jobs|open)(?:/|$)")


class Requests:
    """What was asked for so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, method: str, target: str) -> None:
        """Count one request; a listing is named `LIST`."""
        path, _, query = unquote(target).partition("?")
        listing = "list-type" in query or "prefix=" in query
        found = _KIND.search(query if listing else path)
        with self._lock:
            self.counts[f"{'LIST' if listing else method} {found[1] if found else 'bucket'}"] += 1


@contextlib.contextmanager
def counting_proxy(endpoint: str) -> Iterator[tuple[str, Requests]]:
    """Relay to an endpoint (`host:port`); yields the relay's own endpoint and its counts."""
    host, _, port = endpoint.rpartition(":")
    requests = Requests()

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(port))) as server:
                back = threading.Thread(target=_pump, args=(server, self.request, None), daemon=True)
                back.start()
                _pump(self.request, server, requests)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Relay) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()


def _pump(source: socket.socket, target: socket.socket, requests: Requests | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if requests is not None:
                for method, path in _LINE.findall(data):
                    requests.note(method.decode(), path.decode())
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
