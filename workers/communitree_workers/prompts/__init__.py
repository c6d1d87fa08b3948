"""Prompts are files: `<name>.<language>.md` beside this module, English and Chinese, replaceable for each corpus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from communitree_shared.contract.own_prompts import DATA_PLACEHOLDERS
from communitree_shared.errors import BadInput
from communitree_shared.languages import is_chinese, language_code

#: How an answer language is named in a prompt of each language.
_NAMES = {
    "en": {
        "en": "English",
        "zh": "Chinese",
        "zh-hant": "Traditional Chinese",
        "fr": "French",
        "de": "German",
        "es": "Spanish",
        "ja": "Japanese",
    },
    "zh": {
        "en": "英文",
        "zh": "中文",
        "zh-hant": "繁体中文",
        "fr": "法文",
        "de": "德文",
        "es": "西班牙文",
        "ja": "日文",
    },
}
#: Above the question, behind the data.
_QUESTION = {"en": "# Question", "zh": "# 问题"}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def load(name: str, language: str, overrides: Mapping[str, str]) -> str:
    """Return a prompt's text: the override of that name, else the file of the language, else the English file.

    Raises:
        BadInput: there is no prompt of that name.
    """
    if name in overrides:
        return overrides[name]
    for tongue in (file_language(language), "en"):
        text = _read(f"{name}.{tongue}.md")
        if text is not None:
            return text
    known = sorted({entry.name.split(".")[0] for entry in files(__name__).iterdir() if entry.name.endswith(".md")})
    raise BadInput(f"There is no prompt named {name!r}.", hint=f"Prompts: {', '.join(known)}.")


def filled(prompt: str, **values: object) -> str:
    """Return a prompt with its placeholders filled; other braces stay as they are.

    A template of GraphRAG's has a place for the data, which come in the next message.
    """
    known = {**dict.fromkeys(DATA_PLACEHOLDERS, "(see the next message)"), **values}
    return _PLACEHOLDER.sub(lambda found: str(known.get(found[1], found[0])), prompt)


def question_text(question: str, language: str) -> str:
    """Return a question below its heading: the end of a message whose data come first.

    Where the data are tables or lists, each of their lines is one row: none can pass for this heading.
    """
    return f"{_QUESTION[file_language(language)]}\n\n{question.strip()}"


def file_language(language: str) -> str:
    """Return the language of the prompt files that serve an answer language: `zh` for Chinese, else `en`."""
    return "zh" if is_chinese(language) else "en"


def language_name(language: str) -> str:
    """Return how a prompt names an answer language; one that is not known by any name is named as it was given."""
    code = language_code(language)
    return _NAMES[file_language(language)].get(code, code or "English")


@cache
def _read(file: str) -> str | None:
    entry = files(__name__).joinpath(file)
    return entry.read_text("utf-8") if entry.is_file() else None
