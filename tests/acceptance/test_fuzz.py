"""Rubbish at every public entry: no worker dies, nothing is lost, no queue is stuck. The short form, from a seed."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from communitree.client import Client
from communitree_shared.broker import layout
from communitree_shared.contract.messages import CorpusRequest, LookRequest, QueryRequest
from communitree_shared.contract.options import IndexOptions, QueryOptions
from communitree_shared.ledger.entry import entry
from communitree_shared.redis_server import rediskeys as rk
from support.fleet import until
from support.fuzz import ODD, bad_files, entries, envelopes
from support.stack import Stack, running_stack

SEED, EACH = 11, 12


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stack of its own with the built-in model: what comes here is not for others."""
    from support.stack import FAST

    with running_stack(tmp_path_factory.mktemp("home"), FAST) as running:
        yield running


@pytest.fixture(scope="module")
def corpus(client: Client, topics: Path) -> str:
    assert client.index(topics / "assert.txt", "sound").status == "published"
    return "sound"


@pytest.fixture(autouse=True)
def _sound(stack: Stack, client: Client, corpus: str) -> Any:
    """Whatever a test has sent: the same workers run, and a normal question is answered."""
    before = {(w.pid, w.create_time()) for w in stack.workers()}
    assert len(before) >= 2
    yield
    question = f"What is an assertion, {time.time()}?"
    answer = client.wait_answer(client.submit(corpus, question).job, timeout=60)
    assert answer.status in {"answered", "no_data"}, stack.logs()
    assert {(w.pid, w.create_time()) for w in stack.workers()} == before, stack.logs()
    until(lambda: not client._redis.exists(layout.UNACKED), 30, stack.logs)


def test_queues_take_anything(stack: Stack, client: Client) -> None:
    redis = client._redis
    sent = 0
    for queue, envelope in envelopes(random.Random(SEED), EACH):
        redis.lpush(queue, envelope)
        sent += 1
    queues = {queue for queue, _ in envelopes(random.Random(SEED), 1)}
    until(lambda: not any(redis.llen(q) for q in queues), 60, stack.logs)
    assert sent == 2 * EACH * len(queues)


def test_every_entry_of_the_intake_has_one_outcome(stack: Stack, client: Client) -> None:
    redis = client._redis
    added = [redis.xadd(rk.requests("default"), dict(fields)) for fields in entries(random.Random(SEED), 150)]

    def outcomes() -> list[str]:
        return [f["request"] for _, f in redis.xrange(rk.results("default")) if "request" in f]

    until(lambda: len(outcomes()) >= len(added), 60, stack.logs)
    assert sorted(outcomes()) == sorted(added)
    assert redis.xlen(rk.requests("default")) == 0


@pytest.mark.parametrize("damage", ["not json", "null", "[]", "{}", '{"kind": "corpus"}', '{"job": 1, "options": "x"}'])
def test_a_damaged_request_ends_its_job(stack: Stack, client: Client, corpus: str, damage: str) -> None:
    jobs = client._jobs
    version = jobs.current(corpus)
    made = []
    for number, request in enumerate([
        CorpusRequest(job="", corpus="damaged", version="v", documents=[], options=IndexOptions().model_dump()),
        QueryRequest(job="", corpus=corpus, version=version, question="Why?", options=QueryOptions().model_dump()),
        LookRequest(job="", corpus=corpus, version=version, op="tree"),
    ]):  # fmt: skip
        job = f"damaged-{number}-{abs(hash(damage))}"
        told = entry("default", request.model_copy(update={"job": job}), time.time())
        client._store.put(jobs.keys.job(job, "request.json"), damage.encode())
        _, _, outgoing = client._ledger.submit("default", job, told.record, told.first)
        client._publisher.publish(outgoing)
        made.append(job)
    for job in made:
        until(lambda job=job: client._ledger.record("default", job)["state"] == "failed", 40, stack.logs)
    assert client._redis.xlen(rk.dead_letters("default")) == 0


def test_files_of_any_kind_spoil_no_corpus(stack: Stack, client: Client, tmp_path: Path) -> None:
    bad = bad_files(tmp_path / "files")
    result = client.index(tmp_path / "files", "of any kind")
    assert result.status == "published", (result, stack.logs())
    by_reason = [example for group in result.left_out for example in group.examples]
    said = "\n".join([*result.warnings, *by_reason, *client.gather(tmp_path / "files").warnings()])
    events = json.dumps(client.job(result.job_id).events, ensure_ascii=False)
    missing = [name for name in bad if name not in said + events]
    assert not missing, (missing, said)
    assert result.counts.documents >= 7


def test_words_of_any_kind_end_in_a_known_way(stack: Stack, corpus: str) -> None:
    rng = random.Random(SEED)
    odd = [value for value in map(str, ODD) if "\x00" not in value]
    commands = (
        ["tree"], ["report", corpus], ["report"], ["source", corpus], ["export"], ["job"], ["resume"], ["cancel"],
        ["delete"], ["ask", "none such"], ["ask", corpus, "Q", "--budget-tokens"], ["ask", corpus, "Q", "--coverage"],
        ["ask", corpus, "Q", "--frontier"], ["ask", corpus, "Q", "--deadline"], ["index", "--corpus"],
        ["jobs", "--limit"], ["gc", "--older-than"], [],
    )  # fmt: skip
    for command in commands:
        for word in rng.sample(odd, 3):
            done = stack.call(*command, word, *rng.choice([[], ["--json"]]))
            assert done.code in {0, 2, 3, 4}, (command, word, done)
            assert "Traceback" not in done.out + done.err
            if done.code == 2:
                assert len(done.out + done.err) > 20, (command, word)


def test_options_of_any_kind_are_refused_or_work(stack: Stack, client: Client, corpus: str) -> None:
    rng = random.Random(SEED)
    fields = ("deadline_seconds", "selection", "batch", "answer", "history", "again", "seed", "bulk", "prompts")
    taken = []
    for number in range(150):
        options = {
            rng.choice(fields): rng.choice([*ODD, {"strategy": rng.choice(ODD)}, {"max_context_tokens": 10**12}])
        }
        try:
            checked = QueryOptions.model_validate({"deadline_seconds": 20, **options})
        except ValueError:
            continue
        if number % 10 == 0:
            taken.append(client._jobs.submit_query(corpus, f"What of {number}?", checked).job)
    for job in taken:
        assert client.wait_answer(job, timeout=60).status in {"answered", "partial", "failed", "no_data"}
