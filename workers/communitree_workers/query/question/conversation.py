"""A conversation's latest question, rewritten once to stand alone: batches and caches stay the same for all askers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from communitree_shared.contract.options import Turn
from communitree_workers.prompts import file_language, load
from communitree_workers.query.view.cells import flatten

#: Each turn is one line, so that no line of it can pass for the latest question.
_ROLES = {"en": {"user": "Question", "assistant": "Answer"}, "zh": {"user": "问", "assistant": "答"}}
_LATEST = {"en": "Latest question", "zh": "最新的问题"}
#: Characters of a turn that the rewriting sees; an answer's end adds little to what "it" means.
_LONGEST_TURN = 1500


def last_turns(history: Sequence[Turn], turns: int) -> list[Turn]:
    """Return the last `turns` questions with their answers; the oldest fall away, never the newest."""
    starts = [i for i, turn in enumerate(history) if turn.role == "user"]
    if turns <= 0 or not starts:
        return []
    return list(history[starts[-turns] if len(starts) >= turns else 0 :])


def rewrite_messages(
    question: str, history: Sequence[Turn], language: str, prompts: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the messages that ask for the question alone."""
    tongue = file_language(language)
    lines = [f"{_ROLES[tongue][turn.role]}: {flatten(turn.content)[:_LONGEST_TURN]}" for turn in history]
    lines.append(f"{_LATEST[tongue]}: {flatten(question)}")
    return [
        {"role": "system", "content": load("rewrite", language, prompts).strip()},
        {"role": "user", "content": "\n\n".join(lines)},
    ]


def parse_rewrite(text: str, question: str) -> str:
    """Return the rewritten question, or the question as it was where the reply is none."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    line = lines[-1] if lines else ""
    for label in (*_LATEST.values(), "Question", "Rewritten question", "问题", "改写后的问题"):
        for colon in (":", "："):
            line = line.removeprefix(label + colon).strip()
    line = line.strip("\"'“”「」 ")
    return line if line and len(line) <= 4 * len(question) + 400 else question
