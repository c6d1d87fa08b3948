"""Who we are to the object store: static keys, the environment, a file, a role; and where there is nothing of these."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from minio.credentials import credentials
from pydantic import SecretStr

from communitree_shared.errors import ServerRefuses, UsageError
from communitree_shared.objects import credentials as s3_credentials
from communitree_shared.objects.store import Store
from communitree_shared.settings import Settings
from support.roles import METADATA_TOKEN, Roles, running_roles

_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ACCESS_KEY",
    "AWS_SECRET_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_REGION",
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
def roles(settings: Settings) -> Iterator[Roles]:
    with running_roles(settings.s3_access_key.get_secret_value(), settings.s3_secret_key.get_secret_value()) as made:
        yield made


def through(roles: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the services' own addresses, which are no machine's here, be reached through a proxy."""
    monkeypatch.setattr(s3_credentials, "_http", lambda: urllib3.ProxyManager(roles.url, retries=False))


def test_the_role_of_a_container_asked_again_before_it_ends(
    keyless: Settings, roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{roles.url}/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token-of-the-test")
    store = Store(keyless, patience=5)
    store.ensure_bucket()
    store.put("a", b"1")
    assert [headers["authorization"] for *_, headers, _ in roles.asked] == ["token-of-the-test"]

    class Later(datetime.datetime):
        @classmethod
        def utcnow(cls) -> Any:
            return datetime.datetime.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=3595)

    monkeypatch.setattr(credentials, "datetime", Later)  # they live for an hour, and end ten seconds early for us
    roles.lives = 7200
    assert store.get("a") == b"1"
    assert len(roles.asked) == 2


def test_the_role_of_a_task_at_the_address_that_all_containers_have(
    keyless: Settings, roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role")
    through(roles, monkeypatch)
    works(keyless)
    assert [(method, path) for method, path, _, _ in roles.asked] == [("GET", "169.254.170.2/role")]


def test_the_role_of_a_pod_whose_token_is_a_file(
    keyless: Settings, roles: Roles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is none of loopback, and the token is read anew each time: it changes."""
    token = tmp_path / "token"
    token.write_text("first")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    through(roles, monkeypatch)
    roles.lives = 5  # too short to be kept
    store = Store(keyless, patience=5)
    store.ensure_bucket()
    token.write_text("second")
    store.put("a", b"1")
    assert {path for _, path, _, _ in roles.asked} == {"169.254.170.23/role"}
    assert list(dict.fromkeys(headers["authorization"] for *_, headers, _ in roles.asked)) == ["first", "second"]


def test_the_role_of_an_instance(keyless: Settings, roles: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    through(roles, monkeypatch)
    works(keyless)
    folder = "169.254.169.254/latest/meta-data/iam/security-credentials/"
    assert [(method, path) for method, path, _, _ in roles.asked] == [
        ("PUT", "169.254.169.254/latest/api/token"), ("GET", folder), ("GET", folder + "role-of-the-instance"),
    ]  # fmt: skip
    assert roles.asked[0][2]["x-aws-ec2-metadata-token-ttl-seconds"] == "21600"
    assert roles.asked[2][2]["x-aws-ec2-metadata-token"] == METADATA_TOKEN


def test_the_metadata_service_may_be_somewhere_else(
    keyless: Settings, roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", roles.url + "/")
    works(keyless)
    assert len(roles.asked) == 3


def test_a_web_identity_is_changed_for_keys_of_its_role(
    keyless: Settings, roles: Roles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "identity").write_text("ey-identity")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "identity"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader")
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "worker-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", roles.url)
    works(keyless)
    ((method, _, _, query),) = roles.asked
    assert method == "POST"
    assert query == {
        "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "WebIdentityToken": "ey-identity",
        "RoleArn": "arn:aws:iam::123456789012:role/reader", "RoleSessionName": "worker-1",
    }  # fmt: skip


def test_the_session_of_a_role_goes_with_its_keys(
    keyless: Settings, roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{roles.url}/role")
    roles.session = "session-of-the-role"
    found = s3_credentials.provider(keyless).retrieve()
    assert (found.access_key, found.secret_key) == (roles.access, roles.secret)
    assert found.session_token == "session-of-the-role"


def test_a_role_that_is_refused_says_so(keyless: Settings, roles: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{roles.url}/another")
    with pytest.raises(ServerRefuses, match="no credentials") as refused:
        Store(keyless, patience=30).ensure_bucket()
    assert "role" in refused.value.hint


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
