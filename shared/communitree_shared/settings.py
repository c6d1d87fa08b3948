"""Settings of a process: environment variables `COMMUNITREE_…`, or a TOML file named by `COMMUNITREE_CONFIG`.

Environment wins over the file. Secrets never appear in `repr`, logs or errors; each may stand in a file of its own
(`COMMUNITREE_<NAME>_FILE`), as orchestrators hand them out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, Field, PrivateAttr, SecretStr, ValidationError, create_model, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from communitree_shared import setting_values
from communitree_shared.alive import data_home
from communitree_shared.contract import ask_defaults
from communitree_shared.contract.messages import MODEL_STAGES as MODEL_STAGES
from communitree_shared.contract.messages import ModelStage as ModelStage
from communitree_shared.redis_server import address
from communitree_shared.setting_sources import QuestionVariables, SecretFiles, toml_file

#: The built-in model: deterministic, needs no network.
EXTRACTIVE = "extractive"


#: Numbers that any store and clock takes: ten years are for ever.
_Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
_Bytes = Annotated[int, Field(ge=1, le=2**60)]
_Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 24 * 3600.0)]
_Patience = Annotated[float, Field(ge=0, le=10 * 365 * 24 * 3600.0)]
_Usd = Annotated[float, Field(ge=0, le=1e6)]
_Temperature = Annotated[float, Field(ge=0, le=2)]


class ModelSettings(BaseModel):
    """One stage's endpoint, model, limits and prices."""

    base_url: str = Field("", description="with its /v1")
    api_key: SecretStr = SecretStr("")
    model: str = EXTRACTIVE
    api_version: str = Field("", description="set: an Azure-style URL and `api-key` header")
    price_input: _Usd | None = Field(None, description="USD per million prompt tokens; None: unknown")
    price_output: _Usd | None = None
    price_cached: _Usd | None = Field(None, description="USD per million provider-cached prompt tokens")
    requests_per_minute: _Count | None = None
    tokens_per_minute: _Count | None = None
    concurrency: _Count | None = None
    timeout: _Seconds = Field(120.0, description="seconds of one try")
    tries: _Count = 6
    max_tokens: _Count | None = None
    temperature: _Temperature | None = None
    json_mode: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    context_tokens: _Count | None = None
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

    model_config = SettingsConfigDict(
        env_prefix=setting_values.PREFIX, extra="ignore", env_ignore_empty=True, allow_inf_nan=False
    )

    home: Path = Field(default_factory=data_home, description="the embedded stack's folder")
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
    s3_bucket: str = Field("communitree", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$")
    s3_region: str = Field("us-east-1", pattern=r"^([a-z0-9][a-z0-9_-]{0,62})?$")
    s3_secure: bool = False
    s3_prefix: str = Field("", pattern=r"^[A-Za-z0-9!_.*'()/-]{0,200}$")
    s3_ca_bundle: str = ""
    s3_create_bucket: bool = True
    # models: one default, and the same fields for one stage as COMMUNITREE_LLM_<STAGE>_<FIELD>
    llm_base_url: str = ""
    llm_api_key: SecretStr = SecretStr("")
    llm_model: str = EXTRACTIVE
    llm_api_version: str = ""
    llm_price_input: _Usd | None = None
    llm_price_output: _Usd | None = None
    llm_price_cached: _Usd | None = None
    llm_requests_per_minute: _Count | None = None
    llm_tokens_per_minute: _Count | None = None
    llm_concurrency: _Count | None = None
    llm_timeout: _Seconds = 120.0
    llm_tries: _Count = 6
    llm_max_tokens: _Count | None = None
    llm_temperature: _Temperature | None = None
    llm_json_mode: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    llm_context_tokens: _Count | None = None
    llm_extra_headers: dict[str, str] = Field({}, repr=False)
    llm_extra_body: dict[str, Any] = Field({}, repr=False)
    llm_proxy: str = Field("", repr=False)
    llm_ca_bundle: str = ""
    llm_cache: bool = True
    # questions: each option of QueryOptions as COMMUNITREE_ASK_<OPTION>
    ask: dict[str, Any] = {}
    # delivery (seconds unless said)
    visibility_timeout: _Seconds = 90.0
    lease: _Seconds = 15.0
    lease_renewal: _Seconds = 5.0
    reconciler_tick: _Seconds = 5.0
    max_attempts: _Count = 5
    refusal_patience: _Patience = 600.0
    map_batches_per_message: _Count = 16
    reports_per_message: _Count = 4
    local_units_per_message: _Count = 8
    window: _Count = Field(256, description="units of one job in the broker")
    bulk_window: _Count = 32
    max_open_jobs: _Count = Field(10_000, description="open jobs of one tenant")
    max_open_jobs_total: _Count = 100_000
    max_waiting_units: _Count = Field(2_000_000, description="units of one tenant's open jobs that have not ended")
    max_waiting_units_total: _Count = 10_000_000
    model_slots: _Count = Field(200, description="threads of a worker for model queues")
    cpu_slots: _Count = Field(default_factory=lambda: max(1, min(4, os.cpu_count() or 1)))
    job_ttl: _Seconds = Field(7 * 24 * 3600.0, description="how long an ended job's keys stay")
    answer_cache_ttl: _Seconds = 24 * 3600.0
    map_cache_ttl: _Seconds = 24 * 3600.0
    results_keep: _Count = Field(10_000, description="newest entries of a tenant's results that stay in any case")
    results_keep_unread: _Count = Field(250_000, description="entries that a consumer group has not acknowledged")
    results_keep_seconds: _Seconds = 7 * 24 * 3600.0
    dead_letters_keep: _Count = 10_000
    dead_letters_keep_seconds: _Seconds = 30 * 24 * 3600.0
    max_upload_bytes: _Bytes = 4 * 2**30
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"

    _models: dict[str, ModelSettings] = PrivateAttr(default_factory=dict)

    def __init__(self, **given: Any) -> None:
        """Read all settings, and look at them.

        Raises:
            UsageError: one is wrong; a line that names it.
        """
        with _said_in_a_line(type(self), setting_values.PREFIX):
            super().__init__(**given)
        self._look()
        for stage in MODEL_STAGES:
            self.model(stage)

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
        files = SecretFiles(settings_cls, "COMMUNITREE_")
        questions = QuestionVariables(settings_cls)
        sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings, files, questions)
        config = os.environ.get("COMMUNITREE_CONFIG")
        return (*sources, toml_file(settings_cls, config)) if config else sources

    @field_validator("*", mode="before")
    @classmethod
    def _trimmed(cls, given: Any) -> Any:
        return _trimmed(given)

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, given: Any) -> Any:
        return given.upper() if isinstance(given, str) else given

    @field_validator("ask")
    @classmethod
    def _known(cls, given: dict[str, Any]) -> dict[str, Any]:
        ask_defaults.read(given)
        return given

    def _look(self) -> None:
        """Look at what is more than a number or a word; take the scheme of the endpoint for what it says."""
        name = ""
        try:
            if self.s3_endpoint:
                name = "s3_endpoint"
                self.s3_endpoint, secure = setting_values.s3_endpoint(self.s3_endpoint)
                if secure is not None and "s3_secure" in self.model_fields_set and secure != self.s3_secure:
                    raise ValueError(f"says otherwise than COMMUNITREE_S3_SECURE={str(self.s3_secure).lower()}")
                self.s3_secure = self.s3_secure if secure is None else secure
            for name in ("redis_ca_bundle", "redis_certificate", "redis_private_key", "s3_ca_bundle"):
                if getattr(self, name):
                    setting_values.readable(getattr(self, name))
        except ValueError as error:
            raise setting_values.refusal(Settings, name, str(error), value=getattr(self, name)) from None
        if url := self.redis_url.get_secret_value():
            address.parse(url)

    def look_as_worker(self) -> None:
        """Look at the files that only workers need.

        Raises:
            UsageError: one cannot be read.
        """
        for stage in MODEL_STAGES:
            path = self.model(stage).ca_bundle
            try:
                if path:
                    setting_values.readable(path)
            except ValueError as error:
                of_stage = path != self.llm_ca_bundle
                prefix = f"{setting_values.PREFIX}LLM_{stage.upper()}_" if of_stage else setting_values.PREFIX
                model, name = (_StageOverrides, "ca_bundle") if of_stage else (Settings, "llm_ca_bundle")
                raise setting_values.refusal(model, name, str(error), value=path, prefix=prefix) from None

    def model(self, stage: ModelStage) -> ModelSettings:
        """Return the model settings of one stage: its own fields, else the default ones. Read once a process."""
        found = self._models.get(stage)
        if found is None:
            values: dict[str, Any] = {field: getattr(self, f"llm_{field}") for field in ModelSettings.model_fields}
            own = _StageOverrides.of(stage)
            found = ModelSettings.model_validate({**values, **own})
            _look_at_model(found, stage, own)
            self._models[stage] = found
        return found


