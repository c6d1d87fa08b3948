"""What the names mean under which endpoints say how a reply ended.

The names of OpenAI, Anthropic, Gemini, Cohere, Bedrock, watsonx, TGI, llama.cpp, Together, DeepSeek, Zhipu and Qianfan,
as their documentation and compatible servers have them. A name that is not here proves nothing either way.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any


class Ending(Enum):
    """How a reply ended."""

    WHOLE = "whole"
    CUT = "cut"  # at a limit: what there is may be good, and more was to come
    REFUSED = "refused"  # by a filter, or by the model's own rules
    FAILED = "failed"  # something broke: the same request may succeed
    UNKNOWN = "unknown"  # no name, or one that nobody knows


#: Under this name an ending is counted that has none.
UNNAMED = "none"

_NAMES: dict[Ending, str] = {
    Ending.WHOLE: "stop eos eos_token end_turn end end_of_turn complete completed stop_sequence stop_token normal",
    Ending.CUT: (
        "length max_tokens max_length model_length max_output_tokens max_completion_tokens max_new_tokens token_limit "
        "tokens_limit context_length limit time_limit model_context_window_exceeded context_window_exceeded "
        "incomplete not_finished truncated error_limit"
    ),
    Ending.REFUSED: (
        "content_filter content_filtered filtered safety recitation prohibited_content blocklist spii sensitive "
        "refusal image_safety guardrail_intervened error_toxic moderation"
    ),
    Ending.FAILED: (
        "error insufficient_system_resource abort aborted cancelled canceled user_cancel network_error timeout "
        "server_error failed malformed_function_call unexpected_tool_call"
    ),
}
_MEANING = {name: ending for ending, names in _NAMES.items() for name in names.split()}
_PREFIX = re.compile(r"^(?:finish_?reason|stop_?reason)[._:]+")


def named(reason: Any) -> str:
    """Return the name under which an ending is counted: as it was sent, or `UNNAMED`."""
    return str(reason)[:40] if reason else UNNAMED


def ending(reason: Any) -> Ending:
    """Return what a `finish_reason` means, whatever its case and its hyphens."""
    if not reason:
        return Ending.UNKNOWN
    name = re.sub(r"[\s\-]+", "_", str(reason).strip().lower())
    return _MEANING.get(_PREFIX.sub("", name), Ending.UNKNOWN)
