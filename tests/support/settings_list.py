"""The environment variables that `Settings` reads."""

from __future__ import annotations

from communitree_shared.contract import ask_defaults
from communitree_shared.settings import MODEL_STAGES, Settings

PREFIX = "COMMUNITREE_"


def variables() -> set[str]:
    """Return every variable: of each field, of each stage's own model, of each option of a question, and the file."""
    fields = set(Settings.model_fields)
    model = {name.removeprefix("llm_") for name in fields if name.startswith("llm_")}
    stages = {f"{PREFIX}LLM_{stage.upper()}_{name.upper()}" for stage in MODEL_STAGES for name in model}
    questions = {f"{ask_defaults.PREFIX}{name.upper()}" for name in ask_defaults.NAMES}
    return {f"{PREFIX}{name.upper()}" for name in fields} | stages | questions | {f"{PREFIX}CONFIG"}
