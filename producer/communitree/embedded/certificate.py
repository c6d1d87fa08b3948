"""The certificate by which the parts of the S3 server know each other, and refuse everybody else.

One certificate, signed by itself, is the only one that each part trusts, as a server and as a client. So there is no
authority whose key could sign another: who has this key is inside, nobody else. It never expires; the embedded stack
makes a new one at each start of the server.

    python -m communitree.embedded.certificate FOLDER     for containers: writes it, unless it lies there already
"""

from __future__ import annotations

import datetime
import ipaddress
import sys
from dataclasses import dataclass
from pathlib import Path

from communitree.embedded.home import write_private
from communitree_shared.errors import InfrastructureError

#: The servers of `weed` that listen, by the sections of its `security.toml`; "worker" listens nowhere, but calls.
_GRPC = ("master", "volume", "filer", "s3", "admin", "worker", "client")
_HTTPS = ("master", "volume", "filer", "admin")

# Whatever a clock says: one that is set right later must not make the certificate invalid.
_BEGIN = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)  # RFC 5280, 4.1.2.5: does not expire


@dataclass(frozen=True)
class Certificate:
    """Where the certificate and its key lie."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """The certificate, PEM."""
        return self.folder / "tls.crt"

    @property
    def key(self) -> Path:
        """Its private key, PEM."""
        return self.folder / "tls.key"

    def environment(self) -> dict[str, str]:
        """Return what makes all parts of `weed` use it: its `security.toml`, as environment variables.

        The S3 port itself is not among them: signatures guard it.
        """
        own = {"CERT": str(self.certificate), "KEY": str(self.key)}
        ca = str(self.certificate)
        return {
            "WEED_GRPC_CA": ca,
            **{f"WEED_GRPC_{part.upper()}_{name}": path for part in _GRPC for name, path in own.items()},
            "WEED_HTTPS_CLIENT_ENABLED": "true",
            **{
                f"WEED_HTTPS_{part.upper()}_{name}": path
                for part in ("client", *_HTTPS)
                for name, path in {**own, "CA": ca}.items()
            },
        }


def make(folder: Path) -> Certificate:
    """Write a new certificate and its key, readable by the owner alone.

    Raises:
        InfrastructureError: the package `cryptography` is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ModuleNotFoundError as missing:
        raise InfrastructureError(
            f"The package {missing.name} is not installed.", hint="pip install 'communitree[embedded,workers]'"
        ) from missing

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "communitree")])
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(folder)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(made.key, private.decode())
    write_private(made.certificate, certificate.public_bytes(pem).decode())
    return made


def make_once(folder: Path) -> None:
    """Write a certificate that another user's process in another container may read, unless there is one.

    The volume is the boundary there, and the server that uses it may be running: it is never replaced.
    """
    there = Certificate(folder)
    if not there.certificate.exists():
        make(folder)
    there.key.chmod(0o644)
    there.certificate.chmod(0o644)


if __name__ == "__main__":
    make_once(Path(sys.argv[1]))
