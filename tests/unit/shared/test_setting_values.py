"""Every setting with twenty wrong values, from the environment and from the file: one line each, never a traceback."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from communitree.cli import main as client
from communitree_shared.contract import ask_defaults
from communitree_shared.errors import CommunitreeError, UsageError
from communitree_shared.redis_server.address import parse
from communitree_shared.settings import MODEL_STAGES, Settings
from communitree_workers import __main__ as worker
from support.settings_list import variables

#: Twenty values that hardly any setting takes; which of them one does, it may.
WRONG = [
    "-1", "0", "1e999", "nan", "abc", "1.5.2", "{", "[1]", "{}x", "true false", "://", "http://", "ftp://host", "a b",
    "host:99999", "x" * 300, "99999999999999999999", "\x1b[2J", "naïve\u202e", "/no/such/file",
]  # fmt: skip
KINDS = {name: str(field.annotation) for name, field in Settings.model_fields.items()}
NUMBERS = [name for name, kind in KINDS.items() if re.search(r"\b(int|float)\b", kind)]
SWITCHES = [name for name, kind in KINDS.items() if "bool" in kind]
FREE_TEXT = {"home", "llm_model", "llm_api_version", *(name for name, kind in KINDS.items() if "Secret" in kind)}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("COMMUNITREE_HOME", raising=False)


def refused(**given: Any) -> str:
    with pytest.raises(UsageError) as error:
        Settings(**given)
    return f"{error.value.message} {error.value.hint}"


def error_of() -> str:
    """Return what the settings of this process are refused with, "" where they are right."""
    try:
        Settings().look_as_worker()
    except UsageError as error:
        return f"{error.message} {error.hint}"
    return ""


def test_there_are_twenty() -> None:
    assert len(set(WRONG)) == 20


@pytest.mark.parametrize("name", sorted(variables()))
def test_no_value_of_any_variable_is_a_traceback(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for value in WRONG:
        monkeypatch.setenv(name, value)
        told.append(error_of())
    for said in filter(None, told):
        assert name in said
        assert "\n" not in said
        assert "For example" in said or "questions.md" in said or name == "COMMUNITREE_CONFIG"
    free = {f"COMMUNITREE_{n.upper()}" for n in FREE_TEXT - {"redis_url"}}
    free |= {f"COMMUNITREE_LLM_{s.upper()}_{n}" for s in MODEL_STAGES for n in ("MODEL", "API_VERSION", "API_KEY")}
    words = {ask_defaults.PREFIX + n for n in ("COLUMN_DELIMITER", "CONTEXT_NAME", "LANGUAGE", "RESPONSE_TYPE")}
    least = 0 if name in words else 1 if name in free or name.startswith(ask_defaults.PREFIX) else 12
    assert len(list(filter(None, told))) >= least


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_no_value_of_the_file_is_a_traceback(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COMMUNITREE_CONFIG", str(tmp_path / "c.toml"))
    told = []
    for value in ["'abc'", "-1", "1.5", "nan", "true", "[]", "[1]", "{a = 1}", "1979-05-27", '"\\u0000"', '"\\u0007x"']:
        (tmp_path / "c.toml").write_text(f"{name} = {value}\n", encoding="utf-8")
        told.append(error_of())
    for said in filter(None, told):
        assert f"COMMUNITREE_{name.upper()}" in said or name == "ask"
        assert "c.toml" in said or name in {"redis_url", "ask"}
        assert "\n" not in said
    assert len(list(filter(None, told))) >= 4


@pytest.mark.parametrize("name", ["window", "s3_endpoint", "redis_url", "log_level", "ask", "llm_map_timeout", "home"])
def test_client_and_worker_say_the_same_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the processes would; their other errors (no stack, no server) are no tracebacks either."""
    monkeypatch.setattr(logging, "basicConfig", lambda **_: logging.getLogger().addHandler(logging.NullHandler()))
    before = list(logging.getLogger().handlers)
    variable = f"COMMUNITREE_{name.upper()}"
    monkeypatch.setenv(variable, "\x1b nothing ://")
    assert client(["corpora"]) == 2
    assert client(["worker"]) == 2
    said = capsys.readouterr().err
    assert said.count(variable) >= 2
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert worker.main(["worker"]) == 2
    logging.getLogger().handlers[:] = before


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e30", "many"])
def test_numbers_are_numbers_in_their_range(name: str, value: str) -> None:
    said = refused(**{name: value})
    assert said.startswith(f"COMMUNITREE_{name.upper()} ('{value}') is ")
    assert f"For example: COMMUNITREE_{name.upper()}=" in said


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_are_on_or_off(name: str) -> None:
    assert "is neither true nor false" in refused(**{name: "perhaps"})


