"""Do ports refuse whoever comes without our certificate?

Asked at each start, because the S3 server opens a port to everybody, and only logs it, where it cannot read its
certificate or does not know a setting's name any more.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable

#: The greetings of HTTP/1 and of gRPC (HTTP/2: its preface and empty settings).
_GREETINGS = (b"GET / HTTP/1.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")

#: What Go's HTTPS servers say to a request without TLS.
_WANTS_TLS = b"Client sent an HTTP request to an HTTPS server"

_ALERT = 0x15  # the first byte of a TLS record that ends a connection

_SETTINGS = b"\4"  # the kind, in the fourth byte, of the frame with which a gRPC server begins

_PATIENCE = 5.0


def open_ports(ports: Iterable[int]) -> list[int]:
    """Return those loopback ports that answer somebody without a certificate, with TLS or without.

    A port that says nothing within seconds counts as open: it did not refuse.
    """
    return [port for port in ports if any(_answers(port, greeting) for greeting in _GREETINGS)]


def _answers(port: int, greeting: bytes) -> bool:
    return _says(port, greeting, None) or _says(port, greeting, _stranger())


def _stranger() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def _says(port: int, greeting: bytes, tls: ssl.SSLContext | None) -> bool:
    reply = b""
    try:
        link = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
        with tls.wrap_socket(link) if tls else link as speaking:
            speaking.sendall(greeting)
            while reply[3:4] != _SETTINGS and (more := speaking.recv(4096)):
                reply += more
    except TimeoutError:
        return True
    except OSError:  # ssl.SSLError is one
        pass
    return bool(reply) and reply[0] != _ALERT and _WANTS_TLS not in reply
