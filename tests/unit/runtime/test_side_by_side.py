"""Units of a message arrive when they have ended: together where they end together, none waiting for a slow one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from communitree_shared.contract.messages import Message, Unit
from communitree_shared.errors import BadInput, InfrastructureError
from communitree_shared.ledger.client import Arrival
from communitree_workers.runtime.context import Outcome, UnitContext
from communitree_workers.runtime.loop import LoopHere, LoopThread
from communitree_workers.runtime.runner import Runner


class Ledger:
    def __init__(self) -> None:
        self.arrivals: list[list[Arrival]] = []
        self.given_back: list[str] = []
        self.refuses: set[str] = set()
        self.slow = threading.Event()
        self.slow.set()

    def arrive_all(self, tenant: str, job: str, stage: str, arrivals: list[Arrival]) -> tuple[list[str], list[Any]]:
        self.slow.wait(10)
        if self.refuses.intersection(a.unit for a in arrivals):
            raise ValueError("a unit that cannot be written")
        self.arrivals.append(list(arrivals))
        return ["new"] * len(arrivals), []

    def give_back(self, tenant: str, job: str, stage: str, unit: str, **_: Any) -> None:
        self.given_back.append(unit)


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.loop.call_soon_threadsafe(loop.loop.stop)
    while loop.loop.is_running():
        threading.Event().wait(0.01)
    loop.loop.run_until_complete(loop.loop.shutdown_default_executor())
    loop.loop.close()


@pytest.fixture
def here() -> Iterator[LoopHere]:
    loop = LoopHere()
    yield loop
    loop.loop.close()


def runner(loop: LoopThread | LoopHere) -> tuple[Runner, Ledger]:
    ledger = Ledger()
    publisher = SimpleNamespace(publish=lambda outgoing: None)
    return Runner(SimpleNamespace(ledger=ledger, loop=loop, publisher=publisher), {}), ledger  # type: ignore[arg-type]


def contexts(made: Runner, *names: str) -> list[UnitContext]:
    units = [Unit(id=name) for name in names]
    message = Message(task="communitree.query.map.v1", tenant="t", job="j", stage="map", id="m", units=units)
    return [made._context(message, unit, 1, None) for unit in units]


def test_those_that_end_together_arrive_in_one_step_and_a_slow_one_keeps_nobody(thread: LoopThread) -> None:
    made, ledger = runner(thread)
    told = threading.Event()
    ended: list[str] = []

    async def handler(context: UnitContext) -> Outcome:
        if context.unit.id == "slow":
            await asyncio.to_thread(told.wait, 10)
        ended.append(context.unit.id)
        if context.unit.id == "fails":
            raise BadInput("odd")
        if context.unit.id == "away":
            raise InfrastructureError("away")
        return Outcome(data={"unit": context.unit.id})

    ledger.slow.clear()  # the first arrival is on its way while the others end
    working = threading.Thread(
        target=made._side_by_side, args=(contexts(made, "a", "b", "fails", "away", "c", "d", "slow"), handler)
    )
    working.start()
    while len(ended) < 6:
        threading.Event().wait(0.05)
    threading.Event().wait(0.5)  # what remains is the loop's call of one function each
    ledger.slow.set()
    until = 200
    while sum(map(len, ledger.arrivals)) < 5 and until:
        until -= 1
        threading.Event().wait(0.05)
    early = [a.unit for step in ledger.arrivals for a in step]
    assert sorted(early) == ["a", "b", "c", "d", "fails"]
    assert len(ledger.arrivals) <= 4
    told.set()
    working.join(10)
    assert ledger.arrivals[-1][0].unit == "slow"
    assert ledger.given_back == ["away"]
    assert {a.unit: a.ok for step in ledger.arrivals for a in step}["fails"] is False
    assert not made._running


def test_one_that_cannot_be_written_keeps_no_other_from_arriving(here: LoopHere) -> None:
    made, ledger = runner(here)
    ledger.refuses = {"b"}

    async def handler(context: UnitContext) -> Outcome:
        return Outcome(data={"unit": context.unit.id})

    made._side_by_side(contexts(made, "a", "b", "c"), handler)
    assert [[a.unit for a in step] for step in ledger.arrivals] == [["a"], ["c"]]
    assert ledger.given_back == ["b"]
