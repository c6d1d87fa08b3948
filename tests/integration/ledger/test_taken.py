"""Messages that a worker took and never began: restored soon after its death, and not while it lives, however slow."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from communitree_shared import clock
from communitree_shared.broker import layout
from communitree_shared.broker.publisher import Publisher
from communitree_shared.broker.transport import connection
from communitree_shared.contract.messages import Unit
from communitree_shared.ledger import Ledger, Stage, Step
from communitree_shared.ledger.entry import finish_spec
from communitree_shared.ledger.reconciler import Reconciler
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings

T = "default"
QUEUE = "communitree.map.local"
LEASE, RENEWAL, TICK = 15.0, 5.0, 5.0

#: The longest that a unit may wait after its worker's death: two heartbeats, and a tick that has just gone by.
SOON = 2 * RENEWAL + TICK


@dataclass
class Hands:
    """A worker as the broker sees it: what it has taken, by tag, and which of it is begun."""

    channel: Any
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)


class World:
    """Three workers, one queue and the reconciler, in which time passes when it is told to."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.model_copy(
            update={"lease": LEASE, "lease_renewal": RENEWAL, "reconciler_tick": TICK, "visibility_timeout": 90.0}
        )
        self.redis: Any = redis_client(self.settings)
        self.ledger = Ledger(self.redis, patience=5)
        self.publisher = Publisher(self.settings, self.ledger)
        store = Store(self.settings, patience=5)
        store.ensure_bucket()
        self.reconciler = Reconciler(self.settings, store, self.ledger, self.publisher)
        self.connection: Any = connection(self.settings)
        clock.sync(self.redis)
        self.begin_again(0)

    def begin_again(self, messages: int) -> None:
        """Empty the world, and open a stage of so many messages in it."""
        self.redis.flushdb()
        self.workers = [Hands(self.connection.channel()) for _ in range(3)]
        self.orphans: dict[str, float] = {}  # unit → since when its message lies in dead hands
        self.now = 0.0
        if messages:
            record = {"kind": "query", "corpus": "c", "on_failure": finish_spec(T, "j")}
            _, _, first = self.ledger.submit(T, "j", record, Step("plan", "communitree.query.plan.v1"))
            stage = Stage("map", "communitree.query.map.v1", Step("reduce", "communitree.query.reduce.v1"))
            made = stage.messages(T, "j", [Unit(id=f"u{n}") for n in range(messages)], local=True)
            self.publisher.publish(first + self.ledger.open(T, "j", stage, made)[1])
        self.tick()

    def close(self) -> None:
        self.connection.release()
        self.publisher.close()
        self.redis.close()

    def queued(self) -> Counter[str]:
        """How often each unit stands in the queue."""
        channel = self.connection.channel()
        found = [channel.Message((QUEUE, raw), channel=channel) for raw in self.redis.lrange(QUEUE, 0, -1)]
        return Counter(m.payload["args"][0]["units"][0]["id"] for m in found)

    def take(self, worker: Hands) -> None:
        message = worker.channel.basic_get(QUEUE)
        if message is not None:
            worker.taken[message.delivery_tag] = message.payload["args"][0]

    def begin(self, worker: Hands) -> None:
        for tag in [tag for tag in worker.taken if tag not in worker.begun][:1]:
            body = worker.taken[tag]
            (unit,) = [u["id"] for u in body["units"]]
            found = self.ledger.begin(T, "j", "map", body["id"], [unit], LEASE, 50)
            worker.begun.add(tag)
            if found.verdicts[unit] != "go":
                self.acknowledge(worker, tag)

    def end(self, worker: Hands) -> None:
        for tag in list(worker.begun)[:1]:
            self.ledger.arrive(T, "j", "map", worker.taken[tag]["units"][0]["id"], ok=True, outcome={}, event={})
            self.acknowledge(worker, tag)

    def acknowledge(self, worker: Hands, tag: str) -> None:
        worker.channel.basic_ack(tag)
        del worker.taken[tag]
        worker.begun.discard(tag)

    def die(self, worker: Hands) -> None:
        for tag, body in worker.taken.items():
            if tag not in worker.begun:
                self.orphans.setdefault(body["units"][0]["id"], self.now)
        self.workers[self.workers.index(worker)] = Hands(self.connection.channel())
        worker.channel.qos._delivered.clear()  # a dead worker restores nothing

    def beats(self) -> None:
        for worker in self.workers:
            if worker.taken:
                self.redis.zadd(layout.TAKEN, dict.fromkeys(worker.taken, clock.now_of(self.redis)), xx=True)
            members = [f"{T}|j|map|{worker.taken[tag]['units'][0]['id']}" for tag in worker.begun]
            self.ledger.renew(members, LEASE)

    def wait(self, *, late: bool = False) -> None:
        """Let a tick's time pass: each worker beats, the reconciler ticks; `late`: the tick comes before the beats."""
        self.pass_time(TICK)
        for act in (self.tick, self.beats) if late else (self.beats, self.tick):
            act()

    def pass_time(self, seconds: float) -> None:
        """Let all that is dated be older by so much."""
        self.now += seconds
        for key, unit in (
            (layout.TAKEN, 1),
            (rk.LEASES, 1000),
            (rk.SENT, 1000),
            (rk.OUTBOX, 1000),
            (rk.flight(QUEUE), 1000),
        ):
            for member, score in self.redis.zrange(key, 0, -1, withscores=True):
                self.redis.zadd(key, {member: score - seconds * unit})
        for name, at in self.redis.hgetall(rk.WATERMARK).items():
            self.redis.hset(rk.WATERMARK, name, float(at) - seconds * 1000)

    def tick(self) -> None:
        self.reconciler.tick()
        if self.reconciler.mender is not None:
            self.reconciler.mender.join(30)


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    made = World(settings)
    yield made
    made.close()


