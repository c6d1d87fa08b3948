"""Where Redis is, read from one setting: a server, a server behind TLS, or the sentinels that know the primary.

`redis://[[user]:password@]host[:port][/db]`, `rediss://…` (TLS), `sentinel://[[user]:password@]host[:port],host[:port]
…/db?master_name=NAME`, `sentinels://…` (TLS). `valkey://` and `valkeys://` mean the same as Redis's. kombu's own
spelling of several sentinels, `sentinel://…;sentinel://…`, is read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from communitree_shared.errors import UsageError

_SCHEMES = {
    "redis": (False, False), "valkey": (False, False), "rediss": (True, False), "valkeys": (True, False),
    "sentinel": (False, True), "sentinels": (True, True),
}  # fmt: skip

_EXAMPLES = "redis://:password@host:6379/0, rediss://…, sentinel://host:26379/0?master_name=NAME"

_ESCAPED = "In a password, @ : / ? # % are written %40 %3A %2F %3F %23 %25."

_SSL = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True)
class RedisAddress:
    """One Redis: `hosts` are its sentinels where there is a `master_name`, else the one server."""

    hosts: tuple[tuple[str, int], ...]
    db: int
    username: str = field(repr=False)
    password: str = field(repr=False)
    tls: bool
    master_name: str
    ssl: Mapping[str, Any] = field(repr=False)
    sentinel_password: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        """Return hosts and ports, for messages: no secret."""
        return ", ".join(f"{host}:{port}" for host, port in self.hosts)

    @property
    def credentials(self) -> dict[str, str]:
        """Return user and password, those that are set."""
        return {k: v for k, v in (("username", self.username), ("password", self.password)) if v}

    @property
    def sentinel_options(self) -> dict[str, Any]:
        """Return how to connect to a sentinel."""
        options: dict[str, Any] = {"password": self.sentinel_password} if self.sentinel_password else {}
        return {**options, "socket_timeout": 5, "socket_connect_timeout": 5, **self.ssl_options}

    @property
    def ssl_options(self) -> dict[str, Any]:
        """Return the options of a TLS connection as redis-py names them; none without TLS."""
        return {"ssl": True, **self.ssl} if self.tls else {}

    def broker_url(self) -> str:
        """Return the URL as kombu reads it: of the server or of the first sentinel, no query."""
        login = ""
        if self.password or self.username:
            login = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@"
        host, port = self.hosts[0]
        return f"redis://{login}{_spelled(host)}:{port}/{self.db}"

    def broker_ssl(self) -> dict[str, Any] | None:
        """Return kombu's `ssl`; None without TLS."""
        return dict(self.ssl) if self.tls else None


def parse(url: str, *, ca: str = "", certificate: str = "", key: str = "", sentinel_password: str = "") -> RedisAddress:
    """Return what a URL says. `ca`, `certificate`, `key`: files, for TLS.

    Raises:
        UsageError: it is none; the message does not hold it, for it may have a password in it.
    """
    first, *others = url.strip().split(";")
    parts = _split(first)
    if parts.scheme not in _SCHEMES:
        raise UsageError(
            f"COMMUNITREE_REDIS_URL begins with {parts.scheme or 'no scheme'!r}.", hint=f"For example: {_EXAMPLES}."
        )
    tls, sentinel = _SCHEMES[parts.scheme]
    if "@" in parts.path + parts.query + parts.fragment:  # the host begins behind the last @
        raise UsageError("The password in COMMUNITREE_REDIS_URL has a character in it that ends it.", hint=_ESCAPED)
    if re.search(r"\s", url.strip()):
        raise UsageError("COMMUNITREE_REDIS_URL has a blank in it.", hint=f"For example: {_EXAMPLES}.")
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    names = [*hosts.split(","), *(_split(other).netloc.rpartition("@")[2] for other in others)]
    query = dict(parse_qsl(_split(others[-1] if others else first).query or parts.query))
    path = parts.path.strip("/") or query.get("db", "0")
    if not re.fullmatch(r"[0-9]{1,5}", path):
        raise UsageError(
            "The database in COMMUNITREE_REDIS_URL is no number.", hint="It stands after the port: redis://host:6379/0."
        )
    if sentinel and not query.get("master_name"):
        raise UsageError(
            "COMMUNITREE_REDIS_URL names sentinels, but not the primary they watch.",
            hint="Add ?master_name=NAME to it.",
        )
    ssl: dict[str, Any] = {"ssl_cert_reqs": "required"}
    ssl |= {name: value for name, value in (("ssl_ca_certs", ca), ("ssl_certfile", certificate), ("ssl_keyfile", key)) if value}  # fmt: skip  # noqa: E501
    ssl |= {name: query[name] for name in _SSL if name in query}
    if "ssl_check_hostname" in query:
        ssl["ssl_check_hostname"] = query["ssl_check_hostname"].lower() in {"1", "true", "yes"}
    elif str(ssl["ssl_cert_reqs"]).lower().removeprefix("cert_") not in {"none", "optional", "required"}:
        raise UsageError(
            "ssl_cert_reqs in COMMUNITREE_REDIS_URL is none of none, optional, required.",
            hint="Without it the server's certificate is checked.",
        )
    elif str(ssl["ssl_cert_reqs"]).lower() in {"none", "cert_none"}:
        ssl["ssl_check_hostname"] = False
    return RedisAddress(
        tuple(_host(name, 26379 if sentinel else 6379) for name in names), int(path), unquote(username),
        unquote(password), tls, query["master_name"] if sentinel else "", ssl if tls else {}, sentinel_password,
    )  # fmt: skip


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise UsageError("COMMUNITREE_REDIS_URL has half an IPv6 address.", hint=f"For example: {_EXAMPLES}.") from None


def _host(name: str, port: int) -> tuple[str, int]:
    parts = _split(f"//{name}")
    try:
        found = parts.hostname or "127.0.0.1", port if parts.port is None else parts.port
    except ValueError:
        found = "", 0
    if not found[1]:
        raise UsageError(
            "A port in COMMUNITREE_REDIS_URL is no number from 1 to 65535.",
            hint=f"For example: {_EXAMPLES}. {_ESCAPED}",
        )
    if not re.fullmatch(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?", found[0]):
        raise UsageError(
            "A host in COMMUNITREE_REDIS_URL has characters that no host has.", hint=f"For example: {_EXAMPLES}."
        )
    return found


def _spelled(host: str) -> str:
    return f"[{host}]" if ":" in host else host
