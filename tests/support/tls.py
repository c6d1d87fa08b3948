"""A certificate authority of this test run's own, and what it has signed for loopback; no key outlives the run."""

from __future__ import annotations

import atexit
import ssl
import tempfile
from pathlib import Path

import trustme

_FOLDER = tempfile.TemporaryDirectory(prefix="communitree-tls-")
atexit.register(_FOLDER.cleanup)
_AUTHORITY = trustme.CA()


def _file(name: str, *parts: trustme.Blob) -> str:
    path = Path(_FOLDER.name, name)
    path.write_bytes(b"".join(part.bytes() for part in parts))
    return str(path)


def _signed(name: str, *hosts: str) -> str:
    leaf = _AUTHORITY.issue_cert(*hosts)
    return _file(name, leaf.private_key_pem, *leaf.cert_chain_pems)


CA = _file("ca.pem", _AUTHORITY.cert_pem)
SERVER = _signed("server.pem", "127.0.0.1", "::1", "localhost")
CLIENT = _signed("client.pem", "client@localhost")


def server_context(*, wants_certificate: bool = False) -> ssl.SSLContext:
    """Return what a server on loopback speaks TLS with; it may want a certificate of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SERVER)
    if wants_certificate:
        context.load_verify_locations(CA)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
