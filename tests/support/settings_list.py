"""The environment variables that `Settings` reads."""

from __future__ import annotations

from communitree_shared.settings import MODEL_STAGES, Settings

PREFIX = "COMMUNITREE_"


def variables() -> set[str]:
    """Return every variable: of each field, of each stage's own model, and the file's name."""
    fields = set(Settings.model_fields)
    model = {name.removeprefix("llm_") for name in fields if name.startswith("llm_")}
    stages = {f"{PREFIX}LLM_{stage.upper()}_{name.upper()}" for stage in MODEL_STAGES for name in model}
    return {f"{PREFIX}{name.upper()}" for name in fields} | stages | {f"{PREFIX}CONFIG"}
