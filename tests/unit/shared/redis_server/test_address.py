from __future__ import annotations

import pytest

from communitree_shared.errors import UsageError
from communitree_shared.redis_server.address import parse


def test_one_server() -> None:
    found = parse("redis://user:p%40ss%2Fword@host:7000/3")
    assert (found.hosts, found.db, found.username, found.password) == ((("host", 7000),), 3, "user", "p@ss/word")
    assert (found.tls, found.broker_ssl(), found.ssl_options, found.master_name) == (False, None, {}, "")
    assert found.broker_url() == "redis://user:p%40ss%2Fword@host:7000/3"
    assert parse("valkey://h").hosts == (("h", 6379),)


def test_a_password_without_a_user_and_an_address_of_version_six() -> None:
    found = parse("redis://:word@[::1]:7000/0")
    assert found.hosts == (("::1", 7000),)
    assert found.broker_url() == "redis://:word@[::1]:7000/0"
    assert found.credentials == {"password": "word"}


def test_tls_wants_certificates_that_are_trusted() -> None:
    found = parse("rediss://h:1/0", ca="ca.pem", certificate="mine.pem", key="mine.key")
    assert found.ssl_options == {
        "ssl": True, "ssl_cert_reqs": "required", "ssl_ca_certs": "ca.pem", "ssl_certfile": "mine.pem",
        "ssl_keyfile": "mine.key",
    }  # fmt: skip
    assert found.broker_ssl() == {k: v for k, v in found.ssl_options.items() if k != "ssl"}
    assert parse("rediss://h?ssl_cert_reqs=none").ssl["ssl_check_hostname"] is False


@pytest.mark.parametrize(
    "url",
    [
        "sentinel://:pw@a:1,b/2?master_name=main",
        "sentinel://:pw@a:1/2;sentinel://:pw@b:26379/2?master_name=main",
        "sentinel://:pw@a:1/2?master_name=main;sentinel://:pw@b:26379/2",
    ],
)
def test_sentinels_in_either_spelling(url: str) -> None:
    found = parse(url, sentinel_password="other")
    assert (found.hosts, found.db, found.master_name) == ((("a", 1), ("b", 26379)), 2, "main")
    assert found.broker_url() == "redis://:pw@a:1/2"
    assert found.sentinel_options["password"] == "other"
    assert found.where == "a:1, b:26379"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://:hush@h", "begins with 'http'"),
        ("hush", "begins with 'no scheme'"),
        ("redis://:hush@h/x", "no number"),
        ("redis://:hush@h:port", "no number"),
        ("sentinel://:hush@h:1/0", "not the primary"),
    ],
)
def test_a_mistake_is_named_without_the_password(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as named:
        parse(url)
    assert "hush" not in f"{named.value} {named.value.hint}"


def test_no_password_shows() -> None:
    found = parse("rediss://user:hush@h", key="hush", sentinel_password="hush")
    assert "hush" not in repr(found)
