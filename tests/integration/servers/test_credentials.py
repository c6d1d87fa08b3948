"""Who we are to the object store: static keys, the environment, a file, a role; and where there is nothing of these."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr

from communitree_shared.errors import ServerRefuses, UsageError
from communitree_shared.settings import Settings
from communitree_shared.store import Store

_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ACCESS_KEY",
    "AWS_SECRET_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of this machine."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    # Whatever asks for the role of an instance is sent to a port where nobody listens.
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/role")


@pytest.fixture
def keyless(settings: Settings) -> Settings:
    return settings.model_copy(update={"s3_access_key": SecretStr(""), "s3_secret_key": SecretStr("")})


def works(settings: Settings) -> None:
    store = Store(settings, patience=5)
    store.ensure_bucket()
    store.put("a", b"1")
    assert store.get("a") == b"1"


def test_the_environment_of_aws_tools(settings: Settings, keyless: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", settings.s3_access_key.get_secret_value())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", settings.s3_secret_key.get_secret_value())
    works(keyless)


def test_the_shared_credentials_file(settings: Settings, keyless: Settings, tmp_path: Path) -> None:
    (tmp_path / "none").write_text(
        f"[default]\naws_access_key_id = {settings.s3_access_key.get_secret_value()}\n"
        f"aws_secret_access_key = {settings.s3_secret_key.get_secret_value()}\n"
    )
    works(keyless)


@pytest.fixture
def role(settings: Settings) -> Iterator[tuple[str, list[str]]]:
    """A container's metadata service; yields its address and what it was asked, by token."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization", ""))
            until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 12))
            body = json.dumps(
                {"AccessKeyId": settings.s3_access_key.get_secret_value(), "Token": "", "Expiration": until,
                 "SecretAccessKey": settings.s3_secret_key.get_secret_value()}
            ).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/role", asked
        server.shutdown()


def test_the_role_of_a_container_asked_again_before_it_ends(
    keyless: Settings, role: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = role
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token-of-the-test")
    store = Store(keyless, patience=5)
    store.ensure_bucket()
    store.put("a", b"1")
    assert asked == ["token-of-the-test"]
    time.sleep(2.5)  # the credentials live for twelve seconds, and end ten seconds early for us
    assert store.get("a") == b"1"
    assert len(asked) == 2


def test_without_any_credentials_it_is_said_at_once_what_to_set(keyless: Settings) -> None:
    began = time.monotonic()
    with pytest.raises(ServerRefuses, match="no credentials") as refused:
        Store(keyless, patience=30).ensure_bucket()
    assert time.monotonic() - began < 15
    assert "COMMUNITREE_S3_ACCESS_KEY" in refused.value.hint
    assert "role" in refused.value.hint


def test_one_key_without_the_other_is_a_mistake(settings: Settings) -> None:
    with pytest.raises(UsageError, match="COMMUNITREE_S3_SECRET_KEY is not set"):
        Store(settings.model_copy(update={"s3_secret_key": SecretStr("")}))
