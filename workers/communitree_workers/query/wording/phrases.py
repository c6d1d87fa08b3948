"""Sentences that people read in an answer and its account, in English and Chinese."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from communitree_shared.contract.strategies import STRATEGIES
from communitree_shared.languages import is_chinese
from communitree_shared.wording import worded


@cache
def phrases() -> dict[str, tuple[str, str]]:
    """Return key → (English, Chinese): those of `phrases.toml`, and as `why.…` those that selections declare."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    declared = {f"why.{key}": said for strategy in STRATEGIES.values() for key, said in strategy.says.items()}
    return {**{key: (english, chinese) for key, (english, chinese) in table.items()}, **declared}


def say(key: str, language: str, /, **values: Any) -> str:
    """Return a phrase in `en` or `zh`; `{n:one|many}` in it is the number n with the word that fits it.

    Raises:
        KeyError: there is no such phrase, or a value it needs is missing.
    """
    return worded(phrases()[key], is_chinese(language), values)
