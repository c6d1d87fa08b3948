"""What real endpoints are in the habit of doing, by name: one at a time, by a provider that is otherwise good."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

#: A thought with a rejected draft in it, of a map reply and of a text.
THOUGHT = (
    'The user wants themes. Draft: {"points": [{"description": "DRAFT that I reject", "score": 99, "reports": [1]}]}. '
    "No, wrong; let me count again. Secret chain of thought."
)


@dataclass(frozen=True)
class Habit:
    """One habit. What is not set is as a good provider does it.

    `before`, `after`: around the good reply. `text`: instead of it. `share`: so much of it only. `finish`: the
    `finish_reason`, None for none at all. `status` and `body`: a refusal, of all requests or only of prompts `above`
    the behaviour's limit of tokens. `special`: what the server does in a way of its own, by name.
    """

    before: str = ""
    after: str = ""
    text: str | None = None
    share: float = 1.0
    finish: str | None = "stop"
    status: int = 0
    body: Any = None
    above: bool = False
    special: str = ""

    @property
    def cuts(self) -> bool:
        """Whether less than the good reply comes."""
        return self.share < 1 or self.text is not None


def _refuses(status: int, message: str, *, above: bool = False, **error: Any) -> Habit:
    return Habit(status=status, body={"error": {"message": message, **error}}, above=above)


HABITS: dict[str, Habit] = {
    # thinking in the text
    "think": Habit(before=f"<think>\n{THOUGHT}\n</think>\n\n"),
    "think_no_open": Habit(before=f"{THOUGHT}\n</think>\n\n"),
    "think_unclosed": Habit(text=f"<think>\n{THOUGHT} Hmm, because", finish="length"),
    "think_unclosed_stop": Habit(text=f"<think>\n{THOUGHT} Hmm, because"),
    "harmony": Habit(
        before=f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>",
        after="<|return|>",
    ),
    "mistral": Habit(before=f"[THINK]{THOUGHT}[/THINK]"),
    "kimi": Habit(before=f"◁think▷{THOUGHT}◁/think▷"),
    "seed": Habit(before=f"<seed:think>{THOUGHT}</seed:think>\n"),
    "in_reasoning": Habit(special="in_reasoning"),
    # endings
    "finish_length": Habit(share=0.5, finish="length"),
    "finish_max_tokens": Habit(share=0.5, finish="MAX_TOKENS"),
    "finish_safety": Habit(share=0.5, finish="SAFETY"),
    "finish_content_filter": Habit(share=0.5, finish="content_filter"),
    "finish_error": Habit(share=0.5, finish="error"),
    "finish_no_resource": Habit(share=0.5, finish="insufficient_system_resource"),
    "finish_upper": Habit(finish="STOP"),
    "finish_unknown": Habit(finish="OTHER"),
    "finish_unknown_cut": Habit(share=0.5, finish="OTHER"),
    "finish_missing": Habit(finish=None),
    "finish_missing_cut": Habit(share=0.5, finish=None),
    "stop_cut": Habit(share=0.5),
    "empty": Habit(text=""),
    "choice_error": Habit(special="choice_error"),
    "stream_error": Habit(special="stream_error"),
    "stream_no_end": Habit(special="stream_no_end"),
    # instead of an answer, and around one
    "refusal": Habit(text="I'm sorry, but I can't assist with that."),
    "refusal_chinese": Habit(text="抱歉，我无法回答这个问题。"),
    "fenced": Habit(before="```markdown\n", after="\n```"),
    "in_an_object": Habit(special="in_an_object"),
    "strings": Habit(text='{"points": ["The bridge opened in 1931.", "Nothing else did."]}'),
    "chinese": Habit(text="大桥于1931年通车，此后港口一直繁荣。[Data: Reports (1)]"),
    # refusals
    "too_long": _refuses(
        400, "The decoder prompt (length 21535) is longer than the maximum model length of 16384.", above=True
    ),
    "too_long_413": _refuses(
        413, "Request too large for model `m` on tokens per minute (TPM): Limit 2500, Requested 3512, please reduce "
        "your message size and try again.", type="tokens", code="rate_limit_exceeded", above=True,
    ),
    "too_long_429": _refuses(
        429, "Request too large for m on tokens per min (TPM): Limit 2500, Requested 3512.", type="tokens",
        code="rate_limit_exceeded", above=True,
    ),
    "too_long_chinese": _refuses(400, "Prompt 超长", code="1261", above=True),
    "filtered": _refuses(
        400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        code="content_filter",
    ),
    "rate_limited_403": Habit(
        status=403,
        body={"code": 30001, "message": "RPM limit exceeded. Please complete identity verification.", "data": None},
    ),
    "unexplained": _refuses(400, "Bad Request"),
    "no_key": _refuses(401, "Incorrect API key provided"),
    "no_access": _refuses(403, "Your key has no access to this model"),
    "no_model": _refuses(404, "The model `m` does not exist", code="model_not_found"),
    "no_money": _refuses(429, "You exceeded your current quota", code="insufficient_quota"),
    "no_system": Habit(special="no_system"),
    "only_stream": Habit(special="only_stream"),
    "no_stream": Habit(special="no_stream"),
    "truncates": Habit(special="truncates"),
    "error_in_200": Habit(status=200, body={"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
    "redirects": Habit(special="redirects"),
}  # fmt: skip

_GO_ON = re.compile(r"^Your last reply broke off\.")


def continued(messages: list[dict[str, Any]]) -> str | None:
    """Return what has come of a reply that is to be gone on with, None where a request asks for no such thing."""
    if len(messages) > 2 and _GO_ON.match(str(messages[-1].get("content"))):
        return str(messages[-2].get("content"))
    return None


def system_refused(messages: list[dict[str, Any]]) -> bool:
    """Whether a model without a system role refuses these messages."""
    roles = [message.get("role") for message in messages]
    return "system" in roles or any(one == other for one, other in itertools.pairwise(roles))


#: Habits of what a question's replies say, and not of how an endpoint answers: told of by the tests of questions.
OF_QUESTIONS = frozenset(("strings", "chinese"))