@pytest.mark.parametrize(
    ("given", "secure", "endpoint", "is_secure"),
    [
        ("https://s3.example.com/", None, "s3.example.com", True),
        (" http://127.0.0.1:9000// ", None, "127.0.0.1:9000", False),
        ("s3.example.com:9000/", True, "s3.example.com:9000", True),
        ("HTTPS://[::1]:9000", True, "[::1]:9000", True),
        ("minio_1:9000", None, "minio_1:9000", False),
    ],
)
def test_an_endpoint_may_be_a_url(given: str, secure: bool | None, endpoint: str, is_secure: bool) -> None:
    found = Settings(s3_endpoint=given, **({} if secure is None else {"s3_secure": secure}))
    assert (found.s3_endpoint, found.s3_secure) == (endpoint, is_secure)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("https://h/bucket", "has a path"),
        ("ftp://h", "begins with neither"),
        ("h:0", "port"),
        ("h:65536", "port"),
        ("h:", "port"),
        ("http://key:hush@h", "COMMUNITREE_S3_SECRET_KEY"),
        ("a b", "no host has"),
        ("http://", "names no host"),
        ("[::1", "half an IPv6"),
    ],
)
def test_an_endpoint_that_is_none(given: str, why: str) -> None:
    said = refused(s3_endpoint=given)
    assert said.startswith("COMMUNITREE_S3_ENDPOINT")
    assert why in said
    assert "hush" not in said


def test_scheme_and_switch_that_contradict_one_another() -> None:
    assert "says otherwise than COMMUNITREE_S3_SECURE=true" in refused(s3_endpoint="http://h", s3_secure=True)


@pytest.mark.parametrize("sign", ["/", "#", "?"])
def test_a_password_that_is_not_escaped_is_said(sign: str) -> None:
    said = refused(redis_url=f"redis://:hu{sign}sh@host:6379/0")
    assert "The password in COMMUNITREE_REDIS_URL has a character in it that ends it." in said
    assert "%2F" in said
    assert "hu" not in said.replace("hush", "")
    assert parse("redis://:h%2Fu@host:6379/0").password == "h/u"
    assert parse("redis://:h@u@host:6379/0").password == "h@u"


@pytest.mark.parametrize(
    "url", ["redis://[::1", "redis://h:0/0", "redis://h:1/²", "redis://h o:1", "redis://h:99999", "redis://h/0?ssl_cert_reqs=x",
            "redis://h;redis://[", "redis://h^:1"],
)  # fmt: skip
def test_a_redis_url_that_is_none_is_no_traceback(url: str) -> None:
    with pytest.raises(CommunitreeError, match="COMMUNITREE_REDIS_URL"):
        parse(url)


def test_no_value_that_may_be_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("redis_url", "hush://"), ("s3_secret_key", "hush\x07"), ("llm_extra_headers", {"a b": "hush"}),
        ("llm_proxy", "hush"), ("llm_base_url", "hush://me:hush@h"), ("llm_api_key", SecretStr("hush\x00")),
    ):  # fmt: skip
        assert "hush" not in refused(**{name: value}).replace("begins with 'hush'", "")
    monkeypatch.setenv("COMMUNITREE_LLM_MAP_PROXY", "hush")
    assert "hush" not in refused()
