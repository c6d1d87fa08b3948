"""Servers go away, are slow or refuse in the middle of a job: workers wait, say so, and go on. The short form."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from communitree_shared.contract.options import QueryOptions
from communitree_shared.contract.results import IndexResult
from support.fleet import running_fleet, until
from support.outages import Lines, running_lines

#: Seconds of each outage; the long form has sixty.
SHORT = 2.5


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lines]:
    with running_lines(tmp_path_factory.mktemp("lines"), COMMUNITREE_REFUSAL_PATIENCE="5") as running:
        yield running


@pytest.fixture(scope="module")
def calm(lines: Lines, topics: Path) -> tuple[IndexResult, int]:
    """The undisturbed run: its result, and the model calls that it took."""
    result = lines.client.index(topics, "calm")
    assert result.status == "published"
    return result, lines.provider.stats()["requests"]


def whole(lines: Lines, job: str, calm: IndexResult) -> None:
    """A disturbed job has ended as the undisturbed one; no attempt was counted for an outage."""
    result = lines.client.wait_index(job, timeout=100)
    assert result.status == "published", (result, lines.fleet.logs())
    assert result.counts == calm.counts
    # Of a job that takes up another, what that one had written is reused.
    made, all_made = result.reports, calm.reports.generated + calm.reports.extractive
    assert made.generated + made.extractive + made.reused == all_made
    assert result.reports.failed == 0
    assert set(lines.attempts(job).values()) == {1}


def warnings(lines: Lines, job: str) -> list[str]:
    return [str(e["message"]) for e in lines.client.job(job).events if e["type"] == "warning"]


def test_redis_goes_away_and_then_refuses(lines: Lines, topics: Path, calm: Any) -> None:
    lines.provider.reset(latency=0.5)
    job = lines.submit(topics, "redis")
    lines.redis.down()
    lines.measured(SHORT, lines.redis)
    lines.redis.up()
    time.sleep(0.5)
    with lines.other_password():
        lines.measured(SHORT, lines.redis)
    whole(lines, job, calm[0])
    assert "hush" not in lines.fleet.logs()
    assert str(lines.settings.redis_url.get_secret_value().split("@")[0].split(":")[-1]) not in lines.fleet.logs()


def test_the_object_store_fails_goes_away_and_is_slow(lines: Lines, topics: Path, calm: Any) -> None:
    lines.provider.reset(latency=0.5)
    job = lines.submit(topics, "s3")
    lines.s3.reply(503, "SlowDown")
    lines.measured(SHORT, lines.s3)
    lines.s3.down()
    lines.measured(1, lines.s3)
    lines.s3.slow(0.1)
    whole(lines, job, calm[0])
    lines.s3.up()
    told = warnings(lines, job)
    assert any("does not serve us" in message for message in told), told


def test_the_endpoint_goes_away(lines: Lines, topics: Path, calm: Any) -> None:
    lines.provider.reset(latency=0.5)
    job = lines.submit(topics, "model")
    lines.model.down()
    lines.measured(SHORT, lines.model)
    lines.model.up()
    whole(lines, job, calm[0])


def test_a_refusal_is_told_to_the_caller_once_and_waited_out(lines: Lines, topics: Path, calm: Any) -> None:
    lines.provider.reset(latency=0.5)
    job = lines.submit(topics, "refused")
    lines.s3.reply(403, "AccessDenied")
    waits = until(lambda: lines.client.job(job).waits, 15, lines.fleet.logs)
    assert "AccessDenied" in waits["message"]
    assert "s3:PutObject" in waits["hint"]
    time.sleep(1)
    lines.s3.up()
    whole(lines, job, calm[0])
    assert len([w for w in warnings(lines, job) if "AccessDenied" in w]) == 1
    assert lines.client.job(job).waits is None


def test_a_refusal_that_lasts_ends_the_job_which_can_be_resumed(lines: Lines, topics: Path, calm: Any) -> None:
    lines.provider.reset(latency=0.5)
    job = lines.submit(topics, "given-up")
    lines.s3.reply(507, "XMinioStorageFull")
    until(lambda: lines.client.job(job).status == "failed", 40, lines.fleet.logs)
    lines.s3.up()
    view = lines.client.job(job)
    assert view.error is not None
    assert view.error["code"] == "refused"
    assert "XMinioStorageFull" in view.error["message"]
    assert f"communitree resume {job}" in view.error["hint"]
    # Once the store takes writes, it knows the end: a loss of Redis does not bring the job back.
    jobs = lines.client._jobs
    until(lambda: not jobs.store.exists(jobs.keys.open_job(job)), 15, lines.fleet.logs)
    assert (jobs.result(job) or {})["error"] == view.error
    again = lines.client.resume(job)
    whole(lines, again, calm[0])
    # What the first job had written is not asked for again; at most what was in flight at the refusal is.
    assert lines.provider.stats()["requests"] <= calm[1] + 40


def test_workers_whose_clocks_are_wrong_keep_deadlines_and_leases(lines: Lines, tmp_path: Path, calm: Any) -> None:
    """One is ten minutes ahead, one ten behind: a deadline is a time of the server's clock."""
    lines.fleet.stop()
    lines.provider.reset()
    through = lines.fleet.settings
    with running_fleet(tmp_path, through) as fleet:
        fleet.env = lines.fleet.env
        for kind, skew in (("models", "600"), ("models", "-600"), ("cpu", "600"), ("cpu", "-600")):
            fleet.start(kind, "support.skewed_worker", SKEW=skew)
        fleet.ready()
        for number in range(2):
            options = QueryOptions(deadline_seconds=60, cache=False)
            answer = lines.client.ask("calm", f"What is said of clocks, number {number}?", options)
            assert answer.status == "answered", (answer, fleet.logs())
            assert answer.account.batches.failed == 0
            assert 0 <= answer.account.seconds.total < 60
