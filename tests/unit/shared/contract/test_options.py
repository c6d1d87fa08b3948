from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from communitree_shared.contract.options import IndexOptions, QueryOptions, SelectionOptions, fault
from communitree_shared.errors import UsageError


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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"strategy": "relevant", "keep_parent": True}, "--keep-parent is for --dynamic: it would be ignored with --"),
        ({"strategy": "leaves", "stable": True}, "--stable is for a budget: it would be ignored with --leaves"),
        ({"threshold": 2}, "--threshold is for --relevant or --dynamic: it would be ignored."),
        ({"budget_tokens": 9, "audit_pruned": 0.5}, "--audit-pruned is for --relevant: it would be ignored with a bud"),
        ({"strategy": "dynamic", "max_depth": 3}, "--max-depth is for --relevant"),
        ({"strategy": "leaves", "auto_tokens": 9}, "--auto-tokens is for a question without a selection: it would be"),
        ({"strategy": "texts", "min_community_rank": 3.0}, "--min-community-rank is for reports, not for text units"),
    ],
)
def test_an_option_that_the_selection_would_ignore_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        SelectionOptions(**given).check()
    assert words in caught.value.message
    SelectionOptions().check()


@pytest.mark.parametrize(
    ("section", "name", "value", "range_"),
    [
        ("answer", "reduce_max_length", -3, "5 to 1,000,000"),
        ("answer", "map_max_length", 0, "5 to 1,000,000"),
        ("answer", "map_temperature", -5, "0 to 2"),
        ("selection", "auto_tokens", 0, "at least 1"),
        ("selection", "auto_tokens", -5, "at least 1"),
        ("selection", "num_repeats", 0, "1 to 100"),
        ("selection", "candidates_per_call", 0, "1 to 100"),
        ("selection", "max_depth", -1, "at least 0"),
        ("selection", "threshold", 6, "0 to 5"),
        ("selection", "coverage", 0, "above 0, at most 1"),
        ("selection", "level", 99999999999999999999, "0 to 2,147,483,647"),
        ("batch", "anchors", -1, "at least 0"),
        ("batch", "overview_tokens", -5, "at least 0"),
        ("", "history_turns", -1, "at least 0"),
        ("", "deadline_seconds", float("inf"), "above 0, at most 2,592,000"),
    ],
)
def test_a_number_out_of_range_is_refused_with_its_range(section: str, name: str, value: Any, range_: str) -> None:
    with pytest.raises(ValidationError) as caught:
        QueryOptions.model_validate({section: {name: value}} if section else {name: value})
    path, wrong = fault(QueryOptions, caught.value)
    assert path == ((section, name) if section else (name,))
    assert wrong == f"{value} is out of range: {range_}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"again": "j", "selection": {"strategy": "leaves"}}, "--leaves goes not with --again"),
        ({"again": "j", "selection": {"budget_tokens": 9}}, "--budget-tokens goes not with --again"),
        ({"again": "j", "selection": {"min_community_rank": 2}}, "--min-community-rank goes not with --again"),
        ({"selection": {"strategy": "coverage"}}, "needs a share"),
        ({"selection": {"strategy": "budget"}}, "needs a budget"),
        ({"batch": {"reserve_tokens": 900, "max_context_tokens": 900}}, "leaves nothing of --max-context-tokens 900"),
    ],
)
def test_options_that_go_not_together_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        QueryOptions.model_validate(given).check()
    assert words in caught.value.message


def test_money_is_a_ceiling_beside_silent_reports() -> None:
    QueryOptions.model_validate({"again": "j", "selection": {"budget_usd": 1}}).check()
    QueryOptions().check()


@pytest.mark.parametrize(
    ("model", "given", "path", "words"),
    [
        (QueryOptions, {"selection": {"stratgy": "leaves"}}, "selection.stratgy", "did you mean 'strategy'?"),
        (QueryOptions, {"nonsense": 1}, "nonsense", "there is no such name"),
        (QueryOptions, {"history": [{"role": "user", "content": "x", "name": "y"}]}, "history.0.name", "no such name"),
        (IndexOptions, {"cluster": {"max_cluster": 5}}, "cluster.max_cluster", "did you mean 'max_cluster_size'?"),
    ],
)
def test_a_misspelt_name_is_refused_where_it_is_written_and_passed_over_where_it_is_stored(
    model: type[QueryOptions] | type[IndexOptions], given: dict[str, Any], path: str, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model(**given)
    where, wrong = fault(model, caught.value)
    assert (".".join(where), words in wrong) == (path, True)
    assert model.stored({**given, "history": []}) == model()  # by another release
