"""What stands around the table of every batch: the map prompt's rules, the overview, the headings.

It does not depend on the question, so its tokens are counted before one is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from communitree_shared.contract.options import AnswerOptions, QueryOptions
from communitree_shared.languages import language_code
from communitree_shared.tokens import DEFAULT_ENCODING, count
from communitree_workers.prompts import file_language, filled, language_name, load, question_text
from communitree_workers.query.question.question import RowKind, context_name
from communitree_workers.query.view.corpus_view import CorpusView

#: Tokens that chat formats put around two messages.
_CHAT_OVERHEAD = 16
#: What the rules say of the rows that all readers score: a line, and a member of the reply.
_ABOUT_ANCHORS = re.compile(r'^- .*\{anchors\}.*\n|, "overview": \[[^\]\n]*\]', re.MULTILINE)
_HEADINGS = {"en": ("# Overview", "# Table: {name}"), "zh": ("# 概览", "# 表格：{name}")}


@dataclass(frozen=True)
class Frame:
    """What stands around the table of every batch. `tokens`: of all that, overview included, question not.

    `anchors`: ids of the overview's rows that are scored. `kind`: what the table's rows are. `encoding`: of all counts.
    """

    tokens: int
    overview: str = ""
    anchors: Sequence[int] = ()
    kind: RowKind = "reports"
    encoding: str = DEFAULT_ENCODING


def frame_of(view: CorpusView, options: QueryOptions, kind: RowKind) -> Frame:
    """Return what stands around the tables of a question under these options."""
    overview, anchors = view.overview.render(options.batch, view.encoding)
    name = context_name(kind, options.batch)
    tokens = static_tokens(overview, anchors, options.answer, options.prompts, name, view.encoding)
    return Frame(tokens, overview, anchors, kind, view.encoding)


def rules_text(anchors: Sequence[int], options: AnswerOptions, language: str, prompts: Mapping[str, str]) -> str:
    """Return the system message: how to read. What it says of the overview's rows is left out where none are scored."""
    rules = load("map", language, prompts)
    if not anchors:
        rules = _ABOUT_ANCHORS.sub("", rules)
    return filled(
        rules, anchors=", ".join(map(str, anchors)) or "–", max_length=options.map_max_length,
        language=language_name(language),
    ).strip()  # fmt: skip


def data_text(overview: str, language: str, name: str) -> str:
    """Return the user message up to the table."""
    above, table = _HEADINGS[file_language(language)]
    parts = [f"{above}\n\n{overview.strip()}"] if overview else []
    return "\n\n".join([*parts, table.format(name=name) + "\n\n"])


def static_tokens(
    overview: str,
    anchors: list[int],
    options: AnswerOptions,
    prompts: Mapping[str, str],
    name: str,
    encoding: str,
    languages: tuple[str, ...] = ("en", "zh"),
) -> int:
    """Return the most tokens the prompt around the table can have, whatever the question's language."""
    if (code := language_code(options.language)) and code not in languages:
        languages = (*languages, code)
    texts = [
        rules_text(anchors, options, language, prompts) + "\n" + data_text(overview, language, name)
        + question_text("", language)
        for language in languages
    ]  # fmt: skip
    return max(count(text, encoding) for text in texts) + _CHAT_OVERHEAD
