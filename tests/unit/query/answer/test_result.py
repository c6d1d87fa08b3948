"""An answer is written once, not anew by a model that is paid again; what is remembered is what others would get."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import Account, Answer, QueryStatus, Selection
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.entry import models_text, question_digest
from communitree_shared.objects.keys import Keys
from communitree_shared.settings import Settings
from communitree_workers.query.answer.result import write_once

ANSWER = Answer(
    job_id="j", status="answered", question="Why?", corpus="c", account=Account(selection=Selection(strategy="auto"))
)


@pytest.mark.parametrize(
    ("status", "unrated", "kept"),
    [
        ("answered", {}, True),
        ("no_data", {"calls": 3, "money": 2, "reply": 1}, True),  # the question's own limits, the model's own words
        ("answered", {"deadline": 3}, False),  # who has more time gets more
        ("no_data", {"calls": 1, "failed": 3}, False),
        ("partial", {}, False),
    ],
)
def test_what_circumstances_made_coarse_is_not_remembered(
    status: QueryStatus, unrated: dict[str, int], kept: bool
) -> None:
    known = dict[str, str]()
    ledger = SimpleNamespace(keep_answer=lambda key, job, ttl: known.update({key: job}))
    services = SimpleNamespace(
        ledger=ledger, store=SimpleNamespace(put_new=lambda key, data: True), settings=Settings()
    )
    context: Any = SimpleNamespace(
        services=services, message=SimpleNamespace(tenant="t", job="j"), keys=Keys("t", ""),
        finish=lambda *_, **__: True,
    )  # fmt: skip
    selection = Selection(strategy="relevant", budget={"unrated_because": unrated})
    answer = ANSWER.model_copy(update={"status": status, "account": Account(selection=selection)})
    write_once(context, {"digest": "then"}, answer, QueryOptions(), "d")
    assert bool(known) == kept


def test_an_answer_is_known_by_the_models_that_wrote_it() -> None:
    request = QueryRequest(job="j", corpus="c", version="v", question="q", options={})
    small, large = ({"map": name, "reduce": name, "extract": name} for name in ("small", "large"))
    assert question_digest(request, models_text(small)) != question_digest(request, models_text(large))
    assert models_text({**small, "extract": "another"}) == models_text(small)  # no stage of a question


@pytest.mark.parametrize("ends", [True, False])
def test_redis_that_is_away_for_a_moment_is_waited_for(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    client, away, kept = redis.Redis(), ["set", "delete"], dict[str, str]()

    def call(name: str, work: Any) -> Any:
        def called(*args: Any, **_: Any) -> Any:
            if name in away:
                away.remove(name)
                raise redis.ConnectionError("away")
            return work(*args)

        return called

    monkeypatch.setattr(client, "set", call("set", kept.__setitem__))
    monkeypatch.setattr(client, "delete", call("delete", kept.pop))
    store = SimpleNamespace(put_new=lambda key, data: True)
    services = SimpleNamespace(ledger=Ledger(client, patience=30), store=store, settings=Settings())
    context: Any = SimpleNamespace(
        services=services, message=SimpleNamespace(tenant="t", job="j"), keys=Keys("t", ""),
        finish=lambda *_, **__: ends,
    )  # fmt: skip
    write_once(context, {"digest": "then"}, ANSWER, QueryOptions(), "d")
    assert kept == ({"communitree:answer:t:d": "j"} if ends else {})
    assert away == (["delete"] if ends else [])
