"""The price of an extraction before it is asked."""

from __future__ import annotations

import pytest

from communitree_shared import tokens
from communitree_shared.contract.options import ExtractOptions
from communitree_workers.corpus.extraction.estimate import extraction_usage
from communitree_workers.corpus.extraction.model import graph_messages

ENCODING = "o200k_base"


def test_a_call_for_each_unit_gleaning_and_claim() -> None:
    options = ExtractOptions(max_gleanings=2, claims=True)
    assert extraction_usage([1200, 300], options, "en", {}, ENCODING).calls == 8
    assert extraction_usage([], options, "en", {}, ENCODING).calls == 0
    assert extraction_usage([1200], ExtractOptions(max_gleanings=0), "en", {}, ENCODING).calls == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_prompt_is_counted_as_it_is_sent(language: str) -> None:
    text = "Ann met Ben in Rome. " * 40
    options = ExtractOptions(max_gleanings=0)
    sent = sum(tokens.count(m["content"], ENCODING) for m in graph_messages(text, options, language, {}))
    planned = extraction_usage([tokens.count(text, ENCODING)], options, language, {}, ENCODING)
    assert planned.prompt_tokens == pytest.approx(sent, abs=2)


def test_a_gleaning_sends_what_was_said_again_and_a_prompt_of_the_callers_counts() -> None:
    once = extraction_usage([1000], ExtractOptions(max_gleanings=0), "en", {}, ENCODING)
    twice = extraction_usage([1000], ExtractOptions(max_gleanings=1), "en", {}, ENCODING)
    assert twice.prompt_tokens > 2 * once.prompt_tokens + once.output_tokens
    short = extraction_usage([1000], ExtractOptions(max_gleanings=0), "en", {"extract": "Find."}, ENCODING)
    assert short.prompt_tokens == pytest.approx(1001, abs=2)
