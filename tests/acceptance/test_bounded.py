"""Nothing grows for ever: `gc` takes what nothing needs and nothing else, `delete` all of a corpus, Redis forgets."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from communitree.client import Client
from communitree_shared.contract.results import IndexResult
from communitree_shared.errors import ResultGone
from support.oracles import unowned
from support.provider import Provider
from support.stack import Stack
from support.topics import write_topics


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few of the documents: enough for what is looked at here."""
    return write_topics(tmp_path_factory.mktemp("few") / "topics", 5)


@pytest.fixture
def source(topics: Path, tmp_path: Path) -> Path:
    """A copy of the corpus that a test may change."""
    copy = tmp_path / "source"
    shutil.copytree(topics, copy)
    return copy


def change(source: Path) -> None:
    """Take one document away and write another anew."""
    first, second, *_ = sorted(source.iterdir())
    first.unlink()
    second.write_text(second.read_text() + " The Assertion of Ada Lovelace was quoted by Charles Babbage.", "utf-8")


def keys(client: Client) -> set[str]:
    return set(client._store.keys(client._jobs.keys.root))


def index(client: Client, source: Path, corpus: str) -> IndexResult:
    result = client.index(source, corpus)
    assert result.status == "published", result
    return result


def test_gc_takes_what_only_old_versions_needed(stack: Stack, client: Client, provider: Provider, source: Path) -> None:
    provider.reset()
    first = index(client, source, "old and new")
    assert client.ask("old and new", "What is said of assignment?").status == "answered"
    change(source)
    second = index(client, source, "old and new")
    last = client.ask("old and new", "What is said of assignment?")
    assert last.status == "answered"
    before = keys(client)
    young = client.collect(older_than=3600)
    assert (young["versions"], young["objects"]) == ([], 0)
    told = client.collect(older_than=0, dry_run=True)
    assert keys(client) == before
    assert told["versions"] == [f"old and new/{first.version}"]
    assert told["documents"] == 2
    assert told["units"] > 0
    assert told["batches"] > 0
    assert told["jobs"] >= 4
    done = client.collect(older_than=0)
    assert {**done, "dry_run": True} == told
    assert len(before) - len(keys(client)) == done["objects"]
    assert client.collect(older_than=0)["objects"] == 0
    with pytest.raises(ResultGone):  # not even for the minute that Redis keeps it
        client.result(last.job_id)
    # What is published is whole, and the next index finds everything that it made.
    assert client.tree("old and new").version == second.version
    assert client.ask("old and new", "What else is said of assignment?").status == "answered"
    provider.reset()
    again = index(client, source, "old and new")
    assert again.reports.generated == 0
    assert again.reports.reused + again.reports.extractive == again.counts.reports
    assert provider.stats()["requests"] == 0


def _result(client: Client, job: str) -> Any | None:
    """Return a job's result; None where it was collected before it could be read."""
    try:
        return client.wait(job, timeout=100)
    except ResultGone:
        return None


def test_gc_leaves_alone_what_runs_and_what_is_published_meanwhile(
    stack: Stack, client: Client, provider: Provider, source: Path
) -> None:
    provider.reset()
    calm = index(client, source, "published meanwhile")
    change(source)
    provider.reset(latency=0.3)
    stop, runs = threading.Event(), list[dict[str, Any]]()

    def collect() -> None:
        with stack.client() as own:
            while not stop.wait(0.05):
                runs.append(own.collect(older_than=0))

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        jobs = [client.submit_index(source, corpus) for corpus in ("published meanwhile", "running", "beside")]
        asked = [client.submit("published meanwhile", f"What is number {n}?").job for n in range(5)]
        results = [_result(client, job) for job in jobs]
        answers = [_result(client, job) for job in asked]
    finally:
        stop.set()
        thread.join()
    assert len(runs) > 3
    assert [client.job(job).status for job in jobs] == ["published"] * 3
    assert [client.job(job).status for job in asked] == ["answered"] * 5
    assert all(r.reports.failed == 0 for r in results if r)
    assert all(a.answer for a in answers if a)
    client.collect(older_than=0)
    listed = {c["name"]: c["counts"]["documents"] for c in client.corpora() if "counts" in c}
    wanted = dict.fromkeys(("published meanwhile", "running", "beside"), calm.counts.documents - 1)
    assert {name: n for name, n in listed.items() if name in wanted} == wanted
    for corpus in ("published meanwhile", "running", "beside"):
        assert client.ask(corpus, "What is left?").status == "answered"


def test_delete_takes_all_of_a_corpus_and_of_no_other(client: Client, provider: Provider, source: Path) -> None:
    provider.reset()
    jobs: dict[str, list[str]] = {}
    for corpus in ("kept", "taken 走"):
        made = client.submit_index(source, corpus)
        client.wait_index(made)
        asked = client.submit(corpus, "What is a statement?").job
        client.wait_answer(asked)
        jobs[corpus] = [made, asked]
    others = keys(client)
    removed = client.delete("taken 走")
    left = keys(client)
    gone = others - left
    assert removed >= len(gone) > 0
    assert not [k for k in left if "taken" in k or any(job in k for job in jobs["taken 走"])]
    assert not [k for k in gone if "kept" in k or any(job in k for job in jobs["kept"])]
    redis = client._redis
    names = [str(k) for k in redis.scan_iter("*")]
    assert not [k for k in names if "taken" in k or any(job in k for job in jobs["taken 走"])]
    assert any(job in k for k in names for job in jobs["kept"])
    assert not [f for _, f in redis.xrange("communitree:results:default") if f.get("corpus") == "taken 走"]
    assert client.ask("kept", "What is an expression?").status == "answered"


def test_at_rest_every_key_of_redis_has_an_end_or_an_owner(client: Client, provider: Provider) -> None:
    until = time.monotonic() + 30
    while left := unowned(client._redis):
        assert time.monotonic() < until, left
        time.sleep(0.3)
