"""The public door: exactly one outcome for each request, whatever is in it and whoever dies."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from communitree.recovery import resume
from communitree_shared import clock
from communitree_shared.broker.publisher import Publisher
from communitree_shared.contract.messages import CorpusRequest
from communitree_shared.contract.options import IndexOptions
from communitree_shared.ledger import Ledger, Stage
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.keeping import trim_all
from communitree_shared.ledger.rebuild import rebuild
from communitree_shared.ledger.stages import Step
from communitree_shared.objects import document_lists
from communitree_shared.objects.keys import Keys
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
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
        ({"kind": "look", "corpus": "c"}, "does not say at what to look"),
        ({"kind": "look", "corpus": "c", "op": "shell"}, "op"),
        ({"kind": "look", "corpus": "c", "op": "report"}, "community"),
        ({"kind": "look", "corpus": "nowhere", "op": "tree"}, "no corpus"),
        ({"kind": "look", "op": "tree"}, "corpus name is empty"),
        (
            {"kind": "look", "corpus": "c", "op": "plan", "args": {"question": "x", "options": {"sede": 1}}},
            "options.sede",
        ),
        ({"kind": "corpus", "corpus": "d", "document_list": {"sha256": "0" * 64, "size": 9}}, "no list of documents"),
        ({"kind": "corpus", "corpus": "d", "document_list": {"sha256": "../x", "size": 9}}, "sha256"),
        (
            {
                "kind": "corpus",
                "corpus": "d",
                "document_list": {"sha256": "0" * 64, "size": 9},
                "documents": [{"name": "a", "sha256": "0" * 64, "size": 1}],
            },
            "has `documents` and `document_list`",
        ),
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


def put_list(intake: Intake, lines: list[str], corpus: str = "d") -> dict[str, Any]:
    """Do what a program does that has many documents; return its request."""
    data = "".join(f"{line}\n" for line in lines).encode()
    sha256 = hashlib.sha256(data).hexdigest()
    intake.store.put(f"{intake.settings.s3_prefix}/{T}/corpora/{corpus}/lists/{sha256}", data)
    return {"kind": "corpus", "corpus": corpus, "document_list": {"sha256": sha256, "size": len(data)}}


def test_a_list_of_two_hundred_thousand_documents_is_a_small_request(intake: Intake) -> None:
    contents = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(5)]
    lines = [f'{{"name": "文档-{n}.txt", "sha256": "{contents[n % 5]}", "size": 1000}}' for n in range(200_000)]
    request = put_list(intake, lines)
    add(intake, request)
    began = time.monotonic()
    intake.serve(T)
    assert time.monotonic() - began < 60
    (outcome,) = outcomes(intake)
    assert outcome["type"] == "accepted", outcome
    keys = Keys(T, intake.settings.s3_prefix)
    stored = intake.store.get(keys.job(outcome["job"], "request.json"))
    assert len(stored) < 5000
    kept = CorpusRequest.model_validate_json(stored)
    assert kept.document_list is not None
    assert (kept.count, kept.document_list.bytes) == (200_000, 5000)
    names = (d["name"] for d in document_lists.read(intake.store, keys, "d", kept.document_list))
    assert all(name == f"文档-{n}.txt" for n, name in enumerate(names))


def test_a_wrong_line_of_a_list_is_told_and_no_job_is_made(intake: Intake) -> None:
    good = '{"name": "a", "sha256": "' + "0" * 64 + '", "size": 1}'
    add(intake, put_list(intake, [*[good] * 5000, good.replace("size", "bytes"), good]))
    intake.serve(T)
    (outcome,) = outcomes(intake)
    assert outcome["type"] == "rejected"
    assert "Line 5,001" in outcome["message"]
    assert "bytes" in outcome["message"] or "size" in outcome["message"]
    assert "other-languages.md" in outcome["hint"]
    assert intake.ledger.jobs(T) == []


def test_documents_of_a_list_may_not_be_more_than_are_allowed(intake: Intake) -> None:
    intake.settings = intake.settings.model_copy(update={"max_upload_bytes": 100})
    line = '{{"name": "{0}", "sha256": "{0:064x}", "size": 60}}'
    add(intake, put_list(intake, [line.format(1), line.format(1)]))  # equal ones count once
    add(intake, put_list(intake, [line.format(1), line.format(2)], "e"))
    intake.serve(T)
    first, second = outcomes(intake)
    assert first["type"] == "accepted"
    assert "120 bytes; 100 are allowed" in second["message"]


def test_many_documents_of_a_client_stand_in_an_object_and_can_be_resumed(intake: Intake) -> None:
    jobs = Jobs(intake.settings, intake.store, intake.ledger, intake.publisher)
    documents = [{"name": f"{'folder/' * 580}{n}.txt", "sha256": f"{n:064x}", "size": 1} for n in range(1001)]
    few = jobs.submit_index("few", documents[:1000], IndexOptions())
    many = jobs.submit_index("many", documents, IndexOptions(), idempotency_key="k")
    assert jobs.submit_index("many", documents, IndexOptions(), idempotency_key="k").job == many.job
    assert len(intake.store.get_json(jobs.keys.job(few.job, "request.json"))["documents"]) == 1000
    request = CorpusRequest.model_validate(intake.store.get_json(jobs.keys.job(many.job, "request.json")))
    assert (request.documents, request.count) == ([], 1001)
    assert request.document_list is not None
    assert list(document_lists.read(intake.store, jobs.keys, "many", request.document_list)) == documents
    intake.ledger.finish(T, many.job, "failed", {}, 60)
    again = resume(jobs, many.job)
    assert CorpusRequest.model_validate(intake.store.get_json(jobs.keys.job(again, "request.json"))).count == 1001


SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"


def conforms(fields: dict[str, str], schema: str) -> dict[str, str]:
    jsonschema.validate(fields, json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")))
    return fields


def test_raw_entries_are_what_their_schemas_say(intake: Intake) -> None:
    ledger = intake.ledger
    for request in (ask("What?", correlation_id="a"), "{", ask("What?", correlation_id="b")):
        add(intake, request)
    intake.serve(T)
    job = outcomes(intake)[0]["job"]
    for ok in (True, False):
        ledger.open(T, job, Stage(f"map-{ok}", "communitree.query.map.v1", Step("walk", "communitree.query.walk.v1")),
                    [("m", "q", ["u"], "{}")])  # fmt: skip
        ledger.arrive(T, job, f"map-{ok}", "u", ok=ok, outcome={}, event={"cause": "" if ok else "timeout"})
    ledger.finish(T, job, "answered", {"result": "x"}, 60)
    events = [conforms(fields, "event-entry") for _, fields in ledger.redis.xrange(rk.events(T, job))]
    assert [fields["ok"] for fields in events if "ok" in fields] == ["true", "false"]
    now = clock.now_of(ledger.redis)
    assert all(now - 60 < float(fields["at"]) <= now for fields in events)
    assert [fields["seq"] for fields in events] == [str(n) for n in range(1, len(events) + 1)]
    told = [fields for _, fields in ledger.redis.xrange(rk.results(T))]
    assert len([conforms(fields, "outcome-entry") for fields in told if "type" in fields]) == 3
    assert len([conforms(fields, "end-entry") for fields in told if "status" in fields]) == 2
    for _ in range(20):
        ledger.redis.xadd(rk.results(T), {"job": "x", "status": "answered"})
    trim_all(ledger, intake.settings.model_copy(update={"results_keep": 5, "results_keep_unread": 5}))
    lost = [fields for _, fields in ledger.redis.xrange(rk.results(T)) if fields.get("type") == "lost"]
    assert conforms(lost[0], "lost-entry")["count"] == "20"
    for wrong in ({"at": "1796040300123"}, {"ok": "1"}, {"seq": "one"}):
        with pytest.raises(jsonschema.ValidationError):
            conforms({**events[0], **wrong}, "event-entry")


def look(intake: Intake, op: str, found: bytes, state: str = "done", **more: Any) -> dict[str, str]:
    """Ask for a look, do a worker's part of it, and return the entry of its end."""
    add(intake, {"kind": "look", "op": op, **more})
    intake.serve(T)
    told = outcomes(intake)[-1]
    assert told["type"] == "accepted", told
    key = Keys(T, intake.settings.s3_prefix).job(told["job"], "result.json")
    intake.store.put(key, found)
    small = found.decode() if len(found) < 65536 else ""
    intake.ledger.finish(T, told["job"], state, {"result": key}, 600, result=small)
    found_ends = intake.ledger.redis.xrange(rk.results(T))
    return conforms([f for _, f in found_ends if f.get("job") == told["job"] and "status" in f][-1], "end-entry")


