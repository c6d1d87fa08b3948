"""A certificate authority of the tests' own, and what it has signed for loopback; good until 2126."""

from __future__ import annotations

import ssl
from pathlib import Path

_HERE = Path(__file__).parent
CA = str(_HERE / "ca.pem")
SERVER = str(_HERE / "server.pem")
CLIENT = str(_HERE / "client.pem")


def server_context(*, wants_certificate: bool = False) -> ssl.SSLContext:
    """Return what a server on loopback speaks TLS with; it may want a certificate of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SERVER)
    if wants_certificate:
        context.load_verify_locations(CA)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
