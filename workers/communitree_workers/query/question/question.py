"""A question as the stages take it."""

from __future__ import annotations

from communitree_shared.contract.options import BatchOptions
from communitree_shared.errors import UsageError
from communitree_shared.tokens import count


def check_question(question: str, options: BatchOptions, encoding: str) -> None:
    """Refuse a question that is empty, or longer than the room kept for it.

    Raises:
        UsageError: with both numbers.
    """
    if not question.strip():
        raise UsageError("The question is empty.", hint="Give a question in words.")
    tokens = count(question, encoding)
    if tokens > options.reserve_tokens:
        raise UsageError(
            f"The question has {tokens} tokens; {options.reserve_tokens} are kept for it in every prompt.",
            hint="Shorten it, or raise --reserve-tokens (and --max-context-tokens with it).",
        )
