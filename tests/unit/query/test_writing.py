"""An answer that is stored already is not written anew, by a model that is paid again, because Redis was away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

from communitree_shared.keys import Keys
from communitree_shared.ledger import Ledger
from communitree_shared.options import QueryOptions
from communitree_shared.results import Account, Answer, Selection
from communitree_shared.settings import Settings
from communitree_workers.query.writing import write_once

ANSWER = Answer(
    job_id="j", status="answered", question="Why?", corpus="c", account=Account(selection=Selection(strategy="auto"))
)


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
    write_once(context, {"digest": "d"}, ANSWER, QueryOptions())
    assert kept == ({"communitree:answer:t:d": "j"} if ends else {})
    assert away == (["delete"] if ends else [])