STEPS = st.lists(
    st.tuples(st.sampled_from(["take", "take", "begin", "end", "die", "wait", "wait"]), st.integers(0, 2)), max_size=40
)


@examples(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.integers(1, 6), steps=STEPS)
def test_what_lies_in_dead_hands_is_there_again_soon_and_what_the_living_hold_stays_theirs(
    world: World, messages: int, steps: list[tuple[str, int]]
) -> None:
    world.begin_again(messages)
    restored: list[str] = []
    restore = world.publisher.restore
    world.publisher.restore = lambda tags: (restored.extend(tags), restore(tags))[1]  # type: ignore[method-assign]
    try:
        for what, n in [*steps, *[("wait", 0)] * 4]:
            worker = world.workers[n]
            held = {tag for w in world.workers for tag in w.taken}
            restored.clear()
            if what == "wait":
                world.wait(late=n == 1)
            else:
                getattr(world, what)(worker)
            assert not held.intersection(restored), "a living worker's message was handed out again"
            here = world.queued() + Counter(body["units"][0]["id"] for w in world.workers for body in w.taken.values())
            ended = set(world.ledger.outcomes(T, "j", "map"))
            for unit, since in list(world.orphans.items()):
                if unit in ended or here[unit]:
                    del world.orphans[unit]
                else:
                    assert world.now - since <= SOON, f"{unit} waits for {world.now - since} s"
    finally:
        world.publisher.restore = restore  # type: ignore[method-assign]


def test_a_worker_that_holds_messages_for_long_before_it_begins_them_keeps_them(world: World) -> None:
    """Behind a long computation: no copy of them is handed out while it marks them."""
    world.begin_again(6)
    for _ in range(5):
        world.take(world.workers[0])
    for n in range(24):
        world.wait(late=n % 2 == 1)
    assert world.reconciler.republished == {"outbox": 0, "lease": 0, "lost": 0, "taken": 0}
    assert world.queued() == {"u5": 1}


def test_after_an_outage_the_living_have_time_to_speak(world: World) -> None:
    """All marks are old, since nobody could set them: they are no sign of death."""
    world.begin_again(2)
    world.take(world.workers[0])
    world.pass_time(60)
    world.tick()
    assert world.reconciler.republished["taken"] == 0
    for _ in range(6):
        world.wait()
    assert world.reconciler.republished["taken"] == 0


@pytest.mark.parametrize(("away", "known"), [(12, True), (12, False), (16, False)])
def test_an_outage_shorter_than_a_lease_may_have_cost_the_living_theirs(world: World, away: int, known: bool) -> None:
    """Renewed some seconds before it, they run out in it. A new reconciler sees the same where the old one has died."""
    world.begin_again(1)
    world.take(world.workers[0])
    world.begin(world.workers[0])
    world.beats()
    world.pass_time(4)
    world.tick()
    world.pass_time(away)
    world.reconciler._heard = time.monotonic() - (away if known else TICK)
    world.tick()
    spared = known or away > LEASE
    assert world.reconciler.republished["lease"] == (0 if spared else 1)
    world.beats()
    for _ in range(4):
        world.wait()
    assert world.reconciler.republished["lease"] == (0 if spared else 1)


