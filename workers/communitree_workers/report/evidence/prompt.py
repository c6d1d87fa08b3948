"""The chat messages and the JSON schema of one report call: instructions first, the evidence last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from communitree_shared import tokens
from communitree_shared.contract.options import ReportOptions
from communitree_shared.languages import is_chinese
from communitree_workers.prompts import language_name, load
from communitree_workers.report.records import LABELS, Evidence

PROMPT = "report"
#: The built-in prompt before this one: reports that were written with it are kept.
EARLIER = "earlier/report.1"

#: Tokens that chat formats add around each message, and around the whole.
_MESSAGE_TOKENS = 4
_CHAT_TOKENS = 3

#: Words of a report for each token of its evidence, and the fewest that one may have.
_WORDS_PER_TOKEN = 0.6
_FEWEST = 120
#: Shares below 2 to the power of minus this are told as less.
_SMALLEST = 10


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


def instructions(
    language: str, prompts: Mapping[str, str], words: int, tables: Iterable[str] = LABELS, *, earlier: bool = False
) -> Instructions:
    """Return the instructions in a language, with the corpus's own prompt where it has one.

    Such a prompt may name `{max_length}`, `{tables}` and `{language}`, and `{data}` where the evidence shall stand
    instead of in a message of its own. Templates tuned by GraphRAG (`{input_text}`, `{max_report_length}`, doubled
    braces) work too.

    Args:
        language: of the report.
        prompts: the corpus's own prompts, by name.
        words: the report's length.
        tables: kinds of evidence (`records.LABELS`) that there are.
        earlier: the built-in prompt is the one before.
    """
    template = prompts[PROMPT] if PROMPT in prompts else load(EARLIER if earlier else PROMPT, language, {})
    if "{input_text}" in template or "{max_report_length}" in template:
        template = template.replace("{input_text}", "{data}").replace("{max_report_length}", "{max_length}")
        template = template.replace("{{", "{").replace("}}", "}")
    if "{language}" not in template:
        template = _with_language(template)
    before, hole, after = template.partition("{data}")
    named = ("、" if is_chinese(language) else ", ").join(LABELS[kind] for kind in LABELS if kind in set(tables))
    values = {"max_length": str(words), "language": language_name(language), "tables": named}
    return Instructions(_filled(before, values), _filled(after, values), bool(hole))


def words_for(tokens: int, most: int) -> int:
    """Return how many words a report on evidence of so many tokens may have: in few steps, so that it seldom changes.

    `most`: the most there may be.
    """
    words = _FEWEST
    while 2 * words <= tokens * _WORDS_PER_TOKEN:
        words *= 2
    return most if most <= tokens * _WORDS_PER_TOKEN else min(words, most)


def share_line(share: float, language: str) -> str:
    """Return the first line of the evidence: a community's share (0–1) of the corpus, in powers of two."""
    halvings = round(-math.log2(share)) if share > 0 else _SMALLEST + 1
    part = 2 ** max(0, min(halvings, _SMALLEST))
    if is_chinese(language):
        told = f"不到语料的1/{part}" if halvings > _SMALLEST else f"约占语料的1/{part}"
        return f"该社区{told if halvings > 0 else '几乎包含整个语料'}。\n"
    told = f"less than 1/{part}" if halvings > _SMALLEST else f"about 1/{part}"
    return f"This community holds {told if halvings > 0 else 'nearly all'} of the corpus.\n"


def messages(evidence: Evidence, options: ReportOptions, prompts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the messages of the call, `[{"role", "content"}, …]`."""
    words = evidence.words or options.max_length
    static = instructions(evidence.language, prompts, words, [k for k, found in evidence.numbers.items() if found])
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


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replace `{name}`; other braces, as in JSON examples, stay."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