def test_a_look_by_the_stream_comes_back_with_what_it_found(intake: Intake) -> None:
    small, large = b'{"result":{"x":1}}', json.dumps({"result": "x" * 4096}).encode()
    end = look(intake, "report", small, corpus="c", args={"community": 1}, correlation_id="mine")
    assert (end["kind"], end["op"], end["status"], end["correlation_id"]) == ("look", "report", "done", "mine")
    assert end["result"] == small.decode()
    assert intake.store.get(end["object"]) == small
    end = look(intake, "tree", large, corpus="c")  # without any correlation id, too
    assert "result" not in end
    assert intake.store.get(end["object"]) == large
    end = look(intake, "source", b'{"error":{"code":"usage"}}', "failed", corpus="c", args={"text_unit": "x"})
    assert (end["status"], end["result"]) == ("failed", '{"error":{"code":"usage"}}')
    assert look(intake, "corpora", small)["corpus"] == ""
    request = intake.ledger.value(rk.request(T, outcomes(intake)[0]["job"]))
    assert request is None  # its end has cleared it away


def test_a_plan_by_the_stream_has_the_defaults_of_the_settings(intake: Intake) -> None:
    intake.settings = intake.settings.model_copy(update={"ask": {"map_max_tokens": 321}})
    add(intake, {"kind": "look", "corpus": "c", "op": "plan", "args": {"question": "What?", "which": "all"}})
    intake.serve(T)
    kept = json.loads(intake.ledger.value(rk.request(T, outcomes(intake)[0]["job"])) or "")
    assert kept["args"]["options"]["plan_only"] == "all"
    assert kept["args"]["options"]["answer"]["map_max_tokens"] == 321
    assert kept["told"]


