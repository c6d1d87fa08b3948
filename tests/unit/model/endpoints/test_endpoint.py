from __future__ import annotations

import pytest
from pydantic import SecretStr

from communitree_shared.errors import UsageError
from communitree_shared.settings import ModelSettings
from communitree_workers.model.endpoints.endpoint import Endpoint, chat_url

KEY = "sk-verysecretkey-1234567890"


def settings(**more: object) -> ModelSettings:
    values: dict[str, object] = {"base_url": "https://host/v1", "model": "m", "api_key": SecretStr(KEY), **more}
    return ModelSettings.model_validate(values)


@pytest.mark.parametrize(
    ("base", "version", "url"),
    [
        ("https://host/v1", "", "https://host/v1/chat/completions"),
        ("https://host/v1/", "", "https://host/v1/chat/completions"),
        ("https://host/v1/chat/completions", "", "https://host/v1/chat/completions"),
        (
            "https://a.azure.com",
            "2026-01-01",
            "https://a.azure.com/openai/deployments/m/chat/completions?api-version=2026-01-01",
        ),
        ("https://a.azure.com/openai", "p", "https://a.azure.com/openai/deployments/m/chat/completions?api-version=p"),
        (
            "https://a.azure.com/openai/deployments/d",
            "p",
            "https://a.azure.com/openai/deployments/d/chat/completions?api-version=p",
        ),
        ("https://a.azure.com/openai/v1", "p", "https://a.azure.com/openai/v1/chat/completions?api-version=p"),
    ],
)
def test_addresses(base: str, version: str, url: str) -> None:
    assert chat_url(settings(base_url=base, api_version=version)) == url


def test_azure_has_a_header_of_its_own() -> None:
    assert Endpoint(settings(api_version="p", base_url="https://a")).headers["api-key"] == KEY
    assert "Authorization" not in Endpoint(settings(api_version="p", base_url="https://a")).headers
    assert Endpoint(settings()).headers["Authorization"] == f"Bearer {KEY}"


def test_no_secret_is_shown() -> None:
    endpoint = Endpoint(settings(extra_headers={"X-Team": "team-secret"}, proxy="http://joe:pass@proxy:3128"))
    assert KEY not in repr(endpoint) + repr(settings())
    words = f"Incorrect key {KEY}, Bearer {KEY} for team-secret through joe:pass, or sk-another-secret-key"
    shown = endpoint.scrub(words)
    for secret in (KEY, "team-secret", "pass", "sk-another-secret-key"):
        assert secret not in shown
    assert "Incorrect key" in shown


def test_the_identity_tells_keys_apart_without_holding_them() -> None:
    one, other = Endpoint(settings()), Endpoint(settings(api_key=SecretStr("sk-other-key-000")))
    assert one.identity != other.identity
    assert one.kind == other.kind
    assert KEY not in one.identity


def test_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert Endpoint(settings()).proxy == "http://proxy:3128"
    assert Endpoint(settings(base_url="https://localhost:8000/v1")).proxy is None
    assert Endpoint(settings(proxy="other:1")).proxy == "http://other:1"


@pytest.mark.parametrize(
    "wrong",
    [{"base_url": ""}, {"base_url": "host/v1"}, {"base_url": "https://joe:pw@host/v1"}, {"ca_bundle": "/no/such/file"}],
)
def test_settings_that_do_not_do(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        Endpoint(settings(**wrong))
    assert "COMMUNITREE_LLM" in caught.value.hint
    assert "pw" not in caught.value.message
