"""Where settings come from beside plain variables: files of secrets, options of questions, a TOML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, TomlConfigSettingsSource

from communitree_shared.contract import ask_defaults
from communitree_shared.errors import UsageError


class SecretFiles(PydanticBaseSettingsSource):
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


class QuestionVariables(PydanticBaseSettingsSource):
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


def toml_file(settings_cls: type[BaseSettings], path: str) -> TomlConfigSettingsSource:
    """Return the settings of a file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with open(path, "rb"):  # one that is not there would be passed over
            return TomlConfigSettingsSource(settings_cls, Path(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is no TOML: {error}"
        raise UsageError(
            f"COMMUNITREE_CONFIG names {path}, which cannot be read: {why}.", hint="Mend the path, or unset it."
        ) from None
