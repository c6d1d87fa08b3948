"""One tenant's corpora, jobs, questions, caches and documents are nothing to another, by whatever entry it tries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from communitree.client import Client
from communitree_shared.contract.options import QueryOptions
from communitree_shared.errors import CorpusNotFound, JobNotFound, UsageError
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.settings import Settings
from support.fleet import until
from support.provider import Provider
from support.stack import Stack
from support.topics import write_topics

QUESTION = "What is said of assertions?"


def client_of(stack: Stack, tenant: str) -> Client:
    return Client(Settings(home=stack.home, redis_url="", s3_endpoint="", tenant=tenant))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few of the documents: enough for what is looked at here."""
    return write_topics(tmp_path_factory.mktemp("few") / "topics", 5)


@pytest.fixture(scope="module")
def owner(stack: Stack) -> Iterator[Client]:
    with client_of(stack, "owner") as made:
        yield made


@pytest.fixture(scope="module")
def other(stack: Stack) -> Iterator[Client]:
    with client_of(stack, "other") as made:
        yield made


@pytest.fixture(scope="module")
def known(owner: Client, topics: Path, provider: Provider) -> dict[str, str]:
    """What the other may have overheard: names and ids of all that the owner has."""
    indexed = owner.submit_index(topics, "secret")
    assert owner.wait_index(indexed).status == "published"
    asked = owner.submit("secret", QUESTION).job
    answer = owner.wait_answer(asked)
    assert answer.status == "answered"
    units = [u for citation in answer.citations for u in citation.text_units]
    return {"corpus": "secret", "index": indexed, "query": asked, "unit": units[0], "version": answer.version}


BY_CORPUS: dict[str, Callable[[Client, dict[str, str], Path], Any]] = {
    "ask": lambda c, k, p: c.ask(k["corpus"], QUESTION),
    "submit": lambda c, k, p: c.submit(k["corpus"], QUESTION),
    "stream": lambda c, k, p: list(c.stream(k["corpus"], QUESTION)),
    "plan": lambda c, k, p: c.plan(k["corpus"], QUESTION),
    "plans": lambda c, k, p: c.plans(k["corpus"], QUESTION),
    "tree": lambda c, k, p: c.tree(k["corpus"]),
    "report": lambda c, k, p: c.report(k["corpus"], 0),
    "source": lambda c, k, p: c.source(k["corpus"], k["unit"]),
    "export": lambda c, k, p: c.export(k["corpus"], p),
    "delete": lambda c, k, p: c.delete(k["corpus"]),
    "a way out of the folder": lambda c, k, p: c.tree("../../owner/corpora/secret"),
    "a way out, encoded": lambda c, k, p: c.tree("_2e_2e_2fowner_2fcorpora_2fsecret"),
}

BY_JOB: dict[str, Callable[[Client, str], Any]] = {
    "job": lambda c, j: c.job(j),
    "result": lambda c, j: c.result(j),
    "events": lambda c, j: list(c.events(j)),
    "wait": lambda c, j: c.wait(j, timeout=5),
    "wait_answer": lambda c, j: c.wait_answer(j, timeout=5),
    "wait_index": lambda c, j: c.wait_index(j, timeout=5),
    "cancel": lambda c, j: c.cancel(j),
    "resume": lambda c, j: c.resume(j),
    "again": lambda c, j: c.submit("secret", QUESTION, QueryOptions(again=j)),
}


