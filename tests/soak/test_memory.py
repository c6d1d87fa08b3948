"""Ten thousand units through the same workers: their memory does not grow with what they have done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from communitree.client import Client
from communitree.embedded.servers import Servers
from communitree_shared.contract.options import BatchOptions, QueryOptions, SelectionOptions
from communitree_shared.settings import Settings
from support.fleet import Fleet, running_fleet
from support.provider import Provider, fake_provider
from support.topics import write_topics

UNITS, AT_ONCE = 10_000, 20

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with fake_provider() as running:
        yield running


def resident(fleet: Fleet) -> dict[str, float]:
    """Return the memory of each worker with its children, in MB."""
    found = {}
    for number, worker in enumerate(fleet.workers):
        main = psutil.Process(worker.pid)
        found[f"{number}"] = sum(p.memory_info().rss for p in (main, *main.children(recursive=True))) / 2**20
    return found


def ask(client: Client, first: int, units: int) -> int:
    """Ask questions of many small batches until so many units have ended; return how many did."""
    options = QueryOptions(
        selection=SelectionOptions(strategy="leaves"), batch=BatchOptions(max_context_tokens=4200), cache=False
    )
    ended = 0
    while ended < units:
        jobs = [client.submit("grown", f"What is number {first + ended + n}?", options).job for n in range(AT_ONCE)]
        for job in jobs:
            answer = client.wait_answer(job, timeout=120)
            assert answer.status == "answered", answer
            ended += answer.account.batches.total
    return ended


def test_the_memory_of_a_worker_is_flat(tmp_path: Path, provider: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    stages = {**provider.settings("report"), **provider.settings("map"), **provider.settings("reduce")}
    with Servers(tmp_path / "servers") as endpoints:
        settings = endpoints.into(Settings(home=tmp_path / "home"))
        with (
            running_fleet(tmp_path / "logs", settings, "models", "cpu", env=stages) as fleet,
            fleet.client() as client,
        ):
            assert client.index(write_topics(tmp_path / "topics", 40), "grown").status == "published"
            warm = ask(client, 0, UNITS // 10)
            before = resident(fleet)
            done = ask(client, 10**6, UNITS)
            after = resident(fleet)
    with capsys.disabled():
        told = ", ".join(f"{before[k]:.0f} MB → {after[k]:.0f} MB" for k in before)
        print(f"\nafter {warm} units, then {done} more: {told}")
    for name, megabytes in before.items():
        assert after[name] < 1.25 * megabytes + 40, (before, after)
