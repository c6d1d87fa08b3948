"""The public door: exactly one outcome for each request, whatever is in it and whoever dies."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest

from communitree_shared import rediskeys as rk
from communitree_shared.broker.publisher import Publisher
from communitree_shared.connect import redis_client
from communitree_shared.keys import Keys
from communitree_shared.ledger import Ledger
from communitree_shared.ledger.stages import Step
from communitree_shared.settings import Settings
from communitree_shared.store import Store
from communitree_workers.runtime.intake import Intake

T = "default"


@pytest.fixture
def intake(settings: Settings) -> Any:
    settings = settings.model_copy(update={"lease": 0.05})
    ledger = Ledger(redis_client(settings), patience=5)
    store = Store(settings, patience=5)
    store.ensure_bucket()
    store.put_json(Keys(T, settings.s3_prefix).current("c"), {"version": "v-1", "corpus": "c"})
    publisher = Publisher(settings, ledger)
    yield Intake(settings, store, ledger, publisher)
    publisher.close()
    ledger.redis.close()


def add(intake: Intake, request: Any, tenant: str = T) -> str:
    text = request if isinstance(request, str) else json.dumps(request)
    return str(intake.ledger.redis.xadd(rk.requests(tenant), {"request": text}))


def outcomes(intake: Intake, tenant: str = T) -> list[dict[str, str]]:
    found = intake.ledger.redis.xrange(rk.results(tenant))
    return [fields for _, fields in found if "request" in fields]


def ask(question: str, **more: Any) -> dict[str, Any]:
    return {"kind": "query", "corpus": "c", "question": question, **more}


def test_a_request_becomes_a_job_and_an_outcome_with_its_correlation_id(intake: Intake) -> None:
    entry = add(intake, ask("What?", correlation_id="mine"))
    assert intake.serve(T) == 1
    (outcome,) = outcomes(intake)
    assert (outcome["type"], outcome["request"], outcome["correlation_id"]) == ("accepted", entry, "mine")
    assert intake.ledger.record(T, outcome["job"])["state"] == "queued"
    assert intake.ledger.redis.xlen(rk.requests(T)) == 0
    assert intake.ledger.redis.get(rk.gate(T)) == "open"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ("{", "Not a request"),
        ("[]", "Not a request"),
        ({"kind": "shell"}, "kind"),
        (ask(""), "question is empty"),
        (ask("x", options={"selection": {"strategy": "all"}}), "strategy"),
        (ask("x", options={"selection": {"strategy": "leaves", "budget_tokens": 9}}), "goes not with --leaves"),
        (ask("x", options={"selection": {"strategy": "auto", "budget_tokens": 9}}), "goes not with strategy='auto'"),
        (ask("x", options={"selection": {"stratgy": "leaves"}}), "selection.stratgy: there is no such name, did you"),
        (ask("x", corelation_id="mine"), "corelation_id: there is no such name, did you mean 'correlation_id'?"),
        (ask("x", tenant="other"), "tenant: there is no such name"),
        ({"kind": "query", "corpus": "nowhere", "question": "x"}, "no corpus"),
        ({"kind": "query", "corpus": "../../x\n", "question": "x"}, ""),
        ({"kind": "corpus", "corpus": "c"}, "no documents"),
        ({"kind": "corpus", "corpus": "c", "documents": [{"name": "a", "sha256": "../x", "size": 1}]}, "sha256"),
        ({"kind": "cancel", "job": "../../etc"}, "is no job id"),
        ({"kind": "cancel", "job": "none"}, "no job"),
        (ask("x", v=99), "v"),
        ("x" * 1_000_001, "characters"),
    ],
)
def test_what_cannot_be_done_is_rejected_with_its_reason(intake: Intake, request_: Any, words: str) -> None:
    add(intake, request_)
    assert intake.serve(T) == 1
    (outcome,) = outcomes(intake)
    assert outcome["type"] == "rejected"
    assert words in outcome["message"]


def test_the_tenant_is_the_streams(intake: Intake) -> None:
    add(intake, ask("What?"), tenant="other")
    intake.serve("other")
    (outcome,) = outcomes(intake, "other")
    assert outcome["code"] == "corpus_not_found"  # `c` is another tenant's
    assert outcomes(intake) == []


def test_an_idempotency_key_gives_the_same_job_and_refuses_another_request(intake: Intake) -> None:
    for question in ("What?", "What?", "Why?"):
        add(intake, ask(question, idempotency_key="k", options={"cache": False}))
    intake.serve(T)
    first, second, third = outcomes(intake)
    assert first["job"] == second["job"]
    assert (third["type"], third["code"]) == ("rejected", "usage")


def test_what_cannot_be_taken_now_stays_and_the_gate_says_so(intake: Intake) -> None:
    intake.settings = intake.settings.model_copy(update={"max_open_jobs": 1})
    add(intake, ask("One?"))
    add(intake, ask("Two?"))
    assert intake.serve(T) == 1
    assert "limit" in str(intake.ledger.redis.get(rk.gate(T)))
    assert intake.ledger.redis.xlen(rk.requests(T)) == 1
    intake.ledger.finish(T, outcomes(intake)[0]["job"], "answered", {}, 60)
    served = 0
    while not served:
        served = intake.serve(T)
    assert [o["type"] for o in outcomes(intake)] == ["accepted", "accepted"]


def test_many_requests_and_an_intake_that_dies_between_any_two_steps(intake: Intake) -> None:
    """1,000 requests, 5 % malformed, 5 % sent twice: one outcome each, one job for each pair."""
    entries = []
    for n in range(1000):
        if n % 20 == 0:
            entries.append(add(intake, '{"kind": "query", "corpus": '))
        elif n % 20 == 1:
            entries += [add(intake, ask(f"Pair {n}?", idempotency_key=f"k{n}")) for _ in range(2)]
        else:
            entries.append(add(intake, ask(f"Question {n}?")))

    class Died(Exception):
        pass

    settle, deaths = intake._settle, 0

    def dying(*words: Any) -> int:
        nonlocal deaths
        deaths += 1
        if deaths % 37 == 0:
            raise Died
        return settle(*words)

    intake._settle = dying  # type: ignore[method-assign]
    while intake.ledger.redis.xlen(rk.requests(T)):
        try:
            intake.serve(T)
        except Died:
            intake.name = f"next-{deaths}"
    told = Counter(o["request"] for o in outcomes(intake))
    assert set(told) == set(entries)
    assert set(told.values()) == {1}
    types = Counter(o["type"] for o in outcomes(intake))
    assert types == {"accepted": len(entries) - 50, "rejected": 50}
    assert intake.ledger.redis.zcard(rk.OPEN_JOBS) == 950
    assert deaths > 1000


def test_a_request_that_is_taken_again_changes_nothing_of_its_job(intake: Intake) -> None:
    """Its intake died before it told the outcome; meanwhile the corpus was published anew."""
    add(intake, ask("What?"))
    settle = intake._settle
    intake._settle = lambda *words: 0  # type: ignore[method-assign,assignment]
    intake.serve(T)
    (job,) = intake.ledger.jobs(T)
    keys = Keys(T, intake.settings.s3_prefix)
    intake.store.put_json(keys.current("c"), {"version": "v-2", "corpus": "c"})
    intake._settle = settle  # type: ignore[method-assign]
    until_served(intake)
    assert [o["job"] for o in outcomes(intake)] == [job]
    assert intake.store.get_json(keys.job(job, "request.json"))["version"] == "v-1"
    assert intake.ledger.record(T, job)["version"] == "v-1"
    assert intake.ledger.record(T, job)["callers"] == "1"


def test_a_cancel_that_is_taken_again_takes_one_caller(intake: Intake) -> None:
    for _ in range(2):
        add(intake, ask("What?"))
    intake.serve(T)
    job = outcomes(intake)[0]["job"]
    assert intake.ledger.record(T, job)["callers"] == "2"
    add(intake, {"kind": "cancel", "job": job})
    settle = intake._settle
    intake._settle = lambda *words: 0  # type: ignore[method-assign,assignment]
    intake.serve(T)
    intake._settle = settle  # type: ignore[method-assign]
    until_served(intake)
    assert intake.ledger.record(T, job)["state"] == "queued"


def until_served(intake: Intake) -> None:
    until = time.monotonic() + 20
    while not intake.serve(T):  # what another holds is taken over when its time is up
        assert time.monotonic() < until
        time.sleep(0.02)


def ends(intake: Intake) -> list[tuple[str, str, str]]:
    found = intake.ledger.redis.xrange(rk.results(T))
    return [(f["job"], f["status"], f["correlation_id"]) for _, f in found if "status" in f]


def test_each_request_that_shares_a_job_gets_its_end_with_its_own_correlation_id(intake: Intake) -> None:
    for mine in ("first", "second", "", "third"):
        add(intake, ask("What?", correlation_id=mine))
    intake.serve(T)
    (job,) = {o["job"] for o in outcomes(intake)}
    assert ends(intake) == []
    assert intake.ledger.record(T, job)["callers"] == "4"
    intake.ledger.finish(T, job, "answered", {}, 60)
    assert sorted(ends(intake)) == [(job, "answered", mine) for mine in ("first", "second", "third")]


def test_a_known_answer_is_told_at_once_after_its_outcome(intake: Intake) -> None:
    add(intake, ask("What?", correlation_id="first"))
    intake.serve(T)
    (job,) = [o["job"] for o in outcomes(intake)]
    digest = intake.ledger.record(T, job)["digest"]
    intake.store.put_json(Keys(T, intake.settings.s3_prefix).job(job, "result.json"), {"status": "no_data"})
    intake.ledger.finish(T, job, "no_data", {}, 60)
    intake.ledger.redis.set(rk.answer(T, digest), job)
    add(intake, ask("What?", correlation_id="mine-1"))
    intake.serve(T)
    assert outcomes(intake)[1]["job"] == job
    assert ends(intake) == [(job, "no_data", "first"), (job, "no_data", "mine-1")]
    intake.ledger.redis.delete(rk.job(T, job))  # what its result says, once the ledger knows it no longer
    add(intake, ask("What?", correlation_id="mine-2"))
    intake.serve(T)
    assert ends(intake)[2:] == [(job, "no_data", "mine-2")]
    assert [f.get("type", f.get("status")) for _, f in intake.ledger.redis.xrange(rk.results(T))][-2:] == [
        "accepted", "no_data"
    ]  # fmt: skip


def test_a_look_ends_in_no_stream_of_results(intake: Intake) -> None:
    step = Step("look", "communitree.look.v1")
    intake.ledger.submit(T, "look-1", {"kind": "look", "corpus": "c"}, step)
    intake.ledger.finish(T, "look-1", "done", {}, 60)
    assert ends(intake) == []
