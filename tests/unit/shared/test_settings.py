from __future__ import annotations

from pathlib import Path

import pytest

from communitree_shared.errors import UsageError
from communitree_shared.settings import EXTRACTIVE, MODEL_STAGES, ModelSettings, Settings
from support.settings_list import variables


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.delenv(name, raising=False)


def test_without_anything_the_built_in_model_does_every_stage() -> None:
    settings = Settings()
    assert all(settings.model(stage).built_in for stage in MODEL_STAGES)
    assert settings.model("map").model == EXTRACTIVE


def test_one_stage_may_have_a_model_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITREE_LLM_MODEL", "small")
    monkeypatch.setenv("COMMUNITREE_LLM_API_KEY", "key-of-all")
    monkeypatch.setenv("COMMUNITREE_LLM_REDUCE_MODEL", "large")
    monkeypatch.setenv("COMMUNITREE_LLM_REDUCE_CACHE", "false")
    settings = Settings()
    assert {stage: settings.model(stage).model for stage in MODEL_STAGES} == {
        **dict.fromkeys(MODEL_STAGES, "small"),
        "reduce": "large",
    }
    assert settings.model("reduce").api_key.get_secret_value() == "key-of-all"
    assert settings.model("map").cache
    assert not settings.model("reduce").cache


def test_a_stage_can_go_back_to_the_built_in_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITREE_LLM_MODEL", "small")
    monkeypatch.setenv("COMMUNITREE_LLM_EXTRACT_MODEL", "extractive")
    assert Settings().model("extract").built_in
    assert not Settings().model("report").built_in


def test_an_empty_variable_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITREE_LLM_MODEL", "")
    monkeypatch.setenv("COMMUNITREE_LLM_MAP_MODEL", "")
    monkeypatch.setenv("COMMUNITREE_WINDOW", "")
    assert Settings().model("map").built_in
    assert Settings().window == 256


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "communitree.toml"
    file.write_text('tenant = "acme"\nwindow = 9\nllm_model = "of-the-file"\n', encoding="utf-8")
    monkeypatch.setenv("COMMUNITREE_CONFIG", str(file))
    monkeypatch.setenv("COMMUNITREE_WINDOW", "11")
    settings = Settings()
    assert (settings.tenant, settings.window, settings.model("map").model) == ("acme", 11, "of-the-file")


def test_no_secret_shows() -> None:
    settings = Settings(
        redis_url="redis://:hush-1@h/0", s3_access_key="hush-2", s3_secret_key="hush-3", llm_api_key="hush-4"
    )
    shown = f"{settings!r} {settings} {settings.model('map')!r} {settings.model_dump()} {settings.model_dump_json()}"
    assert "hush" not in shown


def test_a_secret_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in (
        ("REDIS_URL", "redis://:hush-1@h/0"),
        ("S3_SECRET_KEY", "hush-2"),
        ("LLM_MAP_API_KEY", "hush-3"),
    ):
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
        monkeypatch.setenv(f"COMMUNITREE_{name}_FILE", str(tmp_path / name))
    settings = Settings()
    assert settings.redis_url.get_secret_value() == "redis://:hush-1@h/0"
    assert settings.s3_secret_key.get_secret_value() == "hush-2"
    assert settings.model("map").api_key.get_secret_value() == "hush-3"
    assert settings.model("reduce").api_key.get_secret_value() == ""
    assert "hush" not in f"{settings!r} {settings.model('map')!r}"


def test_a_secret_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COMMUNITREE_S3_SECRET_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(UsageError, match=r"COMMUNITREE_S3_SECRET_KEY_FILE names .*none"):
        Settings()
    (tmp_path / "none").write_text("hush-1")
    monkeypatch.setenv("COMMUNITREE_S3_SECRET_KEY", "hush-2")
    with pytest.raises(UsageError, match="both set") as twice:
        Settings()
    assert "hush" not in str(twice.value)


def test_headers_and_proxies_may_hold_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITREE_LLM_EXTRA_HEADERS", '{"Authorization": "hush-1"}')
    monkeypatch.setenv("COMMUNITREE_LLM_PROXY", "http://user:hush-2@proxy")
    settings = Settings()
    assert "hush" not in f"{settings!r} {settings} {settings.model('map')!r} {settings.model('map')}"


def test_every_field_of_a_model_can_be_set_for_all_stages() -> None:
    fields = {name.removeprefix("llm_") for name in Settings.model_fields if name.startswith("llm_")}
    assert fields == set(ModelSettings.model_fields)
    for name, info in ModelSettings.model_fields.items():
        assert Settings.model_fields[f"llm_{name}"].default == info.default, name


@pytest.mark.parametrize("tenant", ["", "a/b", "..", "a|b", "a:b", "x" * 64])
def test_a_tenant_cannot_leave_its_place(tenant: str) -> None:
    with pytest.raises(UsageError, match="COMMUNITREE_TENANT"):
        Settings(tenant=tenant)


def test_the_data_folder_follows_the_desktop_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings().home == tmp_path / "communitree"


@pytest.mark.parametrize(
    ("text", "why"), [(None, "No such file"), ("tenant = ", "it is no TOML: "), (b"\xff", "it is no TOML: ")]
)
def test_a_file_of_settings_that_cannot_be_read_is_named(
    text: str | bytes | None, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "e.toml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setenv("COMMUNITREE_CONFIG", str(file))
    with pytest.raises(UsageError, match=why) as caught:
        Settings()
    assert f"COMMUNITREE_CONFIG names {file}" in caught.value.message


def test_the_defaults_of_all_stages_are_those_of_one() -> None:
    """The one list of a model's fields is ModelSettings: COMMUNITREE_LLM_… and each stage's own have no other."""
    fields = {n.removeprefix("llm_"): f for n, f in Settings.model_fields.items() if n.startswith("llm_")}
    assert list(fields) == list(ModelSettings.model_fields)
    for name, field in ModelSettings.model_fields.items():
        assert fields[name].annotation == field.annotation, name
        assert fields[name].default == field.default, name
        assert fields[name].repr == field.repr, name


@pytest.mark.parametrize("name", ModelSettings.model_fields)
def test_each_field_of_a_model_can_be_set_for_one_stage(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "base_url": "http://h/v1", "json_mode": "text", "temperature": "1", "extra_headers": '{"a": "b"}',
        "extra_body": '{"a": 1}', "proxy": "http://h", "ca_bundle": __file__, "cache": "false",
    }  # fmt: skip
    monkeypatch.setenv(f"COMMUNITREE_LLM_MAP_{name.upper()}", given.get(name, "3"))
    settings = Settings()
    assert getattr(settings.model("map"), name) != getattr(settings.model("report"), name)
