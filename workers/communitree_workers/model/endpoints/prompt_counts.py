"""Whether a server read all of a prompt: its count of tokens against ours.

Some servers cut a prompt that is longer than their context and say nothing of it (Ollama does); `usage.prompt_tokens`
alone tells. Tokenisers differ, so what is far below is measured by what the same endpoint counted for
other prompts; and a server that reuses what it computed before may count only what was new, so a low count that a
prefix shared with an earlier prompt explains proves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from communitree_workers.model.chat import Message

#: No server's context is shorter; below it, every count is a good one to learn from.
SHORTEST = 700
#: A server's count may be this share of what is expected of it, and be right.
FAR_BELOW = 0.75
#: The least share of our own count that any tokeniser in use needs, by script: before anything was learned.
_LEAST = {"latin": 0.7, "other": 0.3}
#: Good calls before their ratio counts, and how many of them are kept.
_ENOUGH, _MOST = 3, 60
#: Earlier prompts of an endpoint that are kept for their beginnings.
_PROMPTS = 64


@dataclass(slots=True)
class _Known:
    """What is known of one endpoint and model."""

    ratios: dict[str, deque[float]] = field(default_factory=dict)
    prompts: deque[str] = field(default_factory=lambda: deque(maxlen=_PROMPTS))


class PromptCounts:
    """Counts of prompts by endpoint and model; kept in the process."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def read_all(self, kind: str, messages: Sequence[Message], ours: int, counted: bool, theirs: int) -> bool:
        """Return whether a server read all of a prompt, as far as its count can tell, and learn from it if so.

        `kind`: the endpoint and model. `ours`: our own count, `counted` and not guessed from characters. `theirs`: the
        server's, with what it took from a cache; 0 where it tells nothing, which proves nothing.
        """
        prompt = "\0".join(message["content"] for message in messages)
        known = self._known.setdefault(kind, _Known())
        earlier = list(known.prompts)
        known.prompts.append(prompt)
        if theirs <= 0 or ours <= 0:
            return True
        script = _script(prompt)
        ratios = known.ratios.setdefault(f"{script} {counted}", deque(maxlen=_MOST))
        ratio = theirs / ours
        expected = FAR_BELOW * median(ratios) if len(ratios) >= _ENOUGH else _LEAST[script] * (1.0 if counted else 0.8)
        if ours >= SHORTEST and ratio < expected:
            shared = max((_shared(prompt, other) for other in earlier), default=0)
            return ratio + shared / len(prompt) >= expected
        ratios.append(ratio)
        return True


def _shared(one: str, other: str) -> int:
    """Characters of the beginning that two prompts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.startswith(other[:middle]) else (low, middle - 1)
    return low


def _script(prompt: str) -> str:
    """Tokenisers agree on Latin text within a fifth, and on other scripts hardly at all."""
    return "other" if len(prompt.encode()) > 1.3 * len(prompt) else "latin"