@pytest.mark.parametrize("entry", BY_CORPUS)
def test_a_corpus_of_another_is_not_there(other: Client, known: dict[str, str], tmp_path: Path, entry: str) -> None:
    with pytest.raises(CorpusNotFound):
        BY_CORPUS[entry](other, known, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("which", ["index", "query"])
@pytest.mark.parametrize("entry", BY_JOB)
def test_a_job_of_another_is_not_there(
    owner: Client, other: Client, known: dict[str, str], entry: str, which: str
) -> None:
    with pytest.raises((JobNotFound, CorpusNotFound)):
        BY_JOB[entry](other, known[which])
    assert owner.job(known[which]).status in {"published", "answered"}


@pytest.mark.parametrize("job", ["../../owner/jobs/{}", "owner:{}", "{}/../{}", "owner|{}", "", "*", "{}\x00"])
def test_no_name_of_a_job_leads_out(other: Client, known: dict[str, str], job: str) -> None:
    with pytest.raises(UsageError):
        other.job(job.replace("{}", known["query"]))


def test_lists_are_of_ones_own(owner: Client, other: Client, known: dict[str, str]) -> None:
    assert [c["name"] for c in owner.corpora()] == ["secret"]
    assert other.corpora() == []
    assert other.jobs() == []
    assert other.dead_letters() == []
    assert other.redrive() == []
    before = set(owner._store.keys("owner/"))
    assert other.collect(older_than=0)["objects"] == 0
    assert set(owner._store.keys("owner/")) == before


def test_the_same_corpus_and_question_share_nothing(
    owner: Client, other: Client, known: dict[str, str], topics: Path, provider: Provider
) -> None:
    """Same bytes, same name, same question, at the same time: not one reply, unit or running job is shared."""
    provider.reset(latency=1.0)
    assert other.index(topics, "secret").reports.reused == 0
    calls = provider.stats()["requests"]
    assert calls > 0
    running = owner.submit("secret", "Is this shared?")
    beside = other.submit("secret", "Is this shared?")
    assert {running.shared, running.cached, beside.shared, beside.cached} == {False}
    assert running.job != beside.job
    with pytest.raises(JobNotFound):
        other.cancel(running.job)
    answers = [owner.wait_answer(running.job), other.wait_answer(beside.job)]
    assert [a.status for a in answers] == ["answered", "answered"]
    assert [a.account.batches.cached for a in answers] == [0, 0]
    assert not other.submit("secret", QUESTION).cached  # the owner has that answer
    assert other.delete("secret") > 0
    assert owner.ask("secret", QUESTION).status == "answered"


def test_the_stream_decides_whose_request_it_is(
    stack: Stack, owner: Client, other: Client, known: dict[str, str]
) -> None:
    """Neither a tenant in the payload, nor another's job, corpus, document or idempotency key helps."""
    document = {"name": "a", "sha256": "0" * 64, "size": 1}
    requests = [
        {"kind": "query", "corpus": "secret", "question": QUESTION, "tenant": "owner"},
        {"kind": "cancel", "job": known["query"], "tenant": "owner"},
        {"kind": "query", "corpus": "secret", "question": QUESTION, "options": {"again": known["query"]}},
        {"kind": "corpus", "corpus": "../../owner/corpora/secret", "documents": [document]},
    ]
    redis = other._redis
    added = [redis.xadd(rk.requests("other"), {"request": json.dumps(r), "tenant": "owner"}) for r in requests]

    def outcomes() -> dict[str, dict[str, str]]:
        return {f["request"]: f for _, f in redis.xrange(rk.results("other")) if "request" in f}

    until(lambda: set(added) <= set(outcomes()), 30, stack.logs)
    told = [outcomes()[entry] for entry in added]
    assert [t["type"] for t in told[:3]] == ["rejected"] * 3, told
    assert not [f for _, f in redis.xrange(rk.results("owner")) if "request" in f]
    assert owner.job(known["query"]).status == "answered"
    assert owner.ask("secret", QUESTION).status == "answered"


def test_a_question_sent_twice_with_one_key_is_one_job_by_either_door(
    stack: Stack, owner: Client, other: Client, known: dict[str, str], topics: Path
) -> None:
    uncached = QueryOptions(cache=False)  # else equal questions would share a job without any key
    first = owner.submit("secret", QUESTION, uncached, idempotency_key="k1")
    assert owner.wait_answer(first.job).status == "answered"
    assert owner.submit("secret", QUESTION, uncached, idempotency_key="k1").job == first.job
    assert owner.submit("secret", QUESTION, uncached, idempotency_key="k2").job != first.job
    with pytest.raises(UsageError, match="k1"):
        owner.submit("secret", "Another question?", uncached, idempotency_key="k1")

    request = {"kind": "query", "corpus": "secret", "question": QUESTION, "options": {"cache": False}}
    entries = [
        owner._redis.xadd(rk.requests("owner"), {"request": json.dumps({**request, "idempotency_key": key})})
        for key in ("k1", "k3", "k3")
    ]

    def outcomes() -> dict[str, dict[str, str]]:
        return {f["request"]: f for _, f in owner._redis.xrange(rk.results("owner")) if "request" in f}

    until(lambda: set(entries) <= set(outcomes()), 30, stack.logs)
    told = [outcomes()[entry] for entry in entries]
    assert [t["type"] for t in told] == ["accepted"] * 3, told
    assert told[0]["job"] == first.job
    assert told[1]["job"] == told[2]["job"] != first.job
    assert owner.wait_answer(told[1]["job"]).status == "answered"

    other.index(topics, "secret")
    theirs = other.submit("secret", QUESTION, uncached, idempotency_key="k1")
    assert theirs.job != first.job
    assert other.wait_answer(theirs.job).job_id == theirs.job
    other.delete("secret")