def _look_at_model(model: ModelSettings, stage: str, own: dict[str, Any]) -> None:
    looks: dict[str, Callable[[Any], None]] = {
        "base_url": setting_values.http_url, "proxy": setting_values.http_url, "extra_headers": setting_values.headers,
    }  # fmt: skip
    for name, look in looks.items():
        value = getattr(model, name)
        try:
            if value:
                look(value)
        except ValueError as error:
            prefix = f"{setting_values.PREFIX}LLM_{stage.upper()}_" if name in own else f"{setting_values.PREFIX}LLM_"
            raise setting_values.refusal(ModelSettings, name, str(error), value=value, prefix=prefix) from None


class _OfStage(BaseSettings):
    """`COMMUNITREE_LLM_<STAGE>_<FIELD>`; only what is set counts."""

    model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _trimmed(cls, given: Any) -> Any:
        return _trimmed(given)

    @classmethod
    def of(cls, stage: str) -> dict[str, Any]:
        """Return the fields set for a stage."""
        prefix = f"{setting_values.PREFIX}LLM_{stage.upper()}_"
        with _said_in_a_line(cls, prefix):
            values = cls(_env_prefix=prefix)
        found = {name: getattr(values, name) for name in values.model_fields_set if getattr(values, name) is not None}
        return SecretFiles(cls, prefix)() | found


_fields: dict[str, Any] = {
    name: (Optional[field.rebuild_annotation()], None)  # noqa: UP045 - the annotation is a value here
    for name, field in ModelSettings.model_fields.items()
}
_StageOverrides = create_model("_StageOverrides", __base__=_OfStage, **_fields)


@contextlib.contextmanager
def _said_in_a_line(model: type[BaseSettings], prefix: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise setting_values.first_fault(model, error, prefix=prefix) from None
    except SettingsError as error:  # where JSON is wanted
        name = next(name for name in model.model_fields if f'"{name}"' in str(error))
        raise setting_values.refusal(model, name, "is no JSON object", prefix=prefix) from None


def _trimmed(given: Any) -> Any:
    """Return a value without the blanks around it: they come with files and copies, and belong to no setting."""
    text = given.get_secret_value() if isinstance(given, SecretStr) else given
    if not isinstance(text, str):
        return given
    if setting_values.has_control(text.strip()):
        raise PydanticCustomError("control", "control character")
    return SecretStr(text.strip()) if isinstance(given, SecretStr) else text.strip()
