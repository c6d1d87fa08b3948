"""Where a machine's role gets its credentials: the metadata service of an instance, of containers, and STS, in one."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

STS = "https://sts.amazonaws.com/doc/2011-06-15/"
METADATA_TOKEN = "token-of-the-instance"


class Roles:
    """The service: what it gives out, for how long (s), and what it was asked: (method, path, headers, query)."""

    def __init__(self, access: str, secret: str) -> None:
        self.access, self.secret, self.session = access, secret, ""
        self.lives = 3600.0
        self.url = ""
        self.asked: list[tuple[str, str, dict[str, str], dict[str, str]]] = []

    def reply(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        """Return status and body, as the real services answer."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lives))
        if method == "POST":
            return 200, (
                f'<AssumeRoleWithWebIdentityResponse xmlns="{STS}"><AssumeRoleWithWebIdentityResult><Credentials>'
                f"<AccessKeyId>{self.access}</AccessKeyId><SecretAccessKey>{self.secret}</SecretAccessKey>"
                f"<SessionToken>{self.session}</SessionToken><Expiration>{at}</Expiration></Credentials>"
                "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
            )
        if method == "PUT" and path == "/latest/api/token":
            return 200, METADATA_TOKEN
        if path.startswith("/latest/") and headers.get("x-aws-ec2-metadata-token") != METADATA_TOKEN:
            return 401, ""
        if path == "/latest/meta-data/iam/security-credentials/":
            return 200, "role-of-the-instance"
        if path in {"/latest/meta-data/iam/security-credentials/role-of-the-instance", "/role"}:
            keys = {"AccessKeyId": self.access, "SecretAccessKey": self.secret, "Token": self.session}
            return 200, json.dumps({"Code": "Success", **keys, "Expiration": at})
        return 404, ""


@contextlib.contextmanager
def running_roles(access: str, secret: str) -> Iterator[Roles]:
    """Serve on loopback until the block ends; also as an HTTP proxy, for the services' own addresses."""
    roles = Roles(access, secret)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            where = parts.path if not parts.netloc else f"{parts.netloc}{parts.path}"
            roles.asked.append((self.command, where, headers, query))
            status, body = roles.reply(self.command, parts.path, headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_PUT = do_POST = answer  # noqa: N815 - the names that the server looks for

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        roles.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield roles
        finally:
            server.shutdown()
