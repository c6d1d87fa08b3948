"""A proxy in front of a real S3 server that does not keep what it promises: `with lying_store("127.0.0.1:9000") as s`.

`s.lie = "…"` says how, one of `LIES`; "" is the truth. `s.asked` counts requests by method.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import threading
from collections import Counter
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time

#: How it lies.
LIES = (
    "takes and stores nothing", "takes and stores nothing, without ETag", "gives half", "gives half and hangs up",
    "knows no ranges", "other ETags", "no conditions", "conditions passed over", "an hour behind",
)  # fmt: skip

_KEPT = ("content-type", "etag", "last-modified", "content-range", "x-amz-request-id", "date")


class LyingStore:
    """What the proxy does now."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.endpoint = ""
        self.lie = ""
        self.asked: Counter[str] = Counter()

    def answer(self, request: _Request) -> None:
        """Answer one request, truly or not."""
        method, lie = request.command, self.lie
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        self.asked[method] += 1
        early = self._lied(method, lie, body, conditional="if-none-match" in request.headers)
        if early is not None:
            request.give(*early)
            return
        status, headers, data = self._truth(request, body)
        if "etag" in headers and lie == "other ETags":
            headers["etag"] = f'"{hashlib.md5(headers["etag"].encode()).hexdigest()}"'
        if method == "GET" and status == 206 and lie == "knows no ranges":
            headers.pop("content-range")
            status = 200
        half = data[: len(data) // 2] if method == "GET" and lie.startswith("gives half") else data
        request.give(status, headers, half, length=len(data) if lie.endswith("hangs up") else None)

    @staticmethod
    def _lied(method: str, lie: str, body: bytes, *, conditional: bool) -> tuple[int, dict[str, str], bytes] | None:
        """Return an answer for which nobody is asked, None where the server is."""
        if lie == "an hour behind":
            said = b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"
            return 403, {"content-type": "application/xml", "date": formatdate(time() - 3600, usegmt=True)}, said
        if method == "PUT" and lie.startswith("takes and stores nothing"):
            return 200, {} if lie.endswith("without ETag") else {"etag": f'"{"0" * 32}"'}, b""
        if conditional and lie == "no conditions":
            said = b"<Error><Code>NotImplemented</Code><Message>A header implies functionality.</Message></Error>"
            return 501, {"content-type": "application/xml"}, said
        if conditional and lie == "conditions passed over":
            return 200, {"etag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
        return None

    def _truth(self, request: _Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        server = http.client.HTTPConnection(self.target, timeout=20)
        try:
            server.request(request.command, request.path, body, dict(request.headers))
            response = server.getresponse()
            data = response.read()
            headers = {k.lower(): v for k, v in response.getheaders() if k.lower() in _KEPT}
            if request.command == "HEAD":
                headers["content-length"] = response.getheader("content-length") or "0"
            return response.status, headers, data
        finally:
            server.close()


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: LyingStore

    def give(self, status: int, headers: dict[str, str], body: bytes, *, length: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in {"content-length": str(len(body) if length is None else length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = length is not None and length != len(body)

    def do_GET(self) -> None:
        self.store.answer(self)

    do_PUT = do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815


@contextlib.contextmanager
def lying_store(target: str) -> Iterator[LyingStore]:
    """Run one in front of an endpoint (`host:port`)."""
    store = LyingStore(target)

    class Handler(_Request):
        pass

    Handler.store = store
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        store.endpoint = f"127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield store
        finally:
            server.shutdown()
