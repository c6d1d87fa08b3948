from __future__ import annotations

from typing import Any

import pytest

from communitree_shared.errors import UsageError
from communitree_shared.options import QueryOptions, SelectionOptions


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ({}, "auto"),
        ({"budget_tokens": 9}, "budget"),
        ({"budget_reports": 9}, "budget"),
        ({"budget_usd": 0.5}, "budget"),
        ({"coverage": 0.5}, "coverage"),
        ({"budget_tokens": None, "coverage": None}, "auto"),
        ({"strategy": "relevant", "budget_tokens": 9}, "relevant"),
        ({"strategy": "auto", "budget_usd": 0.5}, "auto"),
    ],
)
def test_a_size_alone_chooses_the_selection_that_keeps_to_it(given: dict[str, Any], strategy: str) -> None:
    chosen = SelectionOptions(**given)
    assert chosen.strategy == strategy
    chosen.check()
    assert QueryOptions.model_validate({"selection": given}).selection == chosen
    assert SelectionOptions.model_validate(chosen.model_dump()) == chosen


@pytest.mark.parametrize(
    ("given", "words", "remedy"),
    [
        ({"strategy": "auto", "budget_tokens": 9}, "budget_tokens goes not with strategy='auto'", "strategy='budget'"),
        ({"strategy": "auto", "budget_reports": 9}, "budget_reports", "leave out budget_reports"),
        ({"strategy": "leaves", "budget_tokens": 9}, "--budget-tokens goes not with --leaves", "Leave out --leaves"),
        ({"coverage": 0.5, "budget_tokens": 9}, "--budget-tokens goes not with --coverage", "Leave out --coverage"),
        ({"strategy": "budget", "budget_tokens": 9, "coverage": 0.5}, "coverage", "strategy='coverage'"),
        ({"level": 1}, "level goes not with strategy='auto'", "strategy='frontier' or strategy='levels'"),
        ({"strategy": "leaves", "level": 1}, "level goes not with strategy='leaves'", "leave out level"),
    ],
)
def test_a_size_beside_a_selection_that_ignores_it_is_refused(given: dict[str, Any], words: str, remedy: str) -> None:
    stored = SelectionOptions(**given)  # a stored request stays readable
    with pytest.raises(UsageError) as caught:
        stored.check()
    assert words in caught.value.message
    assert remedy in caught.value.hint
