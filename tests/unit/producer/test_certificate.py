from __future__ import annotations

import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from cryptography import x509

from communitree.embedded import certificate
from communitree.embedded.closed import open_ports


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    made = certificate.make(tmp_path)
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    assert b"PRIVATE KEY" in made.key.read_bytes()
    assert b"PRIVATE" not in made.certificate.read_bytes()


def test_it_trusts_itself_alone_and_never_ends(tmp_path: Path) -> None:
    made = certificate.make(tmp_path)
    found = x509.load_pem_x509_certificate(made.certificate.read_bytes())
    assert found.issuer == found.subject
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert found.not_valid_before_utc < datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    assert found.not_valid_after_utc.year == 9999
    (tmp_path / "again").mkdir()
    assert certificate.make(tmp_path / "again").key.read_bytes() != made.key.read_bytes()


def test_every_inner_server_of_weed_uses_it(tmp_path: Path) -> None:
    names = certificate.Certificate(tmp_path).environment()
    for part in ("MASTER", "VOLUME", "FILER", "S3", "ADMIN"):
        assert names[f"WEED_GRPC_{part}_KEY"] == str(tmp_path / "tls.key")
    for part in ("MASTER", "VOLUME", "FILER", "ADMIN"):
        assert names[f"WEED_HTTPS_{part}_CA"] == str(tmp_path / "tls.crt")
    assert not [name for name in names if name.startswith("WEED_HTTPS_S3")]


def test_for_containers_it_is_made_once(tmp_path: Path) -> None:
    certificate.make_once(tmp_path)
    there = certificate.Certificate(tmp_path)
    key = there.key.read_bytes()
    there.key.chmod(0o600)  # as one that was killed before it was done leaves it
    certificate.make_once(tmp_path)
    assert there.key.read_bytes() == key
    assert stat.S_IMODE(there.key.stat().st_mode) == 0o644


class Server:
    """Answers each connection with a few bytes, with TLS that wants a certificate or without."""

    def __init__(self, says: bytes, context: ssl.SSLContext | None = None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._says, self._context = says, context
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            link, _ = self.listener.accept()
            with link:
                heard = link.recv(4096, socket.MSG_PEEK)
                if heard == b"end":
                    return
                try:
                    with self._context.wrap_socket(link, server_side=True) if self._context else link as speaking:
                        speaking.recv(4096)
                        speaking.sendall(self._says)
                except OSError:
                    pass

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.sendall(b"end")
            self._thread.join()
        self.listener.close()


def wanting(made: certificate.Certificate, mode: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    context.load_verify_locations(made.certificate)
    context.verify_mode = mode
    return context


@pytest.mark.parametrize(
    ("says", "mode", "is_open"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n", None, True),
        (b"HTTP/1.0 401 Unauthorized\r\n\r\n", None, True),
        (b"\0\0\0\4\0\0\0\0\0", None, True),
        (b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", None, False),
        (b"HTTP/1.0 200 OK\r\n\r\n", ssl.CERT_NONE, True),
        (b"HTTP/1.0 200 OK\r\n\r\n", ssl.CERT_REQUIRED, False),
    ],
)
def test_open_ports_are_told_from_closed_ones(
    tmp_path: Path, says: bytes, mode: ssl.VerifyMode | None, is_open: bool
) -> None:
    server = Server(says, None if mode is None else wanting(certificate.make(tmp_path), mode))
    try:
        assert open_ports([server.port]) == ([server.port] if is_open else [])
    finally:
        server.close()
