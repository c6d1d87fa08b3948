"""Streams that are read late: nothing goes before its groups have read it, or a `lost` entry says how much went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from communitree.events import follow, past
from communitree.recovery import dead_letters, redrive
from communitree_shared import clock
from communitree_shared.broker.publisher import Publisher
from communitree_shared.ledger import Ledger, Step
from communitree_shared.ledger.jobs import Jobs
from communitree_shared.ledger.keeping import trim_all
from communitree_shared.ledger.reconciler import Reconciler
from communitree_shared.objects.store import Store
from communitree_shared.redis_server import rediskeys as rk
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from support.acl import documented_user

T = "default"
STREAM = rk.results(T)
GROUP = "mine"


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    made = Ledger(redis_client(settings), patience=5)
    yield made
    made.redis.close()


def few(settings: Settings, **more: Any) -> Settings:
    return settings.model_copy(update={"results_keep": 10, "results_keep_unread": 100, **more})


def fill(ledger: Ledger, number: int, stream: str = STREAM) -> list[str]:
    """Add entries, as the scripts do."""
    pipe = ledger.redis.pipeline(transaction=False)
    pipe.sadd(rk.STREAMS, stream)
    for n in range(number):
        pipe.xadd(stream, {"job": f"j{n}", "status": "answered"})
    return [str(entry) for entry in pipe.execute()[1:]]


def read(ledger: Ledger, count: int, acknowledged: int | None = None, group: str = GROUP) -> list[tuple[str, Any]]:
    found: Any = ledger.redis.xreadgroup(group, "me", {STREAM: ">"}, count=count)
    entries = found[0][1] if found else []
    if done := [entry for entry, _ in entries[:acknowledged]]:
        ledger.redis.xack(STREAM, group, *done)
    return entries


def ids(ledger: Ledger, stream: str = STREAM) -> list[str]:
    return [str(entry) for entry, fields in ledger.redis.xrange(stream) if fields.get("type") != "lost"]


def losses(ledger: Ledger, stream: str = STREAM) -> list[dict[str, str]]:
    return [dict(fields) for _, fields in ledger.redis.xrange(stream) if fields.get("type") == "lost"]


def test_eleven_thousand_ends_with_the_group_away_are_there_when_it_comes_back(settings: Settings) -> None:
    ledger = Ledger(redis_client(settings), patience=5)
    ledger.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    reconciler = Reconciler(settings, Store(settings), ledger, Publisher(settings, ledger))
    wanted = []
    for n in range(11_000):
        ledger.submit(T, f"j{n}", {"kind": "query", "corpus": "c"}, Step("plan", "communitree.query.plan.v1"))
        ledger.finish(T, f"j{n}", "answered", {"result": "x"}, 60)
        wanted.append(f"j{n}")
        if n % 1000 == 0:
            reconciler.tick()
    reconciler.tick()
    told: list[str] = []
    while entries := read(ledger, 1000):
        told += [fields["job"] for _, fields in entries]
        reconciler.tick()
    assert told == wanted
    assert losses(ledger) == []
    trim_all(ledger, few(settings))
    assert ids(ledger) == [entry for entry, _ in ledger.redis.xrevrange(STREAM, count=10)][::-1]
    reconciler.publisher.close()
    ledger.redis.close()


def test_what_was_delivered_and_not_acknowledged_stays(ledger: Ledger, settings: Settings) -> None:
    ledger.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    entries = fill(ledger, 60)
    read(ledger, 40, acknowledged=25)
    assert trim_all(ledger, few(settings)) == 0
    assert ids(ledger) == entries[25:]
    ledger.redis.xack(STREAM, GROUP, *entries[26:40])  # one is still in somebody's hands
    trim_all(ledger, few(settings))
    assert ids(ledger) == entries[25:]
    ledger.redis.xack(STREAM, GROUP, entries[25])
    trim_all(ledger, few(settings))
    assert ids(ledger) == entries[40:]


def test_the_slowest_of_several_groups_counts(ledger: Ledger, settings: Settings) -> None:
    for group in (GROUP, "slow"):
        ledger.redis.xgroup_create(STREAM, group, id="0", mkstream=True)
    entries = fill(ledger, 60)
    read(ledger, 60)
    trim_all(ledger, few(settings))
    assert ids(ledger) == entries
    read(ledger, 5, group="slow")
    trim_all(ledger, few(settings))
    assert ids(ledger) == entries[5:]


def test_a_group_that_never_comes_back_does_not_fill_redis_and_what_it_loses_is_counted(
    ledger: Ledger, settings: Settings
) -> None:
    for group in (GROUP, "dead"):
        ledger.redis.xgroup_create(STREAM, group, id="0", mkstream=True)
    lost, added = 0, 0
    for _ in range(40):
        fill(ledger, 50)
        added += 50
        read(ledger, 1000)
        lost += trim_all(ledger, few(settings))
        assert ledger.redis.xlen(STREAM) <= 160
    assert len(losses(ledger)) <= 12
    told = read(ledger, 1000, group="dead")
    counted = sum(int(fields["count"]) for _, fields in told if fields.get("type") == "lost")
    read_there = sum("job" in fields for _, fields in told)
    assert counted + read_there == added  # each entry was read, or counted once
    last = losses(ledger)[-1]
    assert last["groups"] == "dead"  # the other one has lost nothing
    assert float(last["at"]) == pytest.approx(clock.now_of(ledger.redis), abs=60)
    assert all(tuple(map(int, e.split("-"))) > tuple(map(int, last["until"].split("-"))) for e in ids(ledger))


def test_without_a_group_the_newest_stay_and_the_others_are_counted(ledger: Ledger, settings: Settings) -> None:
    entries = fill(ledger, 30)
    assert trim_all(ledger, few(settings)) == 20
    assert ids(ledger) == entries[20:]
    (told,) = losses(ledger)
    assert (told["count"], told["until"]) == ("20", entries[19])
    assert "groups" not in told
    assert trim_all(ledger, few(settings)) == 0


def test_what_is_too_old_goes_and_is_counted_once(ledger: Ledger, settings: Settings) -> None:
    ledger.redis.sadd(rk.STREAMS, STREAM)
    old = int(clock.now_of(ledger.redis) * 1000) - 100_000
    ledger.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    for n in range(5):
        ledger.redis.xadd(STREAM, {"job": f"j{n}"}, id=f"{old}-{n + 1}")
    assert trim_all(ledger, few(settings, results_keep_seconds=200)) == 0
    assert trim_all(ledger, few(settings, results_keep_seconds=50)) == 5
    assert ids(ledger) == []
    assert [told["count"] for told in losses(ledger)] == ["5"]


def test_a_cut_that_is_made_again_changes_nothing(ledger: Ledger) -> None:
    entries = fill(ledger, 30)
    told = '["type","lost","count","10"]'
    assert ledger._run("trim", STREAM, entries[0], entries[10], told) == 10
    assert ledger._run("trim", STREAM, entries[0], entries[10], told) == -1  # its reply was lost
    assert len(losses(ledger)) == 1
    assert ids(ledger) == entries[10:]


def test_a_user_with_the_rights_of_an_older_release_loses_nothing(
    ledger: Ledger, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    rights = documented_user().replace(" +xinfo|groups +xpending", "").replace(">PASSWORD", "nopass").split()[2:]
    ledger.redis.execute_command("ACL", "SETUSER", "few", "reset", *rights)
    ledger.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    entries = fill(ledger, 60)
    own = ledger.redis.connection_pool.connection_kwargs
    client = redis.Redis(port=own["port"], db=own["db"], username="few", password="", decode_responses=True)
    assert trim_all(Ledger(client, patience=1), few(settings)) == 0
    client.close()
    ledger.redis.execute_command("ACL", "DELUSER", "few")
    assert ids(ledger) == entries
    assert "as if nobody had read it" in caplog.text


def test_dead_letters_beyond_their_number_are_counted_and_no_job_is_made_of_that(
    ledger: Ledger, settings: Settings
) -> None:
    settings = few(settings, dead_letters_keep=10)
    store, publisher = Store(settings, patience=5), Publisher(settings, ledger)
    store.ensure_bucket()
    fill(ledger, 30, rk.dead_letters(T))
    trim_all(ledger, settings)
    jobs = Jobs(settings, store, ledger, publisher)
    told, *letters = dead_letters(jobs, 100)
    assert (told["type"], told["count"]) == ("lost", "20")
    assert [letter["job"] for letter in letters] == [f"j{n}" for n in range(29, 19, -1)]
    assert redrive(jobs) == []  # these jobs are gone: their letters are cleared
    assert [letter["type"] for letter in dead_letters(jobs, 100)] == ["lost"]
    publisher.close()


def test_a_job_with_more_events_than_are_kept_says_how_many_are_missing(ledger: Ledger, settings: Settings) -> None:
    settings = settings.model_copy(update={"lease": 1})
    ledger.submit(T, "j", {"kind": "query", "corpus": "c"}, Step("plan", "communitree.query.plan.v1"))
    for n in range(20_500):
        ledger.event(T, "j", "answer.delta", text=f"{n}")
    publisher = Publisher(settings, ledger)
    jobs = Jobs(settings, Store(settings), ledger, publisher)
    lost, *kept = past(jobs, "j")
    assert lost.type == "lost"
    assert lost.fields["count"] + len(kept) == int(ledger.record(T, "j")["seq"])
    assert len(kept) >= 20_000
    assert kept[-1].fields["text"] == "20499"
    assert next(follow(jobs, "j", after=kept[4].id)) == kept[5]
    assert next(follow(jobs, "j", after="1-0")) == lost  # its own place is gone: so many at most
    publisher.close()
