"""Settings of a process: environment variables `COMMUNITREE_…`, or a TOML file named by `COMMUNITREE_CONFIG`.

Environment wins over the file. Secrets never appear in `repr`, logs or errors; each may stand in a file of its own
(`COMMUNITREE_<NAME>_FILE`), as orchestrators hand them out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, Optional

from pydantic import BaseModel, Field, PrivateAttr, SecretStr, create_model, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from communitree_shared.contract import ask_defaults
from communitree_shared.contract.messages import MODEL_STAGES as MODEL_STAGES
from communitree_shared.contract.messages import ModelStage as ModelStage
from communitree_shared.errors import UsageError

#: The built-in model: deterministic, needs no network.
EXTRACTIVE = "extractive"


class ModelSettings(BaseModel):
    """One stage's endpoint, model, limits and prices."""

    base_url: str = Field("", description="with its /v1")
    api_key: SecretStr = SecretStr("")
    model: str = EXTRACTIVE
    api_version: str = Field("", description="set: an Azure-style URL and `api-key` header")
    price_input: float | None = Field(None, description="USD per million prompt tokens; None: unknown")
    price_output: float | None = None
    price_cached: float | None = Field(None, description="USD per million provider-cached prompt tokens")
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    timeout: float = Field(120.0, description="seconds of one try")
    tries: int = Field(6, ge=1)
    max_tokens: int | None = None
    temperature: float | None = None
    json_mode: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    context_tokens: int | None = None
    extra_headers: dict[str, str] = Field({}, repr=False)
    extra_body: dict[str, Any] = Field({}, repr=False)
    proxy: str = Field("", repr=False)
    ca_bundle: str = ""
    cache: bool = True

    @property
    def built_in(self) -> bool:
        """Whether this is the built-in `extractive` model."""
        return self.model == EXTRACTIVE


