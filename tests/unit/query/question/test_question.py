"""A question as the stages take it."""

from __future__ import annotations

import dataclasses

import pytest

from communitree_shared.contract.options import SelectionOptions
from communitree_shared.errors import UsageError
from support.questions import question_of
from support.views import TreeShape, view_of

VIEW = view_of(TreeShape((-1,), (1,), (1,)))


def test_it_must_fit_its_room() -> None:
    question_of(VIEW, "Why?").check()
    with pytest.raises(UsageError, match="tokens"):
        question_of(VIEW, "why " * 2100).check()
    with pytest.raises(UsageError, match="empty"):
        question_of(VIEW, "  ").check()


def test_its_language_is_as_asked_for_else_its_own() -> None:
    assert question_of(VIEW, "Why?").language == question_of(VIEW, "为何？", language="English").language == "en"
    assert question_of(VIEW, "为何？").language == "zh"


def test_its_view_is_loaded_once_and_only_where_it_is_asked_for() -> None:
    loaded: list[int] = []
    question = dataclasses.replace(question_of(VIEW), open_view=lambda: loaded.append(1) or VIEW)  # type: ignore[func-returns-value]
    assert question.language == "en"
    assert not loaded
    assert question.view is question.view
    assert loaded == [1]


def test_it_does_not_change() -> None:
    question = question_of(VIEW, "Why?")
    other = question.selecting(SelectionOptions(strategy="leaves"))
    assert (question.selection.strategy, other.selection.strategy, other.text) == ("auto", "leaves", "Why?")
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.text = "How?"  # type: ignore[misc]
