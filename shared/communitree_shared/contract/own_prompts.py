"""Prompts of a caller's own in place of the built-in ones: what each must have for its options to reach the model."""

from __future__ import annotations

from collections.abc import Mapping

from communitree_shared.errors import UsageError

#: Placeholders that the prompts of a question need.
_NEEDED: dict[str, tuple[str, ...]] = {
    "map": ("language", "max_length"),
    "reduce": ("language", "max_length", "response_type"),
    "reduce_part": ("language", "max_length"),
    "rate": (),
    "rewrite": (),
}  # fmt: skip
#: Where a template of GraphRAG's has its data. Such a template names no language; the question's own is answered in.
DATA_PLACEHOLDERS = ("context_data", "report_data")


def check_prompts(prompts: Mapping[str, str]) -> None:
    """Refuse prompts of a question without their placeholders: what these stand for would be lost in silence.

    Raises:
        UsageError: with the prompt and its placeholders named; also where there is no prompt of a name.
    """
    for name, text in prompts.items():
        if name not in _NEEDED:
            raise UsageError(f"There is no prompt {name!r} of a question.", hint=f"Prompts: {', '.join(_NEEDED)}.")
        graphrag = any(f"{{{data}}}" in text for data in DATA_PLACEHOLDERS)
        needed = [item for item in _NEEDED[name] if not (graphrag and item == "language")]
        missing = [f"{{{item}}}" for item in needed if f"{{{item}}}" not in text]
        if missing:
            raise UsageError(
                f"The prompt {name!r} has no {' and no '.join(missing)}.",
                hint=f"Put {', '.join(f'{{{item}}}' for item in needed)} where these belong; the data and the question "
                "come in the message behind it.",
            )
