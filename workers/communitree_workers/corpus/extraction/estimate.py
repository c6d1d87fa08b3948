"""What extraction by a model would cost, before it is asked: prompts counted, replies as long as they usually are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from communitree_shared import tokens
from communitree_shared.contract.options import ExtractOptions
from communitree_shared.contract.results import Usage
from communitree_workers.corpus.extraction.model import claim_messages, graph_messages
from communitree_workers.corpus.extraction.reply import Found
from communitree_workers.prompts import load

#: Tokens of a reply for each token of text, from an index of 42 text units made by a large model: 18.5 entities,
#: 26 relationships and 10 claims a unit of 1,197 tokens. A gleaning finds about a third as much again.
REPLY, GLEANED, CLAIMED = 1.25, 0.4, 0.8
#: Tokens of the list of entities that a request for claims carries, for each token of text.
LISTED = 0.08


def extraction_usage(
    unit_tokens: Sequence[int], options: ExtractOptions, language: str, prompts: Mapping[str, str], encoding: str
) -> Usage:
    """Return calls and tokens of the extraction of text units with so many tokens each; its price is set by the caller.

    Summaries of long descriptions come on top: their number shows only in what was extracted.
    """

    def static(messages: list[dict[str, str]]) -> int:
        return sum(tokens.count(message["content"], encoding) for message in messages)

    asked = static(graph_messages("", options, language, prompts))
    again = tokens.count(load("gleaning", language, prompts), encoding)
    claims = static(claim_messages("", Found(), options, language, prompts))
    usage = Usage(usd=None)
    for size in unit_tokens:
        prompt, reply = asked + size, round(REPLY * size)
        calls = [(prompt, reply)]
        for _ in range(options.max_gleanings):  # a conversation: what was said before is sent again
            prompt, reply = prompt + reply + again, round(GLEANED * size)
            calls.append((prompt, reply))
        if options.claims:
            calls.append((claims + size + round(LISTED * size), round(CLAIMED * size)))
        usage.calls += len(calls)
        usage.prompt_tokens += sum(prompt for prompt, _ in calls)
        usage.output_tokens += sum(reply for _, reply in calls)
    return usage
