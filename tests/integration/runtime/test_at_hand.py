"""What workers and callers find in the ledger instead of asking the object store for it; what arrives together."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from communitree_shared.contract.messages import Message, QueryRequest, Unit
from communitree_shared.contract.options import QueryOptions
from communitree_shared.ledger import Stage, Step
from communitree_shared.ledger.entry import SMALL, dumped, entry
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.objects.keys import Keys
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.runner import GATHER, Runner
from communitree_workers.runtime.services import Services

PLAN = "communitree.query.plan.v1"
MAP = "communitree.query.map.v1"
T = "default"


@pytest.fixture
def services(settings: Settings) -> Iterator[Services]:
    made = Services(settings, threaded=True, token="test")
    yield made
    made.publisher.close()
    made.ledger.redis.close()


def submitted(services: Services, job: str, question: str = "Why?", options: QueryOptions | None = None) -> Message:
    """Tell the ledger of a query, and return the message of its first step."""
    given = (options or QueryOptions()).model_dump()
    request = QueryRequest(job=job, corpus="c", version="v-1", question=question, options=given)
    told = entry(T, request, time.time())
    if not told.request:
        services.store.put(Keys(T, services.settings.s3_prefix).job(job, "request.json"), dumped(request).encode())
    status, _, outgoing = services.ledger.submit(T, job, told.record, told.first, request=told.request)
    assert status == "ok"
    return Message.model_validate_json(outgoing[0].body)


def context_of(services: Services, message: Message) -> UnitContext:
    return UnitContext(services, message, message.units[0], 1, None, lambda: False)


def test_a_small_request_comes_with_the_lease_and_goes_with_the_job(services: Services) -> None:
    seen: list[QueryRequest] = []

    def handler(context: UnitContext) -> Outcome:
        seen.append(context.query_request()[0])
        return Outcome()

    before = services.store.requests
    message = submitted(services, "small")
    Runner(services, {PLAN: handler}).run(message.model_dump())
    assert [request.question for request in seen] == ["Why?"]
    assert services.store.requests == before
    assert services.ledger.redis.exists(rk.request(T, "small"))
    services.ledger.finish(T, "small", "failed", {}, 60)
    assert not services.ledger.redis.exists(rk.request(T, "small"))


def test_a_large_request_is_read_from_the_object_store(services: Services) -> None:
    seen: list[QueryRequest] = []

    def handler(context: UnitContext) -> Outcome:
        seen.append(context.query_request()[0])
        return Outcome()

    message = submitted(services, "large", "Why? " * SMALL)
    assert not services.ledger.redis.exists(rk.request(T, "large"))
    Runner(services, {PLAN: handler}).run(message.model_dump())
    assert [len(request.question) for request in seen] == [5 * SMALL]


def test_a_message_of_an_impossible_job_is_kept_aside(services: Services) -> None:
    body = Message(task=PLAN, tenant=T, job="..", stage="plan", id="plan", units=[Unit(id="plan")])
    Runner(services, {PLAN: lambda context: pytest.fail("it was worked on")}).run(body.model_dump())
    ((_, letter),) = services.ledger.redis.xrange(rk.dead_letters(rk.FOREIGN))
    assert letter["why"] == "'..' is no job id."


@pytest.mark.parametrize(("size", "kept"), [(100, True), (100_000, False)])
def test_a_small_result_is_told_with_the_end(services: Services, size: int, kept: bool) -> None:
    job = f"ended-{size}"
    context = context_of(services, submitted(services, job))
    result = {"status": "answered", "answer": "x" * size}
    key = context.keys.job(job, "result.json")
    services.store.put(key, json.dumps(result).encode())
    assert context.finish("answered", {"result": key}, result=json.dumps(result).encode())
    assert (0 < services.ledger.redis.pttl(rk.result(T, job)) <= 60_000) is kept
    before = services.store.requests
    assert Jobs(services.settings, services.store, services.ledger, services.publisher).result(job) == result
    assert services.store.requests - before == (0 if kept else 1)


def test_units_that_end_together_arrive_together_and_wait_for_none(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_of(services, submitted(services, "wide"))
    stage = Stage("map", MAP, Step("reduce", "communitree.query.reduce.v1"))
    units = [Unit(id=f"b{n}", args={"slow": n == 7}) for n in range(8)]
    ((_, _, _, body),) = context.messages(stage, units, local=True, per_message=8)
    context.open(stage, [("m", "communitree.map.local", [u.id for u in units], body)])
    arrived: list[list[str]] = []
    tell = services.ledger.arrive_all

    def told(tenant: str, job: str, name: str, ends: Any) -> Any:
        arrived.append(sorted(end.unit for end in ends))
        return tell(tenant, job, name, ends)

    monkeypatch.setattr(services.ledger, "arrive_all", told)
    slow = asyncio.Event()

    async def handler(context: UnitContext) -> Outcome:
        if context.args["slow"]:
            while len(services.ledger.outcomes(T, "wide", "map")) < 7:  # the others have arrived: nothing waits for it
                await asyncio.sleep(GATHER)
            slow.set()
        return Outcome()

    Runner(services, {MAP: handler}).run(json.loads(body))
    assert slow.is_set()
    assert sum(map(len, arrived)) == 8
    assert arrived[-1] == ["b7"]
    assert len(arrived) < 8
    assert services.ledger.stage_record(T, "wide", "map")["state"] == "closed"
