"""Silent reports as a selection: half batches, the earlier coverage, and words in the language of who asks now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from communitree_shared.contract.options import QueryOptions
from communitree_shared.objects.keys import Keys
from communitree_workers.query.planning.again import silent
from support.questions import question_of
from support.views import TreeShape, view_of

VIEW = view_of(TreeShape((-1, -1, 0, 0), (10,) * 4, (0, 0, 1, 1)))


@pytest.mark.parametrize(
    ("earlier", "question", "said"),
    [
        ("谁是主角？", "Who leads?", "the 2 silent or unread reports of job j"),
        ("Who leads?", "谁是主角？", "重读任务 j 中 2 份"),
    ],
)
def test_silent_reports(earlier: str, question: str, said: str) -> None:
    account = {
        "selection": {"strategy": "leaves"}, "reports": {"silent": [1], "unread": [3]}, "coverage": {"entities": 0.75},
    }  # fmt: skip
    found = {"corpus": "c", "version": "v", "question": earlier, "account": account}
    store = SimpleNamespace(find_json={Keys("t", "").job("j", "result.json"): found}.get)
    context: Any = SimpleNamespace(services=SimpleNamespace(store=store), keys=Keys("t", ""))
    asked = question_of(VIEW, question, QueryOptions(again="j"), corpus="c", version="v")
    selected, smaller = silent(context, asked)
    assert (selected.ids, selected.selection.strategy, selected.coverage.entities) == ([1, 3], "leaves", 0.75)
    assert said in selected.selection.why
    assert smaller.batch.max_context_tokens == 6000
