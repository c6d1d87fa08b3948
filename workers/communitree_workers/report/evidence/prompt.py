"""The chat messages and the JSON schema of one report call: instructions first, the evidence last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from communitree_shared import tokens
from communitree_shared.contract.options import ReportOptions
from communitree_workers.prompts import language_name, load
from communitree_workers.report.records import Evidence

PROMPT = "report"

#: Tokens that chat formats add around each message, and around the whole.
_MESSAGE_TOKENS = 4
_CHAT_TOKENS = 3


@dataclass(frozen=True)
class Instructions:
    """The static part of a report prompt. `after` is text behind the data, in prompts that hold a place for it."""

    before: str
    after: str
    one_message: bool

    def tokens(self, encoding: str) -> int:
        """Return the tokens of the prompt without its data, what chat formats add included."""
        # Text that is glued to the data may cost one token more at each seam than it does alone.
        around = _CHAT_TOKENS + (_MESSAGE_TOKENS + 2 if self.one_message else 2 * _MESSAGE_TOKENS)
        return tokens.count(self.before, encoding) + tokens.count(self.after, encoding) + around


def instructions(options: ReportOptions, language: str, prompts: Mapping[str, str]) -> Instructions:
    """Return the instructions in a language, with the corpus's own prompt where it has one.

    Such a prompt may name `{max_length}` and `{language}`, and `{data}` where the evidence shall stand instead of in a
    message of its own. Templates tuned by GraphRAG (`{input_text}`, `{max_report_length}`, doubled braces) work too.
    """
    template = load(PROMPT, language, prompts)
    if "{input_text}" in template or "{max_report_length}" in template:
        template = template.replace("{input_text}", "{data}").replace("{max_report_length}", "{max_length}")
        template = template.replace("{{", "{").replace("}}", "}")
    if "{language}" not in template:
        template = _with_language(template)
    before, hole, after = template.partition("{data}")
    return Instructions(_filled(before, options, language), _filled(after, options, language), bool(hole))


def messages(evidence: Evidence, options: ReportOptions, prompts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the messages of the call, `[{"role", "content"}, …]`."""
    static = instructions(options, evidence.language, prompts)
    if static.one_message:
        return [{"role": "user", "content": static.before + evidence.data + static.after}]
    return [{"role": "system", "content": static.before}, {"role": "user", "content": evidence.data}]


def schema() -> dict[str, Any]:
    """Return the JSON schema of a reply, for endpoints that take one. The limits stop a model that runs on."""

    def text(limit: int) -> dict[str, Any]:
        return {"type": "string", "maxLength": limit}

    finding = {
        "type": "object",
        "properties": {"summary": text(1_000), "explanation": text(8_000)},
        "required": ["summary", "explanation"],
        "additionalProperties": False,
    }
    properties = {
        "title": text(300),
        "summary": text(8_000),
        "rating": {"type": "number", "minimum": 0, "maximum": 10},
        "rating_explanation": text(1_000),
        "findings": {"type": "array", "items": finding, "maxItems": 20},
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _with_language(template: str) -> str:
    # Before the data, so that the static part stays one prefix for provider caches.
    before, hole, after = template.partition("{data}")
    return f"{before.rstrip()}\n\nWrite in {{language}}.\n{hole}{after}"


def _filled(text: str, options: ReportOptions, language: str) -> str:
    return text.replace("{max_length}", str(options.max_length)).replace("{language}", language_name(language))