def test_a_look_that_is_lost_with_redis_is_taken_up_again_and_told(intake: Intake) -> None:
    add(intake, {"kind": "look", "corpus": "c", "op": "tree", "correlation_id": "mine"})
    intake.serve(T)
    job = outcomes(intake)[0]["job"]
    intake.ledger.redis.flushdb()
    assert rebuild(intake.settings, intake.store, intake.ledger, intake.publisher) == [f"{T}|{job}"]
    intake.ledger.finish(T, job, "done", {"result": "x"}, 60)
    assert ends(intake) == [(job, "done", "mine")]


def test_eleven_thousand_outcomes_wait_for_a_group_that_is_away(intake: Intake) -> None:
    redis = intake.ledger.redis
    redis.xgroup_create(rk.results(T), "mine", id="0", mkstream=True)
    pipe = redis.pipeline(transaction=False)
    for n in range(11_000):
        pipe.xadd(rk.requests(T), {"request": json.dumps({"kind": "query", "corpus": "c", "correlation_id": str(n)})})
    pipe.execute()
    while intake.serve(T):
        trim_all(intake.ledger, intake.settings)
    told: list[str] = []
    while found := redis.xreadgroup("mine", "me", {rk.results(T): ">"}, count=1000):
        told += [fields["correlation_id"] for _, fields in found[0][1]]
    assert told == [str(n) for n in range(11_000)]


def test_a_look_of_a_client_ends_in_no_stream_of_results(intake: Intake) -> None:
    step = Step("look", "communitree.look.v1")
    intake.ledger.submit(T, "look-1", {"kind": "look", "corpus": "c"}, step)
    intake.ledger.finish(T, "look-1", "done", {}, 60)
    assert ends(intake) == []
