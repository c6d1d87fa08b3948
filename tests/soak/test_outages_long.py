"""A minute without Redis, object store or endpoint, each in the middle of a corpus job: the long form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree_shared.contract.results import IndexResult
from support.outages import Lines, running_lines

SECONDS = 60.0

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lines]:
    with running_lines(tmp_path_factory.mktemp("lines")) as running:
        yield running


@pytest.fixture(scope="module")
def calm(lines: Lines, topics: Path) -> IndexResult:
    return lines.client.index(topics, "calm")


@pytest.mark.parametrize("outage", ["redis", "redis password", "s3 503", "s3 away", "s3 slow", "s3 refuses", "model"])
def test_a_minute_of_it_fails_no_unit(
    lines: Lines, topics: Path, calm: IndexResult, outage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.provider.reset(latency=0.5)
    job = lines.submit(topics, f"long {outage}")
    wire = {"s": lines.s3, "r": lines.redis, "m": lines.model}[outage[0]]
    cpu = lines.fleet.cpu_seconds()
    if outage == "redis password":
        with lines.other_password():
            tries = lines.measured(SECONDS, wire)
    else:
        begin = {"s3 503": lambda: wire.reply(503, "SlowDown"), "s3 slow": lambda: wire.slow(2.0),
                 "s3 refuses": lambda: wire.reply(403, "AccessDenied")}.get(outage, wire.down)  # fmt: skip
        begin()
        try:
            tries = lines.measured(SECONDS, wire)
        finally:
            wire.up()
    cpu = lines.fleet.cpu_seconds() - cpu
    result = lines.client.wait_index(job, timeout=600)
    with capsys.disabled():
        print(f"\n{outage}: {SECONDS:.0f} s, {tries} tries, {cpu:.1f} s of CPU; then {result.status}")
    assert result.status == "published", (result, lines.fleet.logs())
    assert result.counts == calm.counts
    assert (result.reports.generated, result.reports.failed) == (calm.reports.generated, 0)
    assert set(lines.attempts(job).values()) == {1}
