"""A plan refuses what the question would."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import QueryOptions, SelectionOptions, Turn
from communitree_shared.contract.results import Plan
from communitree_shared.errors import UsageError
from communitree_shared.objects.keys import Keys
from communitree_shared.settings import ModelSettings
from communitree_workers.look import question_plan
from support.views import TreeShape, view_of

VIEW = view_of(TreeShape((-1, -1, 0, 0), (10,) * 4, (0, 0, 1, 1)))

#: The earlier answer of job j.
FOUND = {
    "corpus": "c", "version": "v", "question": "Why?",
    "account": {"selection": {"strategy": "leaves"}, "reports": {"silent": [1, 3]}, "coverage": {}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_plan, "load_view", lambda *_: VIEW)


def plans(question: str, options: QueryOptions) -> list[Plan]:
    store = SimpleNamespace(find_json={Keys("t", "").job("j", "result.json"): FOUND}.get)
    context: Any = SimpleNamespace(
        services=SimpleNamespace(store=store, settings=SimpleNamespace(model=lambda _: ModelSettings(model="gpt"))),
        keys=Keys("t", ""),
    )
    return question_plan.plans(context, QueryRequest(job="k", corpus="c", version="v", question=question), options)


def test_a_question_that_is_too_long() -> None:
    long = "why " * 2100
    with pytest.raises(UsageError, match="The question has"):
        plans(long, QueryOptions())
    # Of a conversation another question is asked.
    assert plans(long, QueryOptions(history=[Turn(role="user", content="Who?")]))


def test_money_without_a_price_for_silent_reports() -> None:
    again = QueryOptions(again="j")
    assert plans("Why?", again)[0].selection.reports == 2
    with pytest.raises(UsageError, match="needs the price"):
        plans("Why?", again.model_copy(update={"selection": SelectionOptions(budget_usd=1.0)}))