def test_what_is_restored_is_next_and_leaves_nothing_of_its_first_taking(world: World) -> None:
    world.begin_again(3)
    world.take(world.workers[0])
    (tag,) = world.workers[0].taken
    (lost,) = [body["units"][0]["id"] for body in world.workers[0].taken.values()]
    world.die(world.workers[0])
    for _ in range(3):
        world.wait()
    assert not world.redis.exists(layout.UNACKED, layout.TAKEN)
    world.publisher.restore([tag])  # once more: nothing is there
    assert world.queued() == {"u0": 1, "u1": 1, "u2": 1}
    world.take(world.workers[1])
    assert [body["units"][0]["id"] for body in world.workers[1].taken.values()] == [lost]


@pytest.mark.parametrize("foreign", ["[1]", "{", '{"body": 1}'])
def test_what_is_no_message_keeps_no_other_from_being_restored(world: World, foreign: str) -> None:
    world.begin_again(1)
    world.take(world.workers[0])
    world.die(world.workers[0])
    world.redis.hset(layout.UNACKED, "foreign", foreign)
    world.redis.zadd(layout.TAKEN, {"foreign": 0})
    for _ in range(4):
        world.wait(late=False)
    assert world.redis.llen(QUEUE) == 1
    assert world.redis.zscore(layout.TAKEN, "foreign") is None
    assert world.redis.hget(layout.UNACKED, "foreign") == foreign  # to be looked at


@pytest.mark.parametrize("foreign", ["[1]", "{", '{"body": 1}', "[[], 1, 2]", '[{"properties": 7}, "", "x"]'])
def test_what_is_no_message_ends_no_worker_that_looks_for_what_is_late(world: World, foreign: str) -> None:
    """The transport looks by itself in the worker's main process, after the visibility timeout."""
    world.begin_again(1)
    world.take(world.workers[0])
    (tag,) = world.workers[0].taken
    world.redis.hset(layout.UNACKED, "foreign", foreign)
    world.redis.zadd(layout.TAKEN, {"foreign": 0, tag: 1})
    world.workers[1].channel.qos.restore_visible()
    assert world.queued() == {"u0": 1}
    assert not world.redis.zcard(layout.TAKEN)


def test_messages_are_marked_by_the_clock_of_redis(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is wrong must not seem silent at once, nor its death be noticed ten minutes late."""
    world.begin_again(1)
    monkeypatch.setattr(clock, "_measured", (1_000.0, time.monotonic()))
    world.take(world.workers[0])
    ((_, mark),) = world.redis.zrange(layout.TAKEN, 0, -1, withscores=True)
    assert 1_000 <= mark < 1_060


def test_a_child_that_died_before_it_began_gives_its_unit_back_at_once(world: World) -> None:
    """It holds no lease; what it held is known to its main process. It counts, or a unit might kill for ever."""
    world.begin_again(2)
    world.take(world.workers[0])
    (tag,) = world.workers[0].taken
    unit = world.workers[0].taken[tag]["units"][0]["id"]
    world.acknowledge(world.workers[0], tag)  # as Celery does when a child dies
    for _ in range(2):  # a call whose reply was lost is repeated
        world.ledger.give_back(T, "j", "map", unit, delay_s=0, refund=False, why="killed", owner="token:1")
    world.tick()
    assert world.queued() == {"u0": 1, "u1": 1}
    assert world.redis.hget(rk.attempts(T, "j"), f"map|{unit}") == "1"
    other = "u1" if unit == "u0" else "u0"
    world.ledger.give_back(T, "j", "map", other, delay_s=0, refund=True, why="by a stranger")
    assert not world.redis.exists(rk.LEASES)


def test_a_unit_that_has_ended_is_not_given_back_with_a_child_that_died(world: World) -> None:
    """Its message came a second time, for its other unit, and was not begun again."""
    world.begin_again(0)
    record = {"kind": "query", "corpus": "c", "on_failure": finish_spec(T, "j")}
    world.ledger.submit(T, "j", record, Step("plan", "communitree.query.plan.v1"))
    stage = Stage("map", "communitree.query.map.v1", Step("reduce", "communitree.query.reduce.v1"))
    world.ledger.open(T, "j", stage, stage.messages(T, "j", [Unit(id="u0"), Unit(id="u1")], local=True, per_message=2))
    world.ledger.arrive(T, "j", "map", "u0", ok=True, outcome={}, event={})
    for unit in ("u0", "u1"):
        world.ledger.give_back(T, "j", "map", unit, delay_s=0, refund=False, why="killed", owner="token:1")
    assert world.redis.zrange(rk.LEASES, 0, -1) == [f"{T}|j|map|u1"]
    assert world.redis.hget(rk.attempts(T, "j"), "map|u0") is None