class Settings(BaseSettings):
    """All settings of a process; a worker's and a client's are the same class."""

    model_config = SettingsConfigDict(env_prefix="COMMUNITREE_", extra="ignore", env_ignore_empty=True)

    home: Path = Field(default_factory=lambda: _data_home() / "communitree", description="the embedded stack's folder")
    tenant: str = Field("default", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    # servers; unset: those of the embedded stack that runs on `home`
    redis_url: SecretStr = SecretStr("")
    redis_ca_bundle: str = ""
    redis_certificate: str = ""
    redis_private_key: str = ""
    redis_sentinel_password: SecretStr = SecretStr("")
    s3_endpoint: str = ""
    s3_access_key: SecretStr = SecretStr("")
    s3_secret_key: SecretStr = SecretStr("")
    s3_bucket: str = Field("communitree", min_length=3)
    s3_region: str = "us-east-1"
    s3_secure: bool = False
    s3_prefix: str = ""
    s3_ca_bundle: str = ""
    s3_create_bucket: bool = True
    # models: one default, and the same fields for one stage as COMMUNITREE_LLM_<STAGE>_<FIELD>
    llm_base_url: str = ""
    llm_api_key: SecretStr = SecretStr("")
    llm_model: str = EXTRACTIVE
    llm_api_version: str = ""
    llm_price_input: float | None = None
    llm_price_output: float | None = None
    llm_price_cached: float | None = None
    llm_requests_per_minute: int | None = None
    llm_tokens_per_minute: int | None = None
    llm_concurrency: int | None = None
    llm_timeout: float = 120.0
    llm_tries: int = 6
    llm_max_tokens: int | None = None
    llm_temperature: float | None = None
    llm_json_mode: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    llm_context_tokens: int | None = None
    llm_extra_headers: dict[str, str] = Field({}, repr=False)
    llm_extra_body: dict[str, Any] = Field({}, repr=False)
    llm_proxy: str = Field("", repr=False)
    llm_ca_bundle: str = ""
    llm_cache: bool = True
    # questions: each option of QueryOptions as COMMUNITREE_ASK_<OPTION>
    ask: dict[str, Any] = {}
    # delivery (seconds unless said)
    visibility_timeout: float = 90.0
    lease: float = 15.0
    lease_renewal: float = 5.0
    reconciler_tick: float = 5.0
    max_attempts: int = 5
    refusal_patience: float = 600.0
    map_batches_per_message: int = 16
    reports_per_message: int = Field(4, ge=1)
    local_units_per_message: int = 8
    window: int = Field(256, description="units of one job in the broker")
    bulk_window: int = 32
    max_open_jobs: int = Field(10_000, description="open jobs of one tenant")
    max_open_jobs_total: int = 100_000
    max_waiting_units: int = Field(2_000_000, description="units of one tenant's open jobs that have not ended")
    max_waiting_units_total: int = 10_000_000
    model_slots: int = Field(200, description="threads of a worker for model queues")
    cpu_slots: int = Field(default_factory=lambda: max(1, min(4, os.cpu_count() or 1)))
    job_ttl: float = Field(7 * 24 * 3600.0, description="how long an ended job's keys stay")
    answer_cache_ttl: float = 24 * 3600.0
    map_cache_ttl: float = 24 * 3600.0
    max_upload_bytes: int = 4 * 2**30
    log_level: str = "INFO"

    _models: dict[str, ModelSettings] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment before the TOML file."""
        files = _SecretFiles(settings_cls, "COMMUNITREE_")
        questions = _QuestionVariables(settings_cls)
        sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings, files, questions)
        config = os.environ.get("COMMUNITREE_CONFIG")
        return (*sources, _file(settings_cls, config)) if config else sources

    @field_validator("ask")
    @classmethod
    def _known(cls, given: dict[str, Any]) -> dict[str, Any]:
        ask_defaults.read(given)
        return given

    def model(self, stage: ModelStage) -> ModelSettings:
        """Return the model settings of one stage: its own fields, else the default ones. Read once a process."""
        found = self._models.get(stage)
        if found is None:
            values: dict[str, Any] = {field: getattr(self, f"llm_{field}") for field in ModelSettings.model_fields}
            values.update(_StageOverrides.of(stage))
            found = self._models[stage] = ModelSettings.model_validate(values)
        return found


class _OfStage(BaseSettings):
    """`COMMUNITREE_LLM_<STAGE>_<FIELD>`; only what is set counts."""

    model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True)

    @classmethod
    def of(cls, stage: str) -> dict[str, Any]:
        """Return the fields set for a stage."""
        prefix = f"COMMUNITREE_LLM_{stage.upper()}_"
        values = cls(_env_prefix=prefix)
        found = {name: getattr(values, name) for name in values.model_fields_set if getattr(values, name) is not None}
        return _SecretFiles(cls, prefix)() | found


_fields: dict[str, Any] = {
    name: (Optional[field.rebuild_annotation()], None)  # noqa: UP045 - the annotation is a value here
    for name, field in ModelSettings.model_fields.items()
}
_StageOverrides = create_model("_StageOverrides", __base__=_OfStage, **_fields)


class _SecretFiles(PydanticBaseSettingsSource):
    """`<PREFIX><NAME>_FILE` for every secret: the file's text, without the newline at its end."""

    def __init__(self, settings_cls: type[BaseSettings], prefix: str) -> None:
        super().__init__(settings_cls)
        self._prefix = prefix

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the text of a secret's file; None where none is named.

        Raises:
            UsageError: it cannot be read, or the secret is given twice. The message holds no secret.
        """
        name = f"{self._prefix}{field_name.upper()}"
        path = os.environ.get(f"{name}_FILE", "")
        if not path or "SecretStr" not in str(field.annotation):
            return None, field_name, False
        if os.environ.get(name):
            raise UsageError(f"{name} and {name}_FILE are both set.", hint="Set one of them.")
        try:
            return Path(path).read_text(encoding="utf-8").rstrip("\r\n"), field_name, False
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise UsageError(f"{name}_FILE names {path}, which cannot be read: {why}.") from None

    def __call__(self) -> dict[str, Any]:
        """Return the secrets that stand in files."""
        found = {n: self.get_field_value(f, n)[0] for n, f in self.settings_cls.model_fields.items()}
        return {name: SecretStr(value) for name, value in found.items() if value is not None}


class _QuestionVariables(PydanticBaseSettingsSource):
    """`COMMUNITREE_ASK_<OPTION>`: what is set, by the option's name."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return all of them for the field `ask`."""
        prefix = ask_defaults.PREFIX
        found = {
            n.upper().removeprefix(prefix).lower(): v
            for n, v in os.environ.items()
            if n.upper().startswith(prefix) and v
        }
        return found if field_name == "ask" and found else None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the field `ask`, where any variable is set."""
        found, name, _ = self.get_field_value(self.settings_cls.model_fields["ask"], "ask")
        return {} if found is None else {name: found}


def _file(settings_cls: type[BaseSettings], path: str) -> TomlConfigSettingsSource:
    try:
        with open(path, "rb"):  # one that is not there would be passed over
            return TomlConfigSettingsSource(settings_cls, Path(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is no TOML: {error}"
        raise UsageError(
            f"COMMUNITREE_CONFIG names {path}, which cannot be read: {why}.", hint="Mend the path, or unset it."
        ) from None


def _data_home() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
